//! Clients of the tests.

use tower::Service as _;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::Client;

/// Returns a client that authenticates with a bearer token.
pub(crate) fn token_client(server: &ApiServer, token: &str) -> Client {
    let (service, token) = (server.service(), format!("Bearer {token}"));
    let service = tower::service_fn(
        move |mut request: http::Request<watchkeeper_client::kube_client::client::Body>| {
            let mut service = service.clone();
            request.headers_mut().insert("authorization", token.parse().unwrap());
            async move { service.call(request).await }
        },
    );
    Client::from_service(service, "default")
}
