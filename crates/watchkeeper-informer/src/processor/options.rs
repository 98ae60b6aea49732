//! Options of handlers.

use std::{sync::Arc, time::Duration};

/// The options of one handler.
///
/// # The cost of a slow handler
///
/// Events wait in a log that all handlers share, so a handler that lags costs only the objects that the log
/// keeps alive. A handler that lags more than [`max_lag_events`](Self::max_lag_events) or
/// [`max_lag_age`](Self::max_lag_age) gets a *coalesced* backlog of its own, which contains for each key the
/// object that the handler received last and the current one. Its memory is bounded by the number of live
/// keys, however long the handler is stuck. When the handler has processed its backlog, it returns to the
/// log.
///
/// A coalesced handler still receives a complete sequence of events for each key, with fewer states.
/// Consecutive updates become one update from the object that was delivered last to the newest one. An object
/// that was added and deleted is omitted. An object that was deleted and created again is delivered as both.
/// Keys are delivered in the order of their first pending event.
///
/// With [`every_event`](Self::every_event) nothing is coalesced, and the memory of a stuck handler is
/// unbounded, as in client-go.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(alias = "sharedProcessor")]
#[doc(alias = "processorListener")]
pub struct HandlerOptions {
    /// The name of the handler in logs.
    pub name: Arc<str>,
    /// The interval at which the handler receives a [`Synced`](crate::event::Event::Synced) for every object.
    /// `None` is the default of the informer, and zero is never.
    pub resync_period: Option<Duration>,
    /// The number of events that the handler may lag before its backlog is coalesced. Defaults to 8,192.
    pub max_lag_events: u64,
    /// The age of the first pending event at which the backlog is coalesced, when another event arrives.
    /// Defaults to 1 min.
    pub max_lag_age: Duration,
    /// Whether the handler receives every event and its backlog is never coalesced. Defaults to false.
    pub every_event: bool,
    /// Whether the handler receives a [`Synced`](crate::event::Event::Synced) for objects that a relist found
    /// unchanged. Defaults to false.
    pub unchanged: bool,
}

impl HandlerOptions {
    /// Creates the default options with a name for logs.
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

    /// Sets the resync period. Zero disables resyncs. Defaults to the resync period of the informer. The informer
    /// uses at least one second, and at least the interval at which it checks for due resyncs.
    #[must_use]
    #[doc(alias = "ShouldResync")]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Sets the number of events that the handler may lag before its backlog is coalesced. Defaults to 8,192.
    #[must_use]
    pub fn max_lag_events(mut self, events: u64) -> Self {
        self.max_lag_events = events;
        self
    }

    /// Sets the age of the first pending event at which the backlog is coalesced. Defaults to 1 minute.
    #[must_use]
    pub fn max_lag_age(mut self, age: Duration) -> Self {
        self.max_lag_age = age;
        self
    }

    /// Disables coalescing: the handler receives every event, and the memory of a stuck handler is unbounded.
    #[must_use]
    pub fn every_event(mut self) -> Self {
        self.every_event = true;
        self
    }

    /// Delivers an [`Event::Synced`](crate::event::Event::Synced) for each object that a relist found
    /// unchanged.
    #[must_use]
    pub fn unchanged(mut self) -> Self {
        self.unchanged = true;
        self
    }
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self::new("handler")
    }
}
