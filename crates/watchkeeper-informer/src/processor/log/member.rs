//! One listener, as the log knows it.

use std::{
    sync::{Arc, atomic::Ordering},
    task::Waker,
    time::Duration,
};

use super::{
    super::{
        ListenerOptions, ListenerStatus,
        coalesced::Coalesced,
        resync::{CheckPeriod, Resync},
    },
    Aftermath, ListenerId, Report,
};
use crate::{handler::Callback, sync::AtomicBool, wakers::Wakers};

/// What was there before a listener.
pub(in super::super) type Initial<K> = Box<dyn Iterator<Item = Arc<K>> + Send>;

/// A listener to be.
pub(in super::super) struct NewMember<K> {
    pub(in super::super) callback: Callback<K>,
    pub(in super::super) options: ListenerOptions,
    pub(in super::super) initial: Option<Initial<K>>,
}

/// A listener that nobody runs yet.
pub(in super::super) struct Unstarted<K> {
    pub(in super::super) id: ListenerId,
    pub(in super::super) name: Arc<str>,
    pub(in super::super) callback: Callback<K>,
    /// Turns true when the listener is to stop, so that it need not take the lock for each event to know.
    pub(in super::super) is_stopped: Arc<AtomicBool>,
}

/// Where a listener's events come from.
pub(super) enum Feed<K> {
    /// From the log: the number of the batch to take next.
    Following { next: u64 },
    /// From a backlog of its own, which everything published is absorbed into.
    Coalescing {
        backlog: Coalesced<K>,
        /// When the oldest event was published that was in the backlog first.
        since: Duration,
    },
    /// From nowhere: it is to stop.
    Closed,
}

/// What a listener was given and has not come back from.
pub(super) enum InHand {
    Nothing,
    Initial,
    Events(u64),
}

pub(super) struct Member<K> {
    pub(super) options: ListenerOptions,
    pub(super) resync: Resync,
    pub(super) feed: Feed<K>,
    initial: Option<Initial<K>>,
    is_initial_heard: bool,
    /// It has returned from every event before this place in the log.
    pub(super) heard_to: u64,
    pub(super) is_synced: bool,
    pub(super) in_hand: InHand,
    /// Set while it waits for work.
    pub(super) waker: Option<Waker>,
    /// Who waits for it to be in sync, or gone.
    pub(super) waiting: Wakers,
    is_stopped: Arc<AtomicBool>,
    /// The task it runs in.
    pub(super) task: Option<tokio::task::Id>,
    delivered: u64,
    panics: u64,
    pub(super) times_coalesced: u64,
    pub(super) events_coalesced: u64,
}

impl<K> Member<K> {
    pub(super) fn new(
        id: ListenerId,
        new: NewMember<K>,
        resync_wanted: Duration,
        check_period: &CheckPeriod,
        now: Duration,
        feed: Feed<K>,
        end: u64,
    ) -> (Self, Unstarted<K>) {
        let NewMember { callback, options, initial } = new;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let unstarted =
            Unstarted { id, name: Arc::clone(&options.name), callback, is_stopped: Arc::clone(&is_stopped) };
        let member = Self {
            resync: Resync::new(resync_wanted, check_period, now),
            options,
            feed,
            is_initial_heard: initial.is_none(),
            initial,
            heard_to: end,
            is_synced: false,
            in_hand: InHand::Nothing,
            waker: None,
            waiting: Wakers::default(),
            is_stopped,
            task: None,
            delivered: 0,
            panics: 0,
            times_coalesced: 0,
            events_coalesced: 0,
        };
        (member, unstarted)
    }

    /// True when it has heard everything and waits for more.
    pub(super) fn is_waiting(&self) -> bool {
        self.waker.is_some()
    }

    pub(super) fn take_initial(&mut self) -> Option<Initial<K>> {
        let initial = self.initial.take()?;
        self.in_hand = InHand::Initial;
        Some(initial)
    }

    /// It came back from what it had in hand.
    pub(super) fn finish_work(&mut self, report: Report) {
        self.delivered += report.delivered;
        self.panics += report.panics;
        if matches!(std::mem::replace(&mut self.in_hand, InHand::Nothing), InHand::Initial) {
            self.is_initial_heard = true;
        }
    }

    pub(super) fn check_synced(&mut self, synced_at: Option<u64>, after: &mut Aftermath<K>) {
        if !self.is_synced && self.is_initial_heard && synced_at.is_some_and(|place| self.heard_to >= place) {
            self.is_synced = true;
            self.waiting.take_into(&mut after.to_wake);
        }
    }

    /// Stops it, and returns the feed it had.
    pub(super) fn close(&mut self, after: &mut Aftermath<K>) -> Feed<K> {
        self.is_stopped.store(true, Ordering::Release);
        after.initials.extend(self.initial.take());
        Wakers::take_one_into(&mut self.waker, &mut after.to_wake);
        self.waiting.take_into(&mut after.to_wake);
        std::mem::replace(&mut self.feed, Feed::Closed)
    }

    pub(super) fn status(&self, waiting: u64, lag: Duration) -> ListenerStatus {
        let in_hand = if let InHand::Events(events) = self.in_hand { events } else { 0 };
        ListenerStatus {
            delivered: self.delivered,
            pending: waiting + in_hand,
            lag,
            is_coalescing: matches!(self.feed, Feed::Coalescing { .. }),
            times_coalesced: self.times_coalesced,
            events_coalesced: self.events_coalesced,
            panics: self.panics,
            has_synced: self.is_synced,
        }
    }
}
