//! The log of events and the positions of its listeners, as a state machine without lock, task or clock.
//!
//! Events are appended in batches. A listener reads one batch after the other, by reference. A batch is
//! dropped when the last listener has read it. A listener that lags too far is removed from the log: its
//! unread batches, and every later batch, are absorbed into its own [`CoalescedBacklog`], until it has
//! processed that.

mod batch;
mod deferred;
mod listener_state;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use kube_core::Resource;

use self::{
    batch::Recipients,
    deferred::ModeChange,
    listener_state::{Feed, InProgress, ListenerState},
};
pub(super) use self::{
    batch::{Draft, EventBatch},
    deferred::Deferred,
    listener_state::{Initial, NewListener, UnstartedListener},
};
use super::{HandlerStatus, backlog::CoalescedBacklog, resync::CheckPeriod};
use crate::{event::Event, transition::Audience, wakers::Wakers};

/// The number of a listener, unique for the lifetime of the processor.
pub(super) type ListenerId = u64;

/// The number of keys that are taken from a coalesced backlog at a time.
const CHUNK: usize = 64;

/// The next work of a listener.
pub(super) enum Work<K> {
    /// Deliver the objects that were cached when the listener was added.
    Initial(Initial<K>),
    /// Deliver a batch of the log.
    Batch(Arc<EventBatch<K>>),
    /// Deliver events of the coalesced backlog.
    Backlog(Vec<Event<K>>),
    /// End the task.
    Stop,
}

/// The calls that a listener made since it last requested work.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallReport {
    pub(super) delivered: u64,
    pub(super) panics: u64,
}

/// The log of events and the state of its listeners.
///
/// Invariants: `batches` are numbered consecutively from `first_batch`. The `unread` of a batch is the number
/// of followers whose `next` is at or before it, and the batch is removed when that is zero. A follower with
/// a waker has read everything.
pub(super) struct Log<K> {
    batches: VecDeque<Logged<K>>,
    first_batch: u64,
    /// The position of the next event.
    end: u64,
    listeners: BTreeMap<ListenerId, ListenerState<K>>,
    next_id: ListenerId,
    unstarted: VecDeque<UnstartedListener<K>>,
    /// The tasks that wait for a listener to run.
    runners: Wakers,
    /// The position of the log when the informer had processed the initial list.
    synced_at: Option<u64>,
    check_period: CheckPeriod,
    /// The resync period of listeners that do not set their own.
    default_period: Duration,
    is_shut_down: bool,
}

struct Logged<K> {
    batch: Arc<EventBatch<K>>,
    unread: usize,
}

impl<K: Resource> Log<K> {
    pub(super) fn new(default_period: Duration) -> Self {
        Self {
            batches: VecDeque::new(),
            first_batch: 0,
            end: 0,
            listeners: BTreeMap::new(),
            next_id: 0,
            unstarted: VecDeque::new(),
            runners: Wakers::default(),
            synced_at: None,
            check_period: CheckPeriod::new(default_period),
            default_period,
            is_shut_down: false,
        }
    }

    /// Adds a listener that receives `initial`, then every event that is appended from now on. Returns `None`
    /// after a shutdown.
    pub(super) fn add(
        &mut self,
        new: NewListener<K>,
        now: Duration,
        deferred: &mut Deferred<K>,
    ) -> Option<ListenerId> {
        if self.is_shut_down {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        let wanted = new.options.resync_period.unwrap_or(self.default_period);
        let (wanted, is_shorter) = self.check_period.admit(wanted);
        if is_shorter {
            for listener in self.listeners.values_mut() {
                listener.resync.adjust(&self.check_period, now);
            }
        }
        let feed = Feed::Following { next: self.next_batch() };
        let (listener, unstarted) =
            ListenerState::new(id, new, wanted, &self.check_period, now, feed, self.end);
        self.listeners.insert(id, listener);
        self.unstarted.push_back(unstarted);
        self.runners.take_into(&mut deferred.to_wake);
        Some(id)
    }

    /// Returns a listener that is not running, or `None` after a shutdown.
    pub(super) fn accept(&mut self, waker: &Waker) -> Poll<Option<UnstartedListener<K>>> {
        if self.is_shut_down {
            return Poll::Ready(None);
        }
        if let Some(unstarted) = self.unstarted.pop_front() {
            return Poll::Ready(Some(unstarted));
        }
        self.runners.wait(waker);
        Poll::Pending
    }

    /// Records that everything of the initial list was published.
    pub(super) fn mark_synced(&mut self, deferred: &mut Deferred<K>) {
        let end = self.end;
        self.synced_at.get_or_insert(end);
        for listener in self.listeners.values_mut() {
            if listener.is_waiting() {
                listener.delivered_to = end;
            }
            listener.check_synced(self.synced_at, deferred);
        }
    }

    /// Marks the listeners whose resync is due and unmarks all others. Returns whether any is due.
    pub(super) fn mark_due(&mut self, now: Duration) -> bool {
        let mut is_any_due = false;
        for listener in self.listeners.values_mut() {
            is_any_due |= listener.resync.check(now);
        }
        is_any_due
    }

    pub(super) fn check_period(&mut self) -> &mut CheckPeriod {
        &mut self.check_period
    }

    /// Completes the previous work of a listener and returns the next one, when there is any.
    pub(super) fn next_work(
        &mut self,
        id: ListenerId,
        report: CallReport,
        waker: &Waker,
        deferred: &mut Deferred<K>,
    ) -> Poll<Work<K>> {
        let next_batch = self.next_batch();
        let Some(listener) = self.listeners.get_mut(&id) else { return Poll::Ready(Work::Stop) };
        listener.waker = None;
        listener.finish_work(report);
        if let Some(initial) = listener.take_initial() {
            return Poll::Ready(Work::Initial(initial));
        }
        if let Feed::Coalescing { backlog, .. } = &mut listener.feed
            && backlog.len() == 0
        {
            // The backlog is empty: return to the log.
            listener.feed = Feed::Following { next: next_batch };
            deferred.changes.push(ModeChange::CaughtUp { name: Arc::clone(&listener.options.name) });
        }
        match &mut listener.feed {
            Feed::Closed => Poll::Ready(Work::Stop),
            Feed::Coalescing { backlog, .. } => {
                listener.delivered_to = backlog.first_position().unwrap_or(self.end);
                let events = backlog.take(CHUNK);
                listener.in_progress = InProgress::Events(events.len() as u64);
                listener.check_synced(self.synced_at, deferred);
                Poll::Ready(Work::Backlog(events))
            }
            Feed::Following { next } => {
                while let Some(batch) = read(&mut self.batches, &mut self.first_batch, *next) {
                    *next += 1;
                    if batch.recipients.include(id) {
                        listener.delivered_to = batch.start;
                        listener.in_progress = InProgress::Events(batch.events.len() as u64);
                        listener.check_synced(self.synced_at, deferred);
                        return Poll::Ready(Work::Batch(batch));
                    }
                    deferred.batches.push(batch);
                }
                listener.delivered_to = self.end;
                listener.waker = Some(waker.clone());
                listener.check_synced(self.synced_at, deferred);
                Poll::Pending
            }
        }
    }

    /// Stops a listener. It receives no further events and ends when a running call returns, or immediately
    /// if it is not running.
    pub(super) fn stop(&mut self, id: ListenerId, deferred: &mut Deferred<K>) {
        let place = self.unstarted.iter().position(|unstarted| unstarted.id == id);
        let unstarted = place.and_then(|place| self.unstarted.remove(place));
        deferred.unstarted.extend(unstarted);
        if let Some(listener) = self.listeners.get_mut(&id) {
            let feed = listener.close(deferred);
            self.leave(feed, deferred);
            if place.is_some() {
                self.finish(id, deferred);
            }
        }
    }

    /// Removes a listener whose task has ended.
    pub(super) fn finish(&mut self, id: ListenerId, deferred: &mut Deferred<K>) {
        if let Some(mut listener) = self.listeners.remove(&id) {
            let feed = listener.close(deferred);
            self.leave(feed, deferred);
            deferred.listeners.push(listener);
        }
    }

    /// Stops all listeners permanently.
    pub(super) fn shut_down(&mut self, deferred: &mut Deferred<K>) {
        self.is_shut_down = true;
        let ids: Vec<ListenerId> = self.listeners.keys().copied().collect();
        for id in ids {
            self.stop(id, deferred);
        }
        self.runners.take_into(&mut deferred.to_wake);
    }

    /// Returns ready when the task of the listener has ended.
    pub(super) fn poll_gone(&mut self, id: ListenerId, waker: &Waker) -> Poll<()> {
        match self.listeners.get_mut(&id) {
            Some(listener) => {
                listener.waiting.wait(waker);
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Returns ready with true when the listener has synced, and with false when it cannot sync any more.
    pub(super) fn poll_synced(&mut self, id: ListenerId, waker: &Waker) -> Poll<bool> {
        match self.listeners.get_mut(&id) {
            Some(listener) if listener.is_synced => Poll::Ready(true),
            Some(listener) if !matches!(listener.feed, Feed::Closed) => {
                listener.waiting.wait(waker);
                Poll::Pending
            }
            _ => Poll::Ready(false),
        }
    }

    pub(super) fn note_task(&mut self, id: ListenerId, task: Option<tokio::task::Id>) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.task = task;
        }
    }

    pub(super) fn is_run_by(&self, id: ListenerId, task: Option<tokio::task::Id>) -> bool {
        task.is_some() && self.listeners.get(&id).is_some_and(|listener| listener.task == task)
    }

    pub(super) fn listener_count(&self) -> usize {
        self.listeners.len()
    }

    /// Returns the status of a listener, or `None` after its removal.
    pub(super) fn status(&self, id: ListenerId, now: Duration) -> Option<HandlerStatus> {
        let listener = self.listeners.get(&id)?;
        let (waiting, since) = match &listener.feed {
            Feed::Closed => (0, None),
            Feed::Coalescing { backlog, since } => {
                (backlog.len() as u64, (backlog.len() > 0).then_some(*since))
            }
            Feed::Following { next } => {
                let unread = index(*next, self.first_batch).and_then(|at| self.batches.get(at));
                (
                    unread.map_or(0, |logged| self.end - logged.batch.start),
                    unread.map(|logged| logged.batch.at),
                )
            }
        };
        Some(listener.status(waiting, since.map_or(Duration::ZERO, |since| now.saturating_sub(since))))
    }

    fn next_batch(&self) -> u64 {
        self.first_batch + self.batches.len() as u64
    }

    /// Appends events for the listeners that they concern.
    pub(super) fn publish(&mut self, draft: Draft<K>, now: Duration, deferred: &mut Deferred<K>) {
        let Some(recipients) = self.recipients(draft.audience) else {
            deferred.events.extend(draft.events);
            return;
        };
        let number = self.next_batch();
        let batch = Arc::new(EventBatch { start: self.end, at: now, recipients, events: draft.events });
        self.end += batch.events.len() as u64;
        let mut unread = 0;
        deferred.to_wake.reserve(self.listeners.len());
        for (&id, listener) in &mut self.listeners {
            let is_concerned = batch.recipients.include(id);
            match &mut listener.feed {
                Feed::Closed => continue,
                Feed::Coalescing { backlog, .. } if is_concerned => {
                    batch.absorb_into(backlog, &mut deferred.events);
                    listener.events_coalesced += backlog.take_merged();
                }
                Feed::Coalescing { .. } => {}
                // A follower that has read everything skips a batch for others.
                Feed::Following { next } if !is_concerned && *next == number => *next += 1,
                Feed::Following { .. } => unread += 1,
            }
            if is_concerned {
                Wakers::take_one_into(&mut listener.waker, &mut deferred.to_wake);
            }
        }
        if unread == 0 {
            debug_assert!(self.batches.is_empty(), "a follower with unread batches has not read this one");
            self.first_batch += 1;
            deferred.batches.push(batch);
        } else {
            self.batches.push_back(Logged { batch, unread });
            self.bound_lag(now, deferred);
        }
    }

    /// Returns the recipients of an event, or `None` if no listener is one.
    fn recipients(&self, audience: Audience) -> Option<Recipients> {
        let wants = |listener: &ListenerState<K>| match audience {
            Audience::All => true,
            Audience::Resyncing => listener.resync.is_due,
            Audience::WantsUnchanged => listener.options.unchanged,
        };
        if audience == Audience::All {
            return (!self.listeners.is_empty()).then_some(Recipients::All);
        }
        let ids: Vec<ListenerId> =
            self.listeners.iter().filter(|(_, listener)| wants(listener)).map(|(&id, _)| id).collect();
        (!ids.is_empty()).then_some(Recipients::Only(ids))
    }

    /// Switches listeners that lag too far to a coalesced backlog.
    fn bound_lag(&mut self, now: Duration, deferred: &mut Deferred<K>) {
        for (&id, listener) in &mut self.listeners {
            let Feed::Following { next } = listener.feed else { continue };
            let Some(at) = index(next, self.first_batch) else { continue };
            let Some(oldest) = self.batches.get(at).map(|logged| Arc::clone(&logged.batch)) else { continue };
            let lag = self.end - oldest.start;
            let age = now.saturating_sub(oldest.at);
            let options = &listener.options;
            if options.every_event || (lag <= options.max_lag_events && age <= options.max_lag_age) {
                continue;
            }
            let mut backlog = CoalescedBacklog::new();
            for logged in self.batches.range_mut(at..) {
                logged.unread -= 1;
                if logged.batch.recipients.include(id) {
                    logged.batch.absorb_into(&mut backlog, &mut deferred.events);
                }
            }
            listener.times_coalesced += 1;
            listener.events_coalesced += backlog.take_merged();
            deferred.changes.push(ModeChange::Lags { name: Arc::clone(&options.name), events: lag });
            listener.feed = Feed::Coalescing { backlog, since: oldest.at };
            deferred.batches.push(oldest);
        }
        trim(&mut self.batches, &mut self.first_batch, &mut deferred.batches);
    }

    /// Releases the position of a listener in the log.
    fn leave(&mut self, feed: Feed<K>, deferred: &mut Deferred<K>) {
        if let Feed::Following { next } = feed
            && let Some(at) = index(next, self.first_batch)
            && at < self.batches.len()
        {
            self.batches.range_mut(at..).for_each(|logged| logged.unread -= 1);
        } else {
            deferred.feeds.push(feed);
        }
        trim(&mut self.batches, &mut self.first_batch, &mut deferred.batches);
    }
}

fn index(number: u64, first: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(first)?).ok()
}

/// Reads a batch, and removes it for the last reader. Read batches are at the front, because a listener that
/// has not read a batch has not read the later ones.
fn read<K>(batches: &mut VecDeque<Logged<K>>, first: &mut u64, number: u64) -> Option<Arc<EventBatch<K>>> {
    let at = index(number, *first)?;
    let logged = batches.get_mut(at)?;
    logged.unread -= 1;
    if logged.unread > 0 {
        return Some(Arc::clone(&logged.batch));
    }
    debug_assert_eq!(at, 0, "batches before one that all followers have read were removed");
    *first += 1;
    batches.pop_front().map(|logged| logged.batch)
}

/// Removes the batches that every follower has read.
fn trim<K>(batches: &mut VecDeque<Logged<K>>, first: &mut u64, unwanted: &mut Vec<Arc<EventBatch<K>>>) {
    while batches.front().is_some_and(|logged| logged.unread == 0) {
        unwanted.extend(batches.pop_front().map(|logged| logged.batch));
        *first += 1;
    }
}
