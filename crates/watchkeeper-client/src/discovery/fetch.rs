//! The requests of discovery.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::header;
use kube_core::GroupVersion;

use super::{
    error::DiscoveryError,
    model::{ApiGroup, FailureReason, GroupVersionFailure, ResourceInfo, ServerResources},
    parse::{self, DiscoveryEndpoint, Root},
};
use crate::{Error, rest::RestClient};

/// The number of repetitions if a group disappears between the list of groups and the request for its
/// document. The group is being removed, and the next list will not contain it.
const RETRIES_AFTER_GROUP_REMOVAL: usize = 2;

/// The maximum number of concurrent requests for documents of the legacy form. A server with many groups has
/// more than a hundred documents.
const LEGACY_REQUESTS_AT_ONCE: usize = 16;

const JSON: &str = "application/json";

/// Fetches all resources of the server: two requests with the aggregated form, otherwise two and one per
/// group-version.
pub(super) async fn server_resources(rest: &RestClient) -> Result<ServerResources, DiscoveryError> {
    let mut retries_left = RETRIES_AFTER_GROUP_REMOVAL;
    loop {
        let found = fetch_once(rest).await?;
        if retries_left == 0 || !found.failures.iter().any(is_vanished) {
            return Ok(found);
        }
        retries_left -= 1;
    }
}

async fn fetch_once(rest: &RestClient) -> Result<ServerResources, DiscoveryError> {
    let (core, named) =
        future::try_join(root(rest, DiscoveryEndpoint::Core), root(rest, DiscoveryEndpoint::Groups)).await?;
    if core.is_none() && named.is_none() {
        return Err(DiscoveryError::NothingServed);
    }
    let mut found = ServerResources::default();
    for root in [core, named].into_iter().flatten() {
        match root {
            Root::Aggregated { groups, failures } => {
                found.groups.extend(groups);
                found.failures.extend(failures);
            }
            Root::Legacy(groups) => legacy(rest, groups, &mut found).await,
        }
    }
    Ok(found)
}

/// Fetches `/api` or `/apis`. Extension servers may lack one of the two.
async fn root(rest: &RestClient, endpoint: DiscoveryEndpoint) -> Result<Option<Root>, DiscoveryError> {
    let path = endpoint.path();
    let response = match document(rest, path, parse::ACCEPT_AGGREGATED).await {
        // A server that does not support media type parameters may reject the whole header because of one
        // entry.
        Err(error) if is_status(&error, 406) => document(rest, path, JSON).await,
        response => response,
    };
    match response {
        Ok((content_type, body)) => parse::root(endpoint, content_type.as_deref(), &body)
            .map(Some)
            .map_err(|reason| DiscoveryError::Document { path: path.to_owned(), reason }),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(DiscoveryError::Request(Arc::new(error))),
    }
}

/// Fetches the resources of each version of `groups`, one document per version, and adds them to `found`.
async fn legacy(rest: &RestClient, mut groups: Vec<ApiGroup>, found: &mut ServerResources) {
    let group_versions: Vec<GroupVersion> = groups
        .iter()
        .flat_map(|group| {
            group.versions.iter().map(|version| GroupVersion::gv(&group.name, &version.version))
        })
        .collect();
    let requests = group_versions.into_iter().map(|group_version| resource_list(rest.clone(), group_version));
    // Responses are in the order of the requests, which is the order of the versions.
    let responses: Vec<_> = stream::iter(requests).buffered(LEGACY_REQUESTS_AT_ONCE).collect().await;
    let versions = groups.iter_mut().flat_map(|group| &mut group.versions);
    for (version, response) in versions.zip(responses) {
        match response {
            Ok(resources) => version.resources = resources,
            Err(failure) => found.failures.push(failure),
        }
    }
    found.groups.extend(groups);
}

async fn resource_list(
    rest: RestClient,
    group_version: GroupVersion,
) -> Result<Vec<ResourceInfo>, GroupVersionFailure> {
    let root = if group_version.group.is_empty() { "api" } else { "apis" };
    let path = format!("/{root}/{}", group_version.api_version());
    let resources = match document(&rest, &path, JSON).await {
        Ok((_, body)) => parse::resource_list(&group_version, &body).map_err(FailureReason::Document),
        Err(error) => Err(FailureReason::Request(Arc::new(error))),
    };
    resources.map_err(|reason| GroupVersionFailure { group_version, reason })
}

async fn document(rest: &RestClient, path: &str, accept: &str) -> Result<(Option<String>, Bytes), Error> {
    let request = rest.get().absolute_path(path).header(header::ACCEPT.as_str(), accept);
    let (headers, body) = request.head_and_body().await?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Ok((content_type.map(str::to_owned), body))
}

fn is_vanished(failure: &GroupVersionFailure) -> bool {
    matches!(&failure.reason, FailureReason::Request(error) if error.is_not_found())
}

fn is_status(error: &Error, code: u16) -> bool {
    error.status().is_some_and(|status| status.code == code)
}
