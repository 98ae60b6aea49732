//! Inputs and outputs of the machine.

use std::{sync::Arc, time::Duration};

use watchkeeper_client::{
    Error,
    classify::Failure,
    list_watch::{Bookmark, ListRequest, PageEnd, WatchRequest},
};

use super::history::CheckResponse;
use crate::reflector::{WatchDelta, WatchFailure, intake::Incoming, quarantine::Quarantined};

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Input<K> {
    /// The reflector was started.
    Started,
    /// The server accepted the requested list or watch.
    Opened,
    /// An object of a page.
    Item(Incoming<K>),
    /// The end of a page.
    PageEnd(PageEnd),
    /// An event of a watch.
    Event(EventKind, Incoming<K>),
    /// A bookmark of a watch.
    Bookmark(Bookmark),
    /// The page or watch ended normally.
    Ended,
    /// The list or watch failed.
    Failed(FailureReport),
    /// The deadline of the last action has passed.
    Timer,
    /// The response to [`DriverAction::Check`], or to a check beside an open watch.
    Checked(Result<CheckResponse, FailureReport>),
}

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// A failure, for the classifier and as text.
#[derive(Debug)]
pub(crate) struct FailureReport {
    pub(crate) failure: Failure,
    pub(crate) message: Arc<str>,
}

impl FailureReport {
    pub(crate) fn new(failure: Failure, message: impl Into<Arc<str>>) -> Self {
        Self { failure, message: message.into() }
    }
}

impl From<Error> for FailureReport {
    fn from(error: Error) -> Self {
        Self::new(Failure::from(&error), error.to_string())
    }
}

/// The next action of the driver. Every action except [`DriverAction::Read`] closes the open response.
#[derive(Debug, PartialEq)]
pub(crate) enum DriverAction {
    /// Request a page.
    List(ListRequest),
    /// Request a watch.
    Watch(WatchRequest),
    /// Request a list of a few objects, as evidence of the server's history.
    Check(ListRequest),
    /// Continue reading, until the deadline.
    Read { deadline: Option<Duration> },
    /// Wait until this time.
    Wait { until: Duration },
}

/// An event to be reported, counted or logged.
#[derive(Debug, PartialEq)]
pub(crate) enum ReflectorEvent {
    /// A list was started. The initial list has no cause.
    ListStarted { is_streaming: bool, cause: Option<&'static str> },
    /// A number of listed objects was received.
    Listed { received: usize, estimated_total: Option<usize> },
    /// The list is complete.
    Synced,
    /// A watch is resumed, for this reason.
    WatchRestarted { reason: &'static str },
    /// The server accepted a watch.
    WatchOpened,
    /// A list or watch failed.
    Failed(WatchFailure),
    /// An object was quarantined.
    Quarantined(Quarantined),
    /// An object was released from quarantine.
    Released(Arc<str>),
    /// The server sent an older version than before.
    VersionWentBack { what: &'static str, found: String, seen: String },
    /// The server's history was replaced.
    NewEpoch { found: String, seen: String },
    /// Streaming lists are not requested for a while.
    StreamingFallback { why: &'static str },
    /// A verification of the server's history started.
    HistoryChecked,
}

/// The output of one step.
#[derive(Debug)]
pub(crate) struct StepOutput<K> {
    /// The change for the sink, before the action.
    pub(crate) change: Option<WatchDelta<K>>,
    pub(crate) events: Vec<ReflectorEvent>,
    /// A check to make while reading continues. It replaces an earlier one.
    pub(crate) check: Option<ListRequest>,
    pub(crate) action: DriverAction,
}

/// The part of an output that is collected before its action is known.
#[derive(Debug)]
pub(super) struct Effects<K> {
    pub(super) change: Option<WatchDelta<K>>,
    pub(super) events: Vec<ReflectorEvent>,
    pub(super) check: Option<ListRequest>,
}

impl<K> Default for Effects<K> {
    fn default() -> Self {
        Self { change: None, events: Vec::new(), check: None }
    }
}

impl<K> Effects<K> {
    pub(super) fn event(&mut self, event: ReflectorEvent) {
        self.events.push(event);
    }
}
