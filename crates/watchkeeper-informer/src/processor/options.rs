//! How a handler wants to be told.

use std::{sync::Arc, time::Duration};

/// How one listener behaves.
///
/// # What a slow handler costs
///
/// Events wait in a log that all listeners share, so a handler that lags costs nothing but the objects the
/// log keeps alive. When it lags past [`max_lag_events`](Self::max_lag_events) or
/// [`max_lag_age`](Self::max_lag_age), its backlog is *coalesced*: for each key it keeps what the handler was
/// given last and what the object is now, and nothing in between. That takes memory for the live keys at
/// most, however long the handler is stuck. When the backlog is worked off, the listener goes back to the
/// log.
///
/// The handler still hears a whole story of each key, of fewer states: updates in a row become one, from what
/// it was given last to the newest; an object that came and went is not mentioned; one that was deleted and
/// created again is both. The order between different keys is that of their first unheard change.
///
/// With [`every_event`](Self::every_event) nothing is ever left out, and a stuck handler grows memory without
/// bound, as in client-go.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListenerOptions {
    /// What to call the handler in logs.
    pub name: Arc<str>,
    /// How often the handler is to be told of everything again, or the processor's default. Zero is never.
    pub resync_period: Option<Duration>,
    /// How many events the handler may lag before its backlog is coalesced. 8,192 unless said otherwise.
    pub max_lag_events: u64,
    /// How old the first unheard event may be, when another arrives, before the backlog is coalesced. One
    /// minute unless said otherwise.
    pub max_lag_age: Duration,
    /// Never coalesce. Off unless said otherwise.
    pub every_event: bool,
    /// Tell the handler of objects that a list found unchanged. Off unless said otherwise.
    pub unchanged: bool,
}

impl ListenerOptions {
    /// The defaults, under a name for logs.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            resync_period: None,
            max_lag_events: 8_192,
            max_lag_age: Duration::from_mins(1),
            every_event: false,
            unchanged: false,
        }
    }

    /// Sets how often the handler is told of everything again; zero is never. See
    /// [`Processor::mark_due`](super::Processor::mark_due) for what becomes of it.
    #[must_use]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Sets how many events the handler may lag before its backlog is coalesced.
    #[must_use]
    pub fn max_lag_events(mut self, events: u64) -> Self {
        self.max_lag_events = events;
        self
    }

    /// Sets how old the first unheard event may be before the backlog is coalesced.
    #[must_use]
    pub fn max_lag_age(mut self, age: Duration) -> Self {
        self.max_lag_age = age;
        self
    }

    /// Never coalesces: the handler is told of every event, and a stuck one grows memory without bound.
    #[must_use]
    pub fn every_event(mut self) -> Self {
        self.every_event = true;
        self
    }

    /// Tells the handler, with [`Event::Synced`](crate::event::Event::Synced), of objects that a list found
    /// unchanged.
    #[must_use]
    pub fn unchanged(mut self) -> Self {
        self.unchanged = true;
        self
    }
}

impl Default for ListenerOptions {
    fn default() -> Self {
        Self::new("handler")
    }
}
