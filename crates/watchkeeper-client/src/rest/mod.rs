//! Requests as values, and the clients that send them.
//!
//! | module | what it is |
//! |---|---|
//! | `path` | [`ResourcePath`]: checked, encoded, parses back |
//! | `request` | [`Request`]: a verb on a path with parameters and body; pure |
//! | `builder` | [`RequestBuilder`]: the same, word by word, and sending it |
//! | `resource` | [`ResourceClient`]: the verbs of one type |
//! | `retry` | [`Retry`] and [`retry_on_conflict`] |
//! | `stream` | [`ByteStream`]: an answer as it arrives |

#![expect(
    clippy::missing_errors_doc,
    reason = "everything here fails with Error, InvalidRequest or PathError, and their variants say when"
)]

mod answer;
mod builder;
mod deadline;
mod info;
mod params;
mod path;
mod request;
mod resource;
mod retry;
mod retry_after;
mod stream;

pub use builder::RequestBuilder;
pub use deadline::Deadlines;
pub use info::{RequestInfo, Target, Verb};
pub use params::{Query, QueryParams};
pub use path::{AbsolutePath, PathError, ResourcePath, Segment};
pub use request::{InvalidRequest, Request};
pub use resource::{Deletion, ResourceClient};
pub use retry::{Backoff, Retry, retry_on_conflict};
pub use retry_after::{MAX_RETRY_AFTER, from_status as retry_after_of_status, retry_after};
pub use stream::ByteStream;

use kube_core::params::Patch;
use serde::Serialize;

use crate::Client;

/// The most basic client: verb, resource, namespace, name, subresource, query and body in, result out.
///
/// What every other client here is made of, and what to use for a resource or path none of them knows. Each request
/// has a deadline, each answer a limit, paths are checked, redirects are not followed, an answer that is not a success
/// is an [`Error`](crate::Error) that says what was tried; nothing is sent twice unless [`RequestBuilder::retry`]
/// asks for it, and then only reads. Cheap to clone.
///
/// ```no_run
/// # use watchkeeper_client::{Error, rest::RestClient};
/// # use kube_core::{ObjectList, params::ListParams};
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(rest: RestClient) -> Result<(), Error> {
/// let pods: ObjectList<Pod> = rest
///     .get()
///     .namespace("default")
///     .resource("pods")
///     .params(&ListParams::default().limit(500))
///     .send()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RestClient {
    client: Client,
    deadlines: Deadlines,
}

impl RestClient {
    /// A REST client over `client`.
    pub fn new(client: Client) -> Self {
        Self { client, deadlines: Deadlines::default() }
    }

    /// The same client with other deadlines.
    #[must_use]
    pub fn with_deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// The client requests go through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How long requests may take when they do not say so themselves.
    pub fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Reads an object or, without a name, a collection.
    pub fn get(&self) -> RequestBuilder {
        self.verb(Verb::Get)
    }

    /// Creates an object.
    pub fn post(&self) -> RequestBuilder {
        self.verb(Verb::Create)
    }

    /// Replaces an object.
    pub fn put(&self) -> RequestBuilder {
        self.verb(Verb::Update)
    }

    /// Changes an object.
    pub fn patch<P: Serialize>(&self, patch: &Patch<P>) -> RequestBuilder {
        self.verb(Verb::Patch).patch_body(patch)
    }

    /// Deletes an object or, without a name, a collection.
    pub fn delete(&self) -> RequestBuilder {
        self.verb(Verb::Delete)
    }

    /// Any verb.
    pub fn verb(&self, verb: Verb) -> RequestBuilder {
        RequestBuilder::new(self.clone(), verb)
    }

    /// Sends a request made elsewhere.
    pub fn request(&self, request: Request) -> RequestBuilder {
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
