//! A client layer that rejects the writes of a replica that does not lead.

use http::{Method, Request, Response};
use tower::BoxError;
use watchkeeper_client::Client;
use watchkeeper_client::kube_client::client::Body;

use super::Leadership;

/// The error of a write that was not sent, because this replica does not hold the lease.
///
/// Returned by clients of [`Leadership::fence`], as a source of the client's error. A manager uses such a client if
/// [`ManagerOptions::fences_writes`](crate::options::ManagerOptions::fences_writes) is set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "write rejected: replica {identity} does not hold the lease {lease}; stop work when leadership is lost"
)]
#[non_exhaustive]
pub struct NotLeading {
    /// The name of the lease.
    pub lease: String,
    /// The identity of this replica.
    pub identity: String,
}

pub(super) fn fence(client: &Client, leadership: Leadership) -> Client {
    let kube = client.transport().clone();
    let namespace = kube.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (kube, leadership) = (kube.clone(), leadership.clone());
        async move { send(&kube, &leadership, request).await }
    });
    client.clone().with_transport(watchkeeper_client::kube_client::Client::new(service, namespace))
}

async fn send(
    kube: &watchkeeper_client::kube_client::Client,
    leadership: &Leadership,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_read && !leadership.is_leader() {
        let (lease, identity) = (leadership.name().to_owned(), leadership.identity().to_owned());
        return Err(NotLeading { lease, identity }.into());
    }
    Ok(kube.send(request).await?)
}
