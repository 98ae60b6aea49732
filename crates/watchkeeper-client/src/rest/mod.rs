//! API requests as values, and the clients that send them.
//!
//! Most programs use [`ResourceClient`], which [`Client::resource`] returns: get, list, watch, create, update, patch, apply and
//! delete of one type. [`RestClient`] sends single requests to any other path.
//!
//! | file | contents |
//! |---|---|
//! | `path` | [`ResourcePath`]: a validated path with percent-encoded segments, which can be parsed from text |
//! | `request` | [`ApiRequest`]: verb, path, parameters and body of a request, without any I/O |
//! | `builder` | [`RequestBuilder`]: builds and sends an [`ApiRequest`] |
//! | `resource` | [`ResourceClient`]: the verbs of one type |
//! | `retry` | [`Retry`] and [`retry_on_conflict`] |
//! | `stream` | [`ByteStream`]: a response body as a stream |

mod builder;
mod deadline;
mod info;
mod params;
mod path;
mod request;
mod resource;
mod response;
mod retry;
mod retry_after;
mod stream;

pub use builder::RequestBuilder;
pub(crate) use deadline::Deadline;
pub use deadline::Deadlines;
pub use info::{RequestInfo, RequestTarget, Verb};
pub use params::{Query, QueryParams};
pub use path::{AbsolutePath, PathError, ResourcePath, Segment};
pub use request::{ApiRequest, InvalidRequest};
pub use resource::{Deletion, KnownScope, KnownType, ResourceClient, ToResourceClient};
pub use retry::{Backoff, ConflictError, Retry, retry_on_conflict};
pub(crate) use retry_after::from_status as retry_after_of_status;
pub use stream::ByteStream;

use kube_core::params::Patch;
use serde::Serialize;

use crate::Client;

/// The client of single requests: verb, resource, namespace, name, subresource, query and body in, result out.
///
/// All other clients are built on this one. Use it for a resource or path that none of them covers. The guarantees of
/// [`Client`] hold. In addition, paths are checked, and a response that is not a success is an [`Error`](crate::Error)
/// that names the request. Cheap to clone.
///
/// ```
/// # use watchkeeper_client::{Client, Error};
/// # use kube_core::{ObjectList, params::ListParams};
/// # use k8s_openapi::api::core::v1::Pod;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let server = watchkeeper_apiserver::ApiServer::in_process();
/// # let client = Client::from(server.client());
/// let rest = client.rest();
/// let pods: ObjectList<Pod> = rest
///     .get()
///     .namespace("default")
///     .resource("pods")
///     .params(&ListParams::default().limit(500))
///     .send()
///     .await?;
/// assert!(pods.items.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RestClient {
    client: Client,
}

impl RestClient {
    /// Returns a REST client over `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the client that requests are sent through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Starts a request that reads an object or, without a name, a collection.
    pub fn get(&self) -> RequestBuilder {
        self.verb(Verb::Get)
    }

    /// Starts a request that creates an object.
    pub fn post(&self) -> RequestBuilder {
        self.verb(Verb::Create)
    }

    /// Starts a request that replaces an object.
    pub fn put(&self) -> RequestBuilder {
        self.verb(Verb::Update)
    }

    /// Starts a request that patches an object.
    pub fn patch<P: Serialize>(&self, patch: &Patch<P>) -> RequestBuilder {
        self.verb(Verb::Patch).patch_body(patch)
    }

    /// Starts a request that deletes an object or, without a name, a collection.
    pub fn delete(&self) -> RequestBuilder {
        self.verb(Verb::Delete)
    }

    /// Starts a request with any verb.
    pub fn verb(&self, verb: Verb) -> RequestBuilder {
        RequestBuilder::new(self.clone(), verb)
    }

    /// Starts a request from an existing [`ApiRequest`].
    pub fn request(&self, request: ApiRequest) -> RequestBuilder {
        RequestBuilder::of(self.clone(), request)
    }
}

impl From<Client> for RestClient {
    fn from(client: Client) -> Self {
        Self::new(client)
    }
}

impl From<&Client> for RestClient {
    fn from(client: &Client) -> Self {
        Self::new(client.clone())
    }
}
