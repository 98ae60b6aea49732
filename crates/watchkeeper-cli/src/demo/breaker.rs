//! A fault to inject: watches that break, and stay broken until they are mended.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame};
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;
use tower::BoxError;
use watchkeeper::{
    client::Client,
    kube_client::{self, client::Body},
};

/// Stands between a client and its server. When it is broken, watches that run are cut and new ones are refused; every
/// other request passes.
#[derive(Debug, Clone)]
pub(super) struct Breaker {
    is_broken: watch::Sender<bool>,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self { is_broken: watch::Sender::new(false) }
    }

    /// Cuts every watch.
    pub(super) fn cut(&self) {
        self.is_broken.send_replace(true);
    }

    /// Lets watches pass again.
    pub(super) fn mend(&self) {
        self.is_broken.send_replace(false);
    }

    /// A client of the same server, with this in between.
    pub(super) fn client(&self, client: &Client) -> Client {
        let (inner, breaker) = (client.transport().clone(), self.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (transport, breaker) = (inner.clone(), breaker.clone());
            async move { breaker.send(&transport, request).await }
        });
        client.clone().with_transport(kube_client::Client::new(service, client.default_namespace()))
    }

    async fn send(
        &self,
        transport: &kube_client::Client,
        request: Request<Body>,
    ) -> Result<Response<Cuttable>, BoxError> {
        let is_watch = is_watch(&request);
        if is_watch && *self.is_broken.borrow() {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        let response = transport.send(request).await?;
        Ok(response.map(|body| Cuttable { body, cut: is_watch.then(|| self.cut_signal()) }))
    }

    fn cut_signal(&self) -> ReusableBoxFuture<'static, ()> {
        let mut receiver = self.is_broken.subscribe();
        ReusableBoxFuture::new(async move {
            // The sender is held by the client that this body came from; when it is gone, nobody cuts any more.
            if receiver.wait_for(|is_broken| *is_broken).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// A body that ends in an error when the breaker is broken.
#[derive(Debug)]
pub(super) struct Cuttable {
    body: Body,
    cut: Option<ReusableBoxFuture<'static, ()>>,
}

impl HttpBody for Cuttable {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.cut.as_mut().is_some_and(|cut| cut.poll(context).is_ready()) {
            self.cut = None;
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionReset).into())));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use watchkeeper::apiserver::ApiServer;

    use super::*;

    const WATCH: &str = "/api/v1/namespaces?watch=true&resourceVersion=0";

    async fn send(client: &Client, path: &str) -> Result<Response<Body>, kube_client::Error> {
        client.transport().send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    #[tokio::test]
    async fn a_cut_ends_running_watches_and_refuses_new_ones_until_it_is_mended() {
        let server = ApiServer::in_process();
        let breaker = Breaker::new();
        let client = breaker.client(&server.client().into());
        let mut running = send(&client, WATCH).await.unwrap().into_body();
        assert!(running.frame().await.unwrap().is_ok());

        breaker.cut();
        loop {
            match running.frame().await {
                Some(Ok(_)) => {}
                Some(Err(_)) => break,
                None => panic!("a cut is not an orderly end"),
            }
        }
        assert!(send(&client, WATCH).await.is_err());
        assert!(send(&client, "/api/v1/namespaces").await.is_ok());

        breaker.mend();
        let mut again = send(&client, WATCH).await.unwrap().into_body();
        assert!(again.frame().await.unwrap().is_ok());
    }
}
