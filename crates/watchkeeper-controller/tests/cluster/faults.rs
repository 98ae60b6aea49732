//! Fault injection for one client: slow, lost and rejected requests and responses.

use std::{sync::Arc, time::Duration};

use http::{Method, Request, Response};
use parking_lot::Mutex;
use tower::{BoxError, Service as _};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::Client;
use watchkeeper_client::kube_client::client::Body;

/// The fate of one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fate {
    Pass,
    /// The request is not sent, and the client receives an error.
    Lost,
    /// The request is executed, but the client receives an error.
    AnswerLost,
    /// The request is not sent, and the client receives no response.
    Hangs,
    /// The request is executed, but the client receives no response.
    AnswerHangs,
    /// The request arrives, and its response is returned, after these delays.
    Slow(Duration, Duration),
}

type Plan = Box<dyn FnMut(&Method, &str) -> Fate + Send>;

/// A client layer that decides the fate of requests and records them.
#[derive(Clone)]
pub(crate) struct Faults {
    plan: Arc<Mutex<Plan>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self::planned(|_, _| Fate::Pass)
    }

    pub(crate) fn planned(plan: impl FnMut(&Method, &str) -> Fate + Send + 'static) -> Self {
        Self { plan: Arc::new(Mutex::new(Box::new(plan))), requests: Arc::default() }
    }

    /// Replaces the plan.
    pub(crate) fn plan(&self, plan: impl FnMut(&Method, &str) -> Fate + Send + 'static) {
        *self.plan.lock() = Box::new(plan);
    }

    /// Returns `METHOD path` of each request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    pub(crate) fn client(&self, server: &ApiServer) -> Client {
        let (faults, service) = (self.clone(), server.service());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, mut service) = (faults.clone(), service.clone());
            async move {
                let fate = faults.fate(&request);
                match fate {
                    Fate::Pass | Fate::AnswerLost | Fate::AnswerHangs => {}
                    Fate::Lost => return Err(lost()),
                    Fate::Hangs => std::future::pending::<()>().await,
                    Fate::Slow(there, _) => tokio::time::sleep(there).await,
                }
                let response: Response<_> = service.call(request).await?;
                match fate {
                    Fate::AnswerLost => return Err(lost()),
                    Fate::AnswerHangs => std::future::pending::<()>().await,
                    Fate::Slow(_, back) => tokio::time::sleep(back).await,
                    _ => {}
                }
                Ok(response)
            }
        });
        Client::from_service(service, "default")
    }

    fn fate(&self, request: &Request<Body>) -> Fate {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        self.requests.lock().push(format!("{method} {path}"));
        (self.plan.lock())(&method, &path)
    }
}

fn lost() -> BoxError {
    "the connection broke".into()
}
