//! Fault injection: errors, lost requests and responses, delays and broken watches, for tests of controllers.
//!
//! [`ApiServer::faults`](crate::ApiServer::faults) affects all clients of a server. [`Faults::client`] affects one client of
//! any server.
//!
//! # Guarantees
//!
//! - **Deterministic.** A fault applies to the next requests that match, in the order of their arrival. It contains no
//!   randomness, and delays use the clock of the server.
//! - **At most one fault per request:** the one that was added first, among those that match and are not exhausted.
//! - **The same in process and on a socket.** A lost request or response is a connection error of an in-process client. On a
//!   socket, it closes the HTTP/1.1 connection or resets the HTTP/2 stream.
//! - **A rejected or lost request has no effect; a lost response belongs to a request that was executed.** Authentication,
//!   authorization and admission run for executed requests only.
//! - **A cut watch ends with a connection error,** never as if it had timed out. All frames before the cut may be lost.
//! - **Proof.** [`ActiveFault::count`] returns how often a fault was injected, and [`ActiveFault::reached`] waits for it.
//! - **Controllers of the server itself,** such as garbage collection, are not affected.
//!
//! # Examples
//!
//! The first update of a config map fails with a conflict, the second succeeds:
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::{Api, api::PostParams};
//! use watchkeeper_apiserver::{ApiServer, faults::{Fault, Requests, Verb}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::in_process();
//! let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
//! let map = serde_json::from_str(r#"{"metadata": {"name": "settings"}}"#)?;
//! let map = maps.create(&PostParams::default(), &map).await?;
//!
//! let updates = Requests::of::<ConfigMap>().verb(Verb::Update).name("settings");
//! let conflict = server.faults().inject(updates, Fault::conflict().times(1));
//! assert!(maps.replace("settings", &PostParams::default(), &map).await.is_err());
//! assert!(maps.replace("settings", &PostParams::default(), &map).await.is_ok());
//! assert_eq!(conflict.count(), 1);
//! # Ok(())
//! # }
//! ```

mod active;
mod fault;
mod requests;
mod running;
#[cfg(test)]
mod tests;

use std::{fmt, io, sync::Arc};

use http::{Request, Response, request::Parts};
use kube_client::{Client, client::Body};
use parking_lot::Mutex;

pub(crate) use self::running::Cut;
pub use self::{active::ActiveFault, fault::Fault, requests::Requests};
pub use crate::http::Verb;

use self::{active::Rule, fault::Effect, requests::Target, running::RunningWatches};
use crate::{
    Clock, TokioClock,
    http::{ResponseBody, status_response},
};

/// A set of faults to inject into requests. Clones are handles to the same set.
///
/// [`ApiServer::faults`](crate::ApiServer::faults) returns the set for all clients of a server.
/// [`client`](Self::client) applies a set to one client. If several faults match a request, only the one that was injected
/// first applies. The [module documentation](self) has the guarantees.
///
/// # Examples
///
/// The watches of one client break, while other clients of the same server are not affected:
///
/// ```
/// use watchkeeper_apiserver::{ApiServer, faults::{Fault, Faults, Requests}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = ApiServer::in_process();
/// let faults = Faults::new();
/// let client = faults.client(&server.client());
///
/// let outage = faults.inject(Requests::all(), Fault::cut_watches());
/// // … what happens while the watches of `client` are broken …
/// drop(outage); // The watches can be started again.
/// # drop(client);
/// # }
/// ```
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    running: RunningWatches,
}

impl Default for Faults {
    fn default() -> Self {
        Self::new()
    }
}

impl Faults {
    /// Creates an empty set for the clients that [`Faults::client`] returns. Delays run on tokio's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(TokioClock::new()))
    }

    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::new(Shared { clock, state: Mutex::default() }) }
    }

    /// Injects `fault` into the requests that match `requests`, until the returned guard is dropped or the fault is
    /// exhausted ([`Fault::times`]).
    pub fn inject(&self, requests: Requests, fault: Fault) -> ActiveFault {
        let (mut rule, active) = active::activate(requests, fault, &self.shared);
        let mut state = self.shared.state.lock();
        if rule.effect() == &Effect::CutWatches {
            state.running.cut(|watch| rule.applies_to(watch));
        }
        state.rules.push(rule);
        active
    }

    /// Removes all faults. The counters of their guards remain readable.
    pub fn clear(&self) {
        self.shared.state.lock().rules.clear();
    }

    /// Returns a client of the same server whose requests, and only those, are affected by these faults.
    ///
    /// The server can be an [`ApiServer`](crate::ApiServer) or a real cluster.
    #[must_use]
    pub fn client(&self, client: &Client) -> Client {
        let (faults, inner) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, inner) = (faults.clone(), inner.clone());
            async move {
                let send = |request| async move {
                    let response = inner.send(request).await.map_err(io::Error::other)?;
                    Ok(response.map(ResponseBody::relayed))
                };
                faults.apply(request, send).await
            }
        });
        Client::new(service, client.default_namespace())
    }

    /// Sends a request, and applies the first fault that matches it.
    ///
    /// # Errors
    /// Returns the error of `send`, or a connection error if the request or the response is lost.
    pub(crate) async fn apply<B, F>(
        &self,
        request: Request<B>,
        send: impl FnOnce(Request<B>) -> F,
    ) -> Result<Response<ResponseBody>, io::Error>
    where
        F: Future<Output = Result<Response<ResponseBody>, io::Error>>,
    {
        let (parts, body) = request.into_parts();
        let (effect, cut) = self.meet(&parts);
        match &effect {
            Some(Effect::Reject(rejection)) => return Ok(status_response(rejection)),
            Some(Effect::LoseRequest | Effect::CutWatches) => return Err(connection_reset()),
            Some(Effect::DelayRequest(delay)) => self.shared.clock.sleep(*delay).await,
            Some(Effect::LoseResponse | Effect::DelayResponse(_)) | None => {}
        }
        let response = send(Request::from_parts(parts, body)).await?;
        match effect {
            Some(Effect::LoseResponse) => return Err(connection_reset()),
            Some(Effect::DelayResponse(delay)) => self.shared.clock.sleep(delay).await,
            _ => {}
        }
        Ok(match cut {
            Some(cut) if response.status().is_success() => response.map(|body| body.until(cut)),
            _ => response,
        })
    }

    /// Returns the effect on a request and, for a watch, the signal that cuts it.
    fn meet(&self, parts: &Parts) -> (Option<Effect>, Option<Cut>) {
        let mut state = self.shared.state.lock();
        if state.rules.is_empty() && !requests::may_watch(parts) {
            return (None, None);
        }
        let target = Target::of(parts);
        let effect =
            state.rules.iter_mut().find_map(|rule| rule.applies_to(&target).then(|| rule.effect().clone()));
        // Registered before the watch starts, so that no cut is missed.
        let cut = target.is_watch().then(|| state.running.add(target));
        (effect, cut)
    }
}

/// The error of a request whose connection was lost.
fn connection_reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by an injected fault")
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("active", &self.shared.state.lock().rules.len())
            .finish_non_exhaustive()
    }
}
