//! Asking what the server serves, once.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::version::Info;
use kube_core::GroupVersion;
use serde::Deserialize;

use super::{cache::Cache, error::DiscoveryError, fetch, model::ServerResources};
use crate::{Error, rest::RestClient};

/// Tells which groups, versions and resources a server has, and which version of Kubernetes it is.
///
/// The answer is kept in memory, for as long as the client lives, until [`invalidate`](Self::invalidate) or a
/// [`refresh`](Self::refresh) that succeeds; how old it is, [`age`](Self::age) says. Clones share it, and callers
/// that need it at the same time share one fetch. A fetch is two requests to a server that speaks aggregated
/// discovery (Kubernetes 1.30 and later do), and one more for each group-version to one that does not. Dropping a
/// call is safe at any point: whoever waits next takes over.
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
#[derive(Clone)]
pub struct DiscoveryClient {
    rest: RestClient,
    cache: Arc<Cache<ServerResources, DiscoveryError>>,
}

impl DiscoveryClient {
    /// A discovery client that has asked for nothing yet.
    pub fn new(rest: impl Into<RestClient>) -> Self {
        Self { rest: rest.into(), cache: Arc::new(Cache::new()) }
    }

    /// What the server serves, from memory if it is there.
    ///
    /// # Errors
    /// When nothing could be learnt. What could be learnt only in part is no error: see
    /// [`ServerResources::failures`].
    pub async fn server_resources(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        self.cache.get(async || fetch::server_resources(&self.rest).await).await
    }

    /// What the server serves now, asked for after this call. When that fails, what was known stays.
    ///
    /// # Errors
    /// As [`server_resources`](Self::server_resources).
    pub async fn refresh(&self) -> Result<Arc<ServerResources>, DiscoveryError> {
        self.cache.refresh(async || fetch::server_resources(&self.rest).await).await
    }

    /// Forgets what was known; the next call that needs it asks again.
    pub fn invalidate(&self) {
        self.cache.invalidate();
    }

    /// What is known without asking.
    pub fn cached(&self) -> Option<Arc<ServerResources>> {
        self.cache.peek()
    }

    /// How long ago what is known was asked for; `None` when nothing is known.
    pub fn age(&self) -> Option<Duration> {
        self.cache.age()
    }

    /// Which version of Kubernetes the server is. Asked for each time, so that it serves as a sign of life.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn server_version(&self) -> Result<Info, Error> {
        self.rest.get().absolute_path("/version").send().await
    }

    /// The group-versions the server has `OpenAPI` v3 documents for, `apis/apps/v1` for example, each with the
    /// path and query its document is at. The query names the content, so it changes when the document does.
    ///
    /// # Errors
    /// When the request fails.
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

    /// The `OpenAPI` v3 document of a group-version, as it is.
    ///
    /// # Errors
    /// When the request fails.
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
