//! Conversion of kube's parameter types to query strings.

use http::HeaderValue;
use kube_core::{
    params::{
        DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, ValidationDirective,
        VersionMatch, WatchParams,
    },
    subresource::LogParams,
};
use serde::Serialize;

use super::request::InvalidRequest;

/// Parameters that become part of a query string.
///
/// Implemented for kube's own parameter types, so that code written against `kube::Api` keeps them. Parameters are sent
/// unchanged. A combination that every server rejects is rejected before it is sent.
pub trait QueryParams {
    /// Checks the parameters and appends them to `query`.
    ///
    /// # Errors
    /// Returns [`InvalidRequest::Params`] if the parameters contradict each other.
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest>;
}

/// The query parameters of a request, in the order in which they were added.
///
/// Names and values are stored unencoded. They are percent-encoded when the request is converted for sending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Adds a parameter. A name may occur more than once.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.pairs.push((name.into(), value.into()));
    }

    fn push_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    /// Returns whether the query has no parameters.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(crate) fn encoded(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.pairs).finish()
    }
}

/// Returns the version, or `None` for an empty one: both mean the newest state, and absence is the documented form.
fn version(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|version| !version.is_empty())
}

/// The server's limit on the length of a field manager's name.
const FIELD_MANAGER_BYTES: usize = 128;

fn field_manager(value: Option<&String>) -> Result<Option<&str>, InvalidRequest> {
    match value {
        Some(manager) if manager.len() > FIELD_MANAGER_BYTES => {
            Err(InvalidRequest::Params("a field manager has at most 128 bytes"))
        }
        manager => Ok(manager.map(String::as_str)),
    }
}

impl QueryParams for ListParams {
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest> {
        let at = version(self.resource_version.as_ref());
        match (&self.version_match, at) {
            (Some(_), None) => {
                return Err(InvalidRequest::Params("version_match needs a resource_version to match"));
            }
            (Some(VersionMatch::Exact), Some("0")) => {
                return Err(InvalidRequest::Params(
                    "an exact version_match needs a resource_version other than 0",
                ));
            }
            _ => {}
        }
        query.push_some("labelSelector", self.label_selector.as_deref());
        query.push_some("fieldSelector", self.field_selector.as_deref());
        if let Some(limit) = self.limit {
            query.push("limit", limit.to_string());
        }
        // The token contains the version that is being read; servers reject a version beside it.
        if let Some(token) = self.continue_token.as_deref().filter(|token| !token.is_empty()) {
            query.push("continue", token);
            return Ok(());
        }
        query.push_some("resourceVersion", at);
        query.push_some(
            "resourceVersionMatch",
            self.version_match.as_ref().map(|version_match| match version_match {
                VersionMatch::NotOlderThan => "NotOlderThan",
                VersionMatch::Exact => "Exact",
            }),
        );
        Ok(())
    }
}

/// The default timeout of a watch, as in kube. Without the parameter, a server ends a watch after 30 to 60 minutes, and
/// a dead connection could stay unnoticed for that long.
const WATCH_TIMEOUT_SECONDS: u32 = 290;

impl QueryParams for WatchParams {
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest> {
        if self.send_initial_events && !self.bookmarks {
            return Err(InvalidRequest::Params(
                "send_initial_events needs bookmarks, which mark where they end",
            ));
        }
        query.push("watch", "true");
        query.push("timeoutSeconds", self.timeout.unwrap_or(WATCH_TIMEOUT_SECONDS).to_string());
        query.push_some("labelSelector", self.label_selector.as_deref());
        query.push_some("fieldSelector", self.field_selector.as_deref());
        if self.bookmarks {
            query.push("allowWatchBookmarks", "true");
        }
        if self.send_initial_events {
            query.push("sendInitialEvents", "true");
            query.push("resourceVersionMatch", "NotOlderThan");
        }
        Ok(())
    }
}

impl QueryParams for GetParams {
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest> {
        query.push_some("resourceVersion", version(self.resource_version.as_ref()));
        Ok(())
    }
}

impl QueryParams for PostParams {
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest> {
        if self.dry_run {
            query.push("dryRun", "All");
        }
        query.push_some("fieldManager", field_manager(self.field_manager.as_ref())?);
        Ok(())
    }
}

impl QueryParams for PatchParams {
    /// Appends the parameters. [`ApiRequest::patch`](super::ApiRequest::patch) checks `force` against the kind of patch.
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest> {
        if self.dry_run {
            query.push("dryRun", "All");
        }
        if self.force {
            query.push("force", "true");
        }
        query.push_some("fieldManager", field_manager(self.field_manager.as_ref())?);
        query.push_some("fieldValidation", self.field_validation.as_ref().map(ValidationDirective::as_str));
        Ok(())
    }
}

impl QueryParams for LogParams {
    fn append_to(&self, query: &mut Query) -> Result<(), InvalidRequest> {
        if self.since_seconds.is_some() && self.since_time.is_some() {
            return Err(InvalidRequest::Params(
                "a log starts at since_seconds or at since_time, not at both",
            ));
        }
        query.push_some("container", self.container.as_deref());
        let number = |value: Option<i64>| value.map(|value| value.to_string());
        let flags = [
            ("follow", self.follow),
            ("previous", self.previous),
            ("timestamps", self.timestamps),
            ("pretty", self.pretty),
        ];
        for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
            query.push(name, "true");
        }
        query.push_some("limitBytes", number(self.limit_bytes).as_deref());
        query.push_some("tailLines", number(self.tail_lines).as_deref());
        query.push_some("sinceSeconds", number(self.since_seconds).as_deref());
        query.push_some("sinceTime", self.since_time.map(|time| time.to_string()).as_deref());
        Ok(())
    }
}

/// Returns the content type and the body of a patch.
pub(crate) fn patch_body<P: Serialize>(patch: &Patch<P>) -> Result<(HeaderValue, Vec<u8>), InvalidRequest> {
    let (content_type, body) = match patch {
        Patch::Apply(body) => ("application/apply-patch+yaml", serde_json::to_vec(body)),
        Patch::Json(body) => ("application/json-patch+json", serde_json::to_vec(body)),
        Patch::Merge(body) => ("application/merge-patch+json", serde_json::to_vec(body)),
        Patch::Strategic(body) => ("application/strategic-merge-patch+json", serde_json::to_vec(body)),
        _ => {
            return Err(InvalidRequest::Params("this kind of patch is not supported"));
        }
    };
    Ok((HeaderValue::from_static(content_type), body.map_err(|_| InvalidRequest::Body)?))
}

/// Returns the body of a deletion, or `None` for the default options.
pub(crate) fn delete_body(params: &DeleteParams) -> Result<Option<Vec<u8>>, InvalidRequest> {
    if *params == DeleteParams::default() {
        return Ok(None);
    }
    serde_json::to_vec(params).map(Some).map_err(|_| InvalidRequest::Body)
}
