//! The requests of one connection, and the deadlines that follow from them.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use http::Version;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{body::Slot, output::OutputCounter};
use crate::http::{limits::ConnectionLimits, websocket::Upgrade};

/// The limit that a connection exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    /// The head of a request was not complete in time.
    Header,
    /// The connection had no request during the idle timeout.
    Idle,
    /// A client on HTTP/1.1 did not read a response in time.
    Response,
}

/// The record of the requests of one connection.
pub(super) struct Activity {
    limits: ConnectionLimits,
    state: Mutex<State>,
    /// Notified when a deadline may have moved closer.
    changed: Notify,
    /// The bytes that are not yet written.
    pub(super) output: OutputCounter,
}

struct State {
    is_http2: bool,
    /// The number of requests whose response is not completely passed on.
    open_requests: usize,
    waiting: Waiting,
    responses: Vec<Pending>,
    upgrade: Option<Upgrade>,
    has_unread_body: bool,
}

/// The state of a connection without an open request.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    /// Waiting for the first request since the connection was made.
    FirstRequest(Instant),
    /// Waiting for the next request since the end of the last one.
    NextRequest(Instant),
    /// Waiting for a complete head since its first byte.
    Head(Instant),
}

/// A response that the client must read by `deadline`.
struct Pending {
    deadline: Instant,
    body: Weak<Slot>,
}

impl Activity {
    /// Starts the record of a new connection.
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            state: Mutex::new(State {
                is_http2: false,
                open_requests: 0,
                waiting: Waiting::FirstRequest(now()),
                responses: Vec::new(),
                upgrade: None,
                has_unread_body: false,
            }),
            changed: Notify::new(),
            output: OutputCounter::default(),
        }
    }

    /// Records a request. It is open until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> RequestGuard {
        let mut state = self.state.lock();
        state.is_http2 = version == Version::HTTP_2;
        state.open_requests += 1;
        state.has_unread_body = false;
        RequestGuard { activity: Arc::clone(self), is_http2: state.is_http2 }
    }

    /// Records that bytes arrived.
    pub(super) fn received(&self) {
        let mut state = self.state.lock();
        // Bytes on an idle HTTP/2 connection are frames such as replies to pings, not a head.
        if state.open_requests == 0
            && !state.is_http2
            && let Waiting::NextRequest(_) = state.waiting
        {
            state.waiting = Waiting::Head(now());
            self.changed.notify_one();
        }
    }

    /// Sets the deadline for reading a response. `watch_timeout` is the duration of a watch.
    pub(super) fn add_response(&self, body: &Arc<Slot>, watch_timeout: Option<Duration>) {
        let limit = watch_timeout.map_or(self.limits.response_timeout, |timeout| {
            timeout.saturating_add(self.limits.watch_write_grace)
        });
        let Some(deadline) = now().checked_add(limit) else { return };
        let pending = Pending { deadline, body: Arc::downgrade(body) };
        self.state.lock().responses.push(pending);
        self.changed.notify_one();
    }

    /// Removes the deadline of a response.
    pub(super) fn remove_response(&self, body: &Arc<Slot>) {
        let body = Arc::downgrade(body);
        self.state.lock().responses.retain(|pending| !pending.body.ptr_eq(&body));
    }

    /// Records that the response was sent before the body was read.
    pub(super) fn leave_body_unread(&self) {
        self.state.lock().has_unread_body = true;
    }

    /// Returns whether the client may still be sending a body that is not read. HTTP/2 resets such a stream itself.
    pub(super) fn has_unread_body(&self) -> bool {
        let state = self.state.lock();
        state.has_unread_body && !state.is_http2
    }

    /// Keeps the watch that is served after the protocol switch.
    pub(super) fn set_upgrade(&self, upgrade: Upgrade) {
        self.state.lock().upgrade = Some(upgrade);
    }

    /// Takes the watch that is served after the protocol switch.
    pub(super) fn take_upgrade(&self) -> Option<Upgrade> {
        self.state.lock().upgrade.take()
    }

    /// Waits until the connection has exceeded a limit.
    ///
    /// A response on HTTP/2 that was not read in time loses its body without ending the connection, because other
    /// requests share it.
    pub(super) async fn expired(&self) -> Expiry {
        loop {
            let next = self.state.lock().next(&self.limits);
            let Some((deadline, expiry)) = next else {
                self.changed.notified().await;
                continue;
            };
            tokio::select! {
                () = self.changed.notified() => continue,
                () = tokio::time::sleep_until(deadline) => {}
            }
            let mut state = self.state.lock();
            if state.next(&self.limits) != Some((deadline, expiry)) {
                continue;
            }
            if expiry != Expiry::Response || !state.is_http2 {
                return expiry;
            }
            let bodies = state.take_overdue(deadline);
            drop(state);
            for body in bodies {
                body.abandon();
            }
        }
    }

    fn end_request(&self) {
        let mut state = self.state.lock();
        state.open_requests -= 1;
        if state.open_requests == 0 {
            state.waiting = Waiting::NextRequest(now());
            self.changed.notify_one();
        }
    }
}

impl State {
    /// Returns the next deadline and its limit.
    fn next(&self, limits: &ConnectionLimits) -> Option<(Instant, Expiry)> {
        let response = self.responses.iter().map(|pending| pending.deadline).min();
        let response = response.map(|deadline| (deadline, Expiry::Response));
        if self.open_requests > 0 {
            return response;
        }
        let (since, limit, expiry) = match self.waiting {
            Waiting::FirstRequest(since) | Waiting::Head(since) => {
                (since, limits.header_timeout, Expiry::Header)
            }
            Waiting::NextRequest(since) => (since, limits.idle_timeout, Expiry::Idle),
        };
        since.checked_add(limit).map(|deadline| (deadline, expiry))
    }

    fn take_overdue(&mut self, deadline: Instant) -> Vec<Arc<Slot>> {
        let overdue = self.responses.extract_if(.., |pending| pending.deadline <= deadline);
        overdue.filter_map(|pending| pending.body.upgrade()).collect()
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// An open request. Dropping the guard ends the request.
#[derive(Debug)]
pub(super) struct RequestGuard {
    pub(super) activity: Arc<Activity>,
    pub(super) is_http2: bool,
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.activity.end_request();
    }
}

/// Returns the time of tokio's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of connections run on tokio's clock, which tests can pause"
)]
pub(in crate::http) fn now() -> Instant {
    Instant::now()
}
