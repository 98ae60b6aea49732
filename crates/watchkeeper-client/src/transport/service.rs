//! The processing of one request: address, headers, credential, connection, and a retry after a 401.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::{
    Request, Response, StatusCode, Uri,
    header::{AUTHORIZATION, UPGRADE},
};
use hyper::body::Incoming;
use kube_client::client::Body;
use tower::{Service, ServiceExt as _};

use super::{
    TransportError, WarningHandler,
    credentials::{Credentials, Session},
    headers::DefaultHeaders,
    pool::Pool,
    tls::TlsMaterial,
    warning::warnings,
};

/// A service that sends requests to one API server.
///
/// Each request is sent to the configured address, whatever address it contains, so that a credential cannot
/// be sent elsewhere. Default headers and the credential are added unless the request sets them. The service
/// does not follow redirects, retry, wait or decompress, with two exceptions that cannot repeat an action: a
/// request that never left a pooled connection is sent on another, and a request that receives a 401 is sent
/// again once if a credential source has a new credential and the body is in memory.
#[derive(Clone)]
pub(crate) struct TransportService {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    credentials: Arc<Credentials>,
    headers: DefaultHeaders,
    warnings: Arc<dyn WarningHandler>,
}

impl TransportService {
    pub(crate) fn new(
        pool: Pool,
        credentials: Arc<Credentials>,
        headers: DefaultHeaders,
        warnings: Arc<dyn WarningHandler>,
    ) -> Self {
        Self { inner: Arc::new(Inner { pool, credentials, headers, warnings }) }
    }
}

impl Service<Request<Body>> for TransportService {
    type Response = Response<Incoming>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = self.inner.clone();
        Box::pin(async move { inner.exchange(request).await })
    }
}

impl Inner {
    async fn exchange(&self, mut request: Request<Body>) -> Result<Response<Incoming>, TransportError> {
        *request.uri_mut() = self.target(request.uri())?;
        self.headers.add_to(request.headers_mut());
        let brings_own = request.headers().contains_key(AUTHORIZATION);

        let may_change = !brings_own && self.credentials.can_change();
        let spare = if may_change { copy(&request) } else { None };
        let session = self.session().await?;
        let mut response = self.send(request, &session, brings_own).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(spare) = spare
            && self.credentials.replace(&session).await
        {
            // The connection is closed instead of drained, because the remaining size is unknown.
            drop(response);
            let session = self.session().await?;
            response = self.send(spare, &session, false).await?;
        }
        for warning in warnings(response.headers()) {
            self.warnings.handle(&warning);
        }
        Ok(response)
    }

    async fn session(&self) -> Result<Session, TransportError> {
        let session = self.credentials.session().await;
        session.map_err(|source| TransportError::Credential { server: self.server(), source })
    }

    async fn send(
        &self,
        mut request: Request<Body>,
        session: &Session,
        brings_own: bool,
    ) -> Result<Response<Incoming>, TransportError> {
        let credential = &session.credential;
        if let Some(authorization) = credential.authorization.as_ref().filter(|_| !brings_own) {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let material = TlsMaterial { identity: credential.identity.clone(), roots: credential.roots.clone() };
        let client = self.pool.client(material, request.headers().contains_key(UPGRADE))?;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        match client.oneshot(request).await {
            Ok(response) => {
                tracing::debug!(%method, path, status = response.status().as_u16(), "response received");
                Ok(response)
            }
            Err(error) => {
                let limit_bytes = self.pool.settings().head_limit_bytes();
                let error = TransportError::from_exchange(self.server(), limit_bytes, error);
                tracing::debug!(%method, path, %error, "request failed without a response");
                Err(error)
            }
        }
    }

    /// Combines the path and query of `requested` with the address of the server.
    fn target(&self, requested: &Uri) -> Result<Uri, TransportError> {
        let base = &self.pool.settings().server;
        join(base, requested).ok_or_else(|| TransportError::BadTarget {
            server: self.server(),
            length: requested.path_and_query().map_or(0, |path| path.as_str().len()),
        })
    }

    fn server(&self) -> String {
        self.pool.settings().server.to_string()
    }
}

impl fmt::Debug for TransportService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportService").field("server", &self.inner.server()).finish_non_exhaustive()
    }
}

/// Clones a request, if its body is in memory.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    *copy.version_mut() = request.version();
    Some(copy)
}

fn join(base: &Uri, requested: &Uri) -> Option<Uri> {
    let requested = requested.path_and_query().map_or("/", |path| path.as_str());
    let mut parts = base.clone().into_parts();
    let path = base.path().trim_end_matches('/');
    parts.path_and_query = Some(format!("{path}{requested}").try_into().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_to_the_configured_server_whatever_they_say() {
        for (base, requested, expected) in [
            ("https://a:6443", "/api/v1/pods?limit=1", "https://a:6443/api/v1/pods?limit=1"),
            ("https://a/k8s/c1/", "/api", "https://a/k8s/c1/api"),
            ("https://a", "http://evil.example/api?x", "https://a/api?x"),
            ("https://a", "evil.example:80", "https://a/"),
        ] {
            let joined = join(&base.parse().unwrap(), &requested.parse().unwrap()).unwrap();
            assert_eq!(joined.to_string(), expected);
        }
    }

    #[test]
    fn a_path_too_long_for_a_url_is_an_error_and_not_a_panic() {
        let base: Uri = format!("https://a/{}", "b".repeat(40_000)).parse().unwrap();
        let requested: Uri = format!("/{}", "c".repeat(40_000)).parse().unwrap();
        assert_eq!(join(&base, &requested), None);
    }
}
