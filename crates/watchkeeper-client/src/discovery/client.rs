//! The discovery client.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::version::Info;
use kube_core::GroupVersion;
use serde::Deserialize;

use super::{cache::FetchCache, error::DiscoveryError, fetch, model::ServerResources};
use crate::{Error, rest::RestClient};

/// A client for the discovery API: the groups, versions and resources of a server, and its Kubernetes
/// version.
///
/// The result is cached in memory until [`invalidate`](Self::invalidate) or a successful
/// [`refresh`](Self::refresh); [`age`](Self::age) returns its age. Clones share the cache, and concurrent
/// callers share one fetch. A fetch takes two requests to a server with aggregated discovery (Kubernetes 1.30
/// and later), and one more per group-version to other servers. Calls can be dropped at any point: the next
/// waiting caller takes over.
///
/// ```no_run
/// # async fn example(client: watchkeeper_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use watchkeeper_client::discovery::DiscoveryClient;
///
/// let discovery = DiscoveryClient::new(&client);
/// println!("Kubernetes {}", discovery.server_version().await?.git_version);
/// let served = discovery.server_resources().await?;
/// for row in served.api_resources() {
///     println!("{} {} {}", row.resource.name, row.api_version(), row.resource.kind);
/// }
/// for failure in &served.failures {
///     println!("not known: {failure}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "CachedDiscoveryInterface")]
#[derive(Clone)]
#[doc(alias = "NewDiscoveryClientForConfig")]
pub struct DiscoveryClient {
    rest: RestClient,
    cache: Arc<FetchCache<ServerResources, DiscoveryError>>,
}

impl DiscoveryClient {
    /// Creates a discovery client with an empty cache.
    #[doc(alias = "NewMemCacheClient")]
    pub fn new(rest: impl Into<RestClient>) -> Self {
        Self { rest: rest.into(), cache: Arc::new(FetchCache::new()) }
    }

    /// Returns the resources of the server, from the cache if possible.
    ///
    /// # Errors
    /// Returns a [`DiscoveryError`] if discovery failed completely. A partial failure is not an error: see
    /// [`ServerResources::failures`].
    #[doc(alias = "ServerGroupsInterface")]
    #[doc(alias = "list_api_groups")]
    pub async fn server_resources(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        self.cache.get(async || fetch::server_resources(&self.rest).await).await
    }

    /// Fetches the resources of the server after this call. If that fails, the cached value is kept.
    ///
    /// # Errors
    /// Returns the same errors as [`server_resources`](Self::server_resources).
    pub async fn refresh(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        self.cache.refresh(async || fetch::server_resources(&self.rest).await).await
    }

    /// Invalidates the cache; the next call that needs the resources fetches them.
    pub fn invalidate(&self) {
        self.cache.invalidate();
    }

    /// Returns the cached resources without a request.
    #[doc(alias = "ErrCacheNotFound")]
    pub fn cached(&self) -> Option<Arc<ServerResources>> {
        self.cache.peek()
    }

    /// Returns the age of the cached resources; `None` if the cache is empty.
    pub fn age(&self) -> Option<Duration> {
        self.cache.age()
    }

    /// Returns the Kubernetes version of the server. Every call sends a request, so this can serve as a
    /// liveness check.
    ///
    /// # Errors
    /// Returns an [`Error`] if the request fails.
    #[doc(alias = "ServerVersionInterface")]
    #[doc(alias = "apiserver_version")]
    pub async fn server_version(&self) -> Result<Info, Error> {
        self.rest.get().absolute_path("/version").send().await
    }

    /// Returns the group-versions that have an `OpenAPI` v3 document, such as `apis/apps/v1`, each with the
    /// path and query of the document. The query contains a hash of the content, so it changes with the
    /// document.
    ///
    /// # Errors
    /// Returns an [`Error`] if the request fails.
    pub async fn openapi_v3_paths(&self) -> Result<BTreeMap<String, String>, Error> {
        #[derive(Deserialize)]
        struct Index {
            paths: BTreeMap<String, Document>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Document {
            #[serde(rename = "serverRelativeURL")]
            server_relative_url: String,
        }
        let index: Index = self.rest.get().absolute_path("/openapi/v3").send().await?;
        Ok(index.paths.into_iter().map(|(path, document)| (path, document.server_relative_url)).collect())
    }

    /// Returns the `OpenAPI` v3 document of a group-version, unmodified.
    ///
    /// # Errors
    /// Returns an [`Error`] if the request fails.
    #[doc(alias = "OpenAPIV3SchemaInterface")]
    pub async fn openapi_v3(&self, group_version: &GroupVersion) -> Result<serde_json::Value, Error> {
        let root = if group_version.group.is_empty() { "api" } else { "apis" };
        let path = format!("/openapi/v3/{root}/{}", group_version.api_version());
        self.rest.get().absolute_path(&path).send().await
    }
}

impl fmt::Debug for DiscoveryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscoveryClient").field("age", &self.age()).finish_non_exhaustive()
    }
}
