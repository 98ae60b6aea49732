//! What to ask of a source.

use std::time::Duration;

use kube_core::params::VersionMatch;

use crate::decode::Identity;

/// One page to ask for. Which objects (namespace, selectors) is the source's business.
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
    /// How new the list must be: none for the newest there is, `0` for any, else not older than this, unless
    /// [`ListRequest::version_match`] says otherwise.
    pub resource_version: Option<String>,
    /// How [`ListRequest::resource_version`] is meant.
    pub version_match: Option<VersionMatch>,
    /// How many objects a page may have; none for all.
    pub limit: Option<u32>,
    /// Goes on behind an earlier page.
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
    /// The newest state, in one page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how new the list must be.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self
    }

    /// Sets how the version is meant.
    #[must_use]
    pub fn version_match(mut self, version_match: VersionMatch) -> Self {
        self.version_match = Some(version_match);
        self
    }

    /// Sets how many objects a page may have.
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

    /// Goes on behind the page that gave this token.
    #[must_use]
    pub fn continue_token(mut self, token: impl Into<String>) -> Self {
        self.continue_token = Some(token.into());
        self
    }
}

/// A watch to ask for. Bookmarks are asked for unless told otherwise: they keep the version to resume from young.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchRequest {
    /// Where to start: behind this version.
    pub resource_version: Option<String>,
    /// How long the server shall keep the watch open; none for a random time of the source's choosing, so that many
    /// watches do not end at once.
    pub timeout: Option<Duration>,
    /// Whether the server may send bookmarks.
    pub bookmarks: bool,
    /// Whether to begin with an event for every object there is, ended by a bookmark that says so.
    pub send_initial_events: bool,
}

impl Default for WatchRequest {
    fn default() -> Self {
        Self { resource_version: None, timeout: None, bookmarks: true, send_initial_events: false }
    }
}

impl WatchRequest {
    /// A watch from wherever the server likes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts behind this version.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self
    }

    /// Sets how long the server shall keep the watch open.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Asks for no bookmarks.
    #[must_use]
    pub fn without_bookmarks(mut self) -> Self {
        self.bookmarks = false;
        self
    }

    /// Begins with an event for every object there is.
    #[must_use]
    pub fn send_initial_events(mut self) -> Self {
        self.send_initial_events = true;
        self
    }
}
