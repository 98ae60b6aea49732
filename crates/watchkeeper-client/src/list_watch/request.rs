//! Requests to a source.

use std::time::Duration;

use kube_core::params::VersionMatch;

use crate::decode::Identity;

/// A request for one page. The source determines the namespace and the selectors.
///
/// ```
/// use watchkeeper_client::list_watch::ListRequest;
///
/// let first = ListRequest::new().resource_version("0").limit(500);
/// let next = ListRequest::new().limit(500).continue_token("token of the page before");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ListRequest {
    /// The minimum resourceVersion of the list: `None` for the latest state, `0` for any, otherwise not older
    /// than this, unless [`ListRequest::version_match`] is set.
    pub resource_version: Option<String>,
    /// The interpretation of [`ListRequest::resource_version`].
    pub version_match: Option<VersionMatch>,
    /// The maximum number of objects per page; `None` for no limit.
    pub limit: Option<u32>,
    /// The token of the previous page.
    pub continue_token: Option<String>,
    /// Restricts the list to the object of this name. Selectors of the source still apply.
    pub object: Option<ObjectName>,
}

/// The name of one object of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
}

impl From<&Identity> for ObjectName {
    fn from(identity: &Identity) -> Self {
        Self { namespace: identity.namespace().map(str::to_owned), name: identity.name().to_owned() }
    }
}

impl ListRequest {
    /// Creates a request for the latest state, in one page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the minimum resourceVersion of the list.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self
    }

    /// Sets the interpretation of the resourceVersion: exactly this version, or not older than it.
    #[must_use]
    pub fn version_match(mut self, version_match: VersionMatch) -> Self {
        self.version_match = Some(version_match);
        self
    }

    /// Sets the maximum number of objects per page.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Restricts the list to the object of this name.
    #[must_use]
    pub fn object(mut self, object: ObjectName) -> Self {
        self.object = Some(object);
        self
    }

    /// Continues after the page that returned this token.
    #[must_use]
    pub fn continue_token(mut self, token: impl Into<String>) -> Self {
        self.continue_token = Some(token.into());
        self
    }
}

/// A request for a watch. Bookmarks are requested by default, because they keep the resourceVersion to resume
/// from recent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "DefaultEnableWatchBookmarks")]
pub struct WatchRequest {
    /// The resourceVersion after which the watch starts. With `None`, the server first sends an
    /// ADDED event for every existing object.
    pub resource_version: Option<String>,
    /// The time for which the server keeps the watch open. `None` lets the source choose a random time, so
    /// that many watches do not end at once.
    pub timeout: Option<Duration>,
    /// Whether the server may send bookmarks. Defaults to true.
    pub bookmarks: bool,
    /// Whether the watch is a streaming list: it starts with an ADDED event for every existing object, followed by a
    /// bookmark that is annotated with `k8s.io/initial-events-end`. Defaults to false.
    pub send_initial_events: bool,
}

impl Default for WatchRequest {
    fn default() -> Self {
        Self { resource_version: None, timeout: None, bookmarks: true, send_initial_events: false }
    }
}

impl WatchRequest {
    /// Creates a request without a start position.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the resourceVersion to start after.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self
    }

    /// Sets the time for which the server keeps the watch open.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Requests no bookmarks.
    #[must_use]
    #[doc(alias = "bookmarks")]
    pub fn without_bookmarks(mut self) -> Self {
        self.bookmarks = false;
        self
    }

    /// Requests an initial event for every existing object.
    #[must_use]
    pub fn send_initial_events(mut self) -> Self {
        self.send_initial_events = true;
        self
    }
}
