//! A check that the API server grants declared access.

use std::fmt;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use watchkeeper_client::{Client, Error};

use super::{Access, Verb, rules};

/// The maximum number of concurrent reviews.
const MAX_CONCURRENT_REVIEWS: usize = 8;

/// A verb that is declared but not granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct MissingAccess {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource, followed by a slash and the subresource if there is one.
    pub resource: String,
    /// The namespace, or `None` for all namespaces.
    pub namespace: Option<String>,
    /// The verb that is not granted.
    pub verb: Verb,
}

impl fmt::Display for MissingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => f.write_str(" in all namespaces"),
        }
    }
}

/// The reason that a check of declared access failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Some declared verbs are not granted.
    #[error(
        "check declared access: the API server denies this program: {}; grant access with a role and a binding, such as those \
         of rbac::Manifests",
        List(missing)
    )]
    Missing {
        /// The verbs that are not granted.
        missing: Vec<MissingAccess>,
    },
    /// The API server could not be queried.
    #[error("check declared access: {source}")]
    Review {
        /// The client error.
        #[source]
        source: Box<Error>,
    },
}

struct List<'a>(&'a [MissingAccess]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, missing) in self.0.iter().enumerate() {
            write!(f, "{}{missing}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Queries the API server for each declared verb and returns those that are not granted, sorted and without
/// duplicates.
///
/// # Errors
/// Returns the client error if a review fails.
pub async fn missing_access(client: &Client, declared: &[Access]) -> Result<Vec<MissingAccess>, Error> {
    let reviews = stream::iter(reviews(declared)).map(|access| review(client, access));
    let mut missing: Vec<MissingAccess> = reviews
        .buffer_unordered(MAX_CONCURRENT_REVIEWS)
        .try_filter_map(|missing| async { Ok(missing) })
        .try_collect()
        .await?;
    missing.sort();
    Ok(missing)
}

/// Returns the verbs to review, each once, derived from the rules that are to be installed.
fn reviews(declared: &[Access]) -> Vec<MissingAccess> {
    let rules = rules(declared);
    let all = std::iter::once((None, rules.cluster))
        .chain(rules.namespaces.into_iter().map(|(namespace, rules)| (Some(namespace), rules)));
    let mut reviews = Vec::new();
    for (namespace, rules) in all {
        for rule in rules {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    for verb in rule.verbs.iter().filter_map(|verb| Verb::parse(verb)) {
                        let (group, resource) = (group.clone(), resource.clone());
                        reviews.push(MissingAccess { group, resource, namespace: namespace.clone(), verb });
                    }
                }
            }
        }
    }
    reviews
}

/// Returns `access` if the API server does not grant it.
async fn review(client: &Client, access: MissingAccess) -> Result<Option<MissingAccess>, Error> {
    let (resource, subresource) = match access.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (access.resource.as_str(), None),
    };
    let attributes = ResourceAttributes {
        group: Some(access.group.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        namespace: access.namespace.clone(),
        verb: Some(access.verb.as_str().to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews = client.clientset().authorization_v1().self_subject_access_reviews();
    let reviewed = reviews.create(&review).await?;
    let is_allowed = reviewed.status.is_some_and(|status| status.allowed);
    Ok((!is_allowed).then_some(access))
}
