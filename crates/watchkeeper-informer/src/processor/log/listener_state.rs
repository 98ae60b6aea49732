//! The state of one listener in the log.

use std::{
    sync::{Arc, atomic::Ordering},
    task::Waker,
    time::Duration,
};

use super::{
    super::{
        HandlerOptions, HandlerStatus,
        backlog::CoalescedBacklog,
        resync::{CheckPeriod, Resync},
    },
    CallReport, Deferred, ListenerId,
};
use crate::{Cached, handler::Callback, sync::AtomicBool, wakers::Wakers};

/// The objects that were cached when a listener was added.
pub(in super::super) type Initial<K> = Box<dyn Iterator<Item = Cached<K>> + Send>;

/// A listener to be added.
pub(in super::super) struct NewListener<K> {
    pub(in super::super) callback: Callback<K>,
    pub(in super::super) options: HandlerOptions,
    pub(in super::super) initial: Option<Initial<K>>,
}

/// A listener whose task has not started.
pub(in super::super) struct UnstartedListener<K> {
    pub(in super::super) id: ListenerId,
    pub(in super::super) name: Arc<str>,
    pub(in super::super) callback: Callback<K>,
    /// Set when the listener is to stop, so that its task need not take the lock before each event.
    pub(in super::super) is_stopped: Arc<AtomicBool>,
}

/// The source of a listener's events.
pub(super) enum Feed<K> {
    /// The log, with the number of the next batch.
    Following { next: u64 },
    /// A coalesced backlog, which absorbs every published event.
    Coalescing {
        backlog: CoalescedBacklog<K>,
        /// The publication time of the oldest event when the listener was switched to the backlog.
        since: Duration,
    },
    /// An empty source: the listener is to stop.
    Closed,
}

/// The work that a listener has not completed.
pub(super) enum InProgress {
    Nothing,
    Initial,
    Events(u64),
}

pub(super) struct ListenerState<K> {
    pub(super) options: HandlerOptions,
    pub(super) resync: Resync,
    pub(super) feed: Feed<K>,
    initial: Option<Initial<K>>,
    is_initial_delivered: bool,
    /// The position up to which the handler has returned from every event.
    pub(super) delivered_to: u64,
    pub(super) is_synced: bool,
    pub(super) in_progress: InProgress,
    /// Set while the listener waits for work.
    pub(super) waker: Option<Waker>,
    /// The tasks that wait for the listener to sync or to end.
    pub(super) waiting: Wakers,
    is_stopped: Arc<AtomicBool>,
    /// The tokio task that runs the listener.
    pub(super) task: Option<tokio::task::Id>,
    delivered: u64,
    panics: u64,
    pub(super) times_coalesced: u64,
    pub(super) events_coalesced: u64,
}

impl<K> ListenerState<K> {
    pub(super) fn new(
        id: ListenerId,
        new: NewListener<K>,
        resync_wanted: Duration,
        check_period: &CheckPeriod,
        now: Duration,
        feed: Feed<K>,
        end: u64,
    ) -> (Self, UnstartedListener<K>) {
        let NewListener { callback, options, initial } = new;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let unstarted = UnstartedListener {
            id,
            name: Arc::clone(&options.name),
            callback,
            is_stopped: Arc::clone(&is_stopped),
        };
        let listener = Self {
            resync: Resync::new(resync_wanted, check_period, now),
            options,
            feed,
            is_initial_delivered: initial.is_none(),
            initial,
            delivered_to: end,
            is_synced: false,
            in_progress: InProgress::Nothing,
            waker: None,
            waiting: Wakers::default(),
            is_stopped,
            task: None,
            delivered: 0,
            panics: 0,
            times_coalesced: 0,
            events_coalesced: 0,
        };
        (listener, unstarted)
    }

    /// Returns whether the listener has processed everything and waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.waker.is_some()
    }

    pub(super) fn take_initial(&mut self) -> Option<Initial<K>> {
        let initial = self.initial.take()?;
        self.in_progress = InProgress::Initial;
        Some(initial)
    }

    /// Records that the work in progress is complete.
    pub(super) fn finish_work(&mut self, report: CallReport) {
        self.delivered += report.delivered;
        self.panics += report.panics;
        if matches!(std::mem::replace(&mut self.in_progress, InProgress::Nothing), InProgress::Initial) {
            self.is_initial_delivered = true;
        }
    }

    pub(super) fn check_synced(&mut self, synced_at: Option<u64>, deferred: &mut Deferred<K>) {
        if !self.is_synced
            && self.is_initial_delivered
            && synced_at.is_some_and(|place| self.delivered_to >= place)
        {
            self.is_synced = true;
            self.waiting.take_into(&mut deferred.to_wake);
        }
    }

    /// Stops the listener and returns its feed.
    pub(super) fn close(&mut self, deferred: &mut Deferred<K>) -> Feed<K> {
        self.is_stopped.store(true, Ordering::Release);
        deferred.initials.extend(self.initial.take());
        Wakers::take_one_into(&mut self.waker, &mut deferred.to_wake);
        self.waiting.take_into(&mut deferred.to_wake);
        std::mem::replace(&mut self.feed, Feed::Closed)
    }

    pub(super) fn status(&self, waiting: u64, lag: Duration) -> HandlerStatus {
        let in_progress = if let InProgress::Events(events) = self.in_progress { events } else { 0 };
        HandlerStatus {
            delivered: self.delivered,
            pending: waiting + in_progress,
            lag,
            is_coalescing: matches!(self.feed, Feed::Coalescing { .. }),
            times_coalesced: self.times_coalesced,
            events_coalesced: self.events_coalesced,
            panics: self.panics,
            has_synced: self.is_synced,
        }
    }
}
