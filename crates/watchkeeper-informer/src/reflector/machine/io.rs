//! What goes into the machine and what comes out of it.

use std::{sync::Arc, time::Duration};

use watchkeeper_client::{
    Error,
    classify::Failure,
    list_watch::{Bookmark, ListRequest, PageEnd, WatchRequest},
};

use super::history::Found;
use crate::reflector::{Change, WatchFailure, intake::Incoming, quarantine::Quarantined};

/// Something that happened outside.
#[derive(Debug)]
pub(crate) enum Input<K> {
    /// It begins.
    Started,
    /// The server agreed to the list or watch asked for last.
    Opened,
    /// An object of a page.
    Item(Incoming<K>),
    /// The end of a page.
    PageEnd(PageEnd),
    /// An event of a watch.
    Event(EventKind, Incoming<K>),
    /// A bookmark of a watch.
    Bookmark(Bookmark),
    /// The page or the watch ended in good order.
    Ended,
    /// It did not.
    Failed(Trouble),
    /// The deadline of the last action has come.
    Timer,
    /// The response to [`Action::Check`], or to a check beside an open watch.
    Checked(Result<Found, Trouble>),
}

/// What a watch event says happened to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// What went wrong, for the classifier and for people.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) failure: Failure,
    pub(crate) message: Arc<str>,
}

impl Trouble {
    pub(crate) fn new(failure: Failure, message: impl Into<Arc<str>>) -> Self {
        Self { failure, message: message.into() }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::new(Failure::from(&error), error.to_string())
    }
}

/// What to do next. Everything but [`Action::Read`] gives up what is being read.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Ask for a page.
    List(ListRequest),
    /// Ask for a watch.
    Watch(WatchRequest),
    /// Read a list of a few objects, as evidence of the server's history.
    Check(ListRequest),
    /// Read on, at most until then.
    Read { deadline: Option<Duration> },
    /// Do nothing until then.
    Wait { until: Duration },
}

/// Something to tell, count or log.
#[derive(Debug, PartialEq)]
pub(crate) enum Notice {
    /// A list begins, as a stream or not. The first has no cause.
    ListStarted { is_streaming: bool, cause: Option<&'static str> },
    /// So much of a list has been received, of about so many.
    Listed { received: usize, about: Option<usize> },
    /// The list was read whole.
    Synced,
    /// A watch is resumed, because of this.
    WatchRestarted { reason: &'static str },
    /// The server agreed to a watch.
    WatchOpened,
    /// A list or watch failed.
    Failed(WatchFailure),
    /// An object was set aside.
    Quarantined(Quarantined),
    /// An object is no longer set aside.
    Released(Arc<str>),
    /// The server sent something older than what it sent before.
    WentBack { what: &'static str, found: String, seen: String },
    /// The server's versions begin anew.
    NewEpoch { found: String, seen: String },
    /// The server is taken not to do lists as streams, for a while.
    StreamingGivenUp { why: &'static str },
    /// A verification of the server's history began.
    HistoryChecked,
}

/// All that comes of one input.
#[derive(Debug)]
pub(crate) struct Outcome<K> {
    /// For the sink, before the action.
    pub(crate) change: Option<Change<K>>,
    pub(crate) notices: Vec<Notice>,
    /// A check to make beside what is being read. It replaces an earlier one.
    pub(crate) check: Option<ListRequest>,
    pub(crate) action: Action,
}

/// The part of an outcome that is gathered on the way to its action.
#[derive(Debug)]
pub(super) struct Effects<K> {
    pub(super) change: Option<Change<K>>,
    pub(super) notices: Vec<Notice>,
    pub(super) check: Option<ListRequest>,
}

impl<K> Default for Effects<K> {
    fn default() -> Self {
        Self { change: None, notices: Vec::new(), check: None }
    }
}

impl<K> Effects<K> {
    pub(super) fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}
