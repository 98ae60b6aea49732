//! The effects of faults.

use std::time::Duration;

use crate::status::{ApiError, Details};

/// A fault: its effect on a request, and the number of requests that it affects.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_apiserver::faults::Fault;
///
/// let throttled = Fault::too_many_requests(1).times(3);
/// let second_write_is_lost = Fault::lose_response().skip(1).times(1);
/// let is_slow = Fault::delay_request(Duration::from_secs(20));
/// # drop((throttled, second_write_is_lost, is_slow));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a fault has no effect until it is injected"]
pub struct Fault {
    pub(super) effect: Effect,
    /// The number of matching requests that pass before the first one is affected.
    pub(super) skip: u64,
    /// The maximum number of affected requests.
    pub(super) times: u64,
}

/// The effect of a fault on a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// The server rejects the request with this status.
    Reject(ApiError),
    /// The request does not arrive, and the client receives a connection error.
    LoseRequest,
    /// The request is executed, and the client receives a connection error.
    LoseResponse,
    /// The request arrives after this delay.
    DelayRequest(Duration),
    /// The response is sent after this delay.
    DelayResponse(Duration),
    /// Running watches end with a connection error, and new ones fail with one.
    CutWatches,
}

impl Fault {
    fn new(effect: Effect) -> Self {
        Self { effect, skip: 0, times: u64::MAX }
    }

    /// Rejects requests with a `Status` of this HTTP code (400 to 599), reason and message.
    pub fn status(code: u16, reason: &'static str, message: &str) -> Self {
        Self::new(Effect::Reject(ApiError::new(code, reason, message)))
    }

    /// Rejects requests with 409 `Conflict`, as if another client had changed the object.
    pub fn conflict() -> Self {
        let message =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::status(409, "Conflict", message)
    }

    /// Rejects requests with 429 `TooManyRequests` and a `Retry-After` of this many seconds.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds: Some(retry_after_seconds), ..Details::default() };
        let message = "too many requests, please try again later";
        Self::new(Effect::Reject(ApiError::new(429, "TooManyRequests", message).with_details(details)))
    }

    /// Rejects requests with 500 `InternalError`.
    pub fn internal_error() -> Self {
        Self::status(500, "InternalError", "an internal error occurred")
    }

    /// Rejects requests with 503 `ServiceUnavailable`.
    pub fn unavailable() -> Self {
        Self::status(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    }

    /// Rejects requests with 410 `Expired`, as if the history before their resourceVersion were gone.
    ///
    /// [`ApiServer::expire_history`](crate::ApiServer::expire_history) removes the history itself.
    pub fn expired() -> Self {
        Self::status(410, "Expired", "the resourceVersion is too old")
    }

    /// Loses requests: they are not executed, and the client receives a connection error.
    pub fn lose_request() -> Self {
        Self::new(Effect::LoseRequest)
    }

    /// Loses responses: the requests are executed, and the client receives a connection error.
    pub fn lose_response() -> Self {
        Self::new(Effect::LoseResponse)
    }

    /// Delays requests before they are executed. A client that stops waiting cancels its request.
    ///
    /// A delay beyond the deadline of the client is a server that does not respond.
    pub fn delay_request(delay: Duration) -> Self {
        Self::new(Effect::DelayRequest(delay))
    }

    /// Delays the responses of executed requests.
    pub fn delay_response(delay: Duration) -> Self {
        Self::new(Effect::DelayResponse(delay))
    }

    /// Ends running watches with a connection error, and lets new ones fail with a connection error.
    ///
    /// Other requests are not affected. Each watch that ends or does not start counts.
    pub fn cut_watches() -> Self {
        Self::new(Effect::CutWatches)
    }

    /// Limits the fault to this many requests. Defaults to no limit.
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// Lets this many matching requests pass before the first one is affected. Defaults to 0.
    pub fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }
}
