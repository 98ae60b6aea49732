//! The log of events and the place of every listener in it, as a state machine: no lock, no task, no clock.
//!
//! Events are appended in batches. A listener takes batch after batch, by reference; a batch is let go of
//! when the last listener that reads the log has taken it. A listener that lags too far is taken off the log:
//! its backlog, and then every further batch, is absorbed into a [`Coalesced`] of its own, until it has
//! worked that off.

mod aftermath;
mod batch;
mod member;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use kube_core::Resource;

pub(super) use self::{
    aftermath::Aftermath,
    batch::{Batch, Draft},
    member::{Initial, NewMember, Unstarted},
};
use self::{
    aftermath::ModeChange,
    batch::Recipients,
    member::{Feed, InHand, Member},
};
use super::{ListenerStatus, coalesced::Coalesced, resync::CheckPeriod};
use crate::{event::Event, transition::Audience, wakers::Wakers};

/// Names a listener for as long as the processor lives.
pub(super) type ListenerId = u64;

/// Keys taken from a coalesced backlog at once.
const CHUNK: usize = 64;

/// What a listener has to do next.
pub(super) enum Work<K> {
    /// Say what was there before it.
    Initial(Initial<K>),
    /// Say what is in the log.
    Batch(Arc<Batch<K>>),
    /// Say what is left of the backlog.
    Backlog(Vec<Event<K>>),
    /// End.
    Stop,
}

/// What a listener did since it asked for work last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Report {
    pub(super) delivered: u64,
    pub(super) panics: u64,
}

/// Invariants: `batches` are numbered from `first_batch` on without a gap; the `unread` of each is the number
/// of followers whose `next` is at or before it; it is gone when that is zero. A follower that waits has read
/// everything.
pub(super) struct Log<K> {
    batches: VecDeque<Logged<K>>,
    first_batch: u64,
    /// Where the next event will stand.
    end: u64,
    members: BTreeMap<ListenerId, Member<K>>,
    next_id: ListenerId,
    unstarted: VecDeque<Unstarted<K>>,
    /// Who runs the listeners, waiting for one to run.
    runners: Wakers,
    /// Where the log stood when the informer had processed its first list.
    synced_at: Option<u64>,
    check_period: CheckPeriod,
    /// For listeners that do not say how often they want to be resynced.
    default_period: Duration,
    is_shut_down: bool,
}

struct Logged<K> {
    batch: Arc<Batch<K>>,
    unread: usize,
}

impl<K: Resource> Log<K> {
    pub(super) fn new(default_period: Duration) -> Self {
        Self {
            batches: VecDeque::new(),
            first_batch: 0,
            end: 0,
            members: BTreeMap::new(),
            next_id: 0,
            unstarted: VecDeque::new(),
            runners: Wakers::default(),
            synced_at: None,
            check_period: CheckPeriod::new(default_period),
            default_period,
            is_shut_down: false,
        }
    }

    /// Adds a listener that hears `initial`, then everything that is appended from here on. `None` after a
    /// shutdown.
    pub(super) fn add(
        &mut self,
        new: NewMember<K>,
        now: Duration,
        after: &mut Aftermath<K>,
    ) -> Option<ListenerId> {
        if self.is_shut_down {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        let wanted = new.options.resync_period.unwrap_or(self.default_period);
        let (wanted, is_shorter) = self.check_period.admit(wanted);
        if is_shorter {
            for member in self.members.values_mut() {
                member.resync.adjust(&self.check_period, now);
            }
        }
        let feed = Feed::Following { next: self.next_batch() };
        let (member, unstarted) = Member::new(id, new, wanted, &self.check_period, now, feed, self.end);
        self.members.insert(id, member);
        self.unstarted.push_back(unstarted);
        self.runners.take_into(&mut after.to_wake);
        Some(id)
    }

    /// Takes out a listener that nobody runs yet; ready with nothing after a shutdown.
    pub(super) fn accept(&mut self, waker: &Waker) -> Poll<Option<Unstarted<K>>> {
        if self.is_shut_down {
            return Poll::Ready(None);
        }
        if let Some(unstarted) = self.unstarted.pop_front() {
            return Poll::Ready(Some(unstarted));
        }
        self.runners.wait(waker);
        Poll::Pending
    }

    /// The informer has processed its first list, and everything of it has been published.
    pub(super) fn mark_synced(&mut self, after: &mut Aftermath<K>) {
        let end = self.end;
        self.synced_at.get_or_insert(end);
        for member in self.members.values_mut() {
            if member.is_waiting() {
                member.heard_to = end;
            }
            member.check_synced(self.synced_at, after);
        }
    }

    /// Marks the listeners whose resync is due, and unmarks all others. True if there are any.
    pub(super) fn mark_due(&mut self, now: Duration) -> bool {
        let mut is_any_due = false;
        for member in self.members.values_mut() {
            is_any_due |= member.resync.check(now);
        }
        is_any_due
    }

    pub(super) fn check_period(&mut self) -> &mut CheckPeriod {
        &mut self.check_period
    }

    /// The listener has done what it was given, and wants more; it waits if there is none.
    pub(super) fn next_work(
        &mut self,
        id: ListenerId,
        report: Report,
        waker: &Waker,
        after: &mut Aftermath<K>,
    ) -> Poll<Work<K>> {
        let next_batch = self.next_batch();
        let Some(member) = self.members.get_mut(&id) else { return Poll::Ready(Work::Stop) };
        member.waker = None;
        member.finish_work(report);
        if let Some(initial) = member.take_initial() {
            return Poll::Ready(Work::Initial(initial));
        }
        if let Feed::Coalescing { backlog, .. } = &mut member.feed
            && backlog.len() == 0
        {
            // Everything up to here has been heard: back to the log.
            member.feed = Feed::Following { next: next_batch };
            after.changes.push(ModeChange::CaughtUp { name: Arc::clone(&member.options.name) });
        }
        match &mut member.feed {
            Feed::Closed => Poll::Ready(Work::Stop),
            Feed::Coalescing { backlog, .. } => {
                member.heard_to = backlog.first_position().unwrap_or(self.end);
                let events = backlog.take(CHUNK);
                member.in_hand = InHand::Events(events.len() as u64);
                member.check_synced(self.synced_at, after);
                Poll::Ready(Work::Backlog(events))
            }
            Feed::Following { next } => {
                while let Some(batch) = read(&mut self.batches, &mut self.first_batch, *next) {
                    *next += 1;
                    if batch.recipients.include(id) {
                        member.heard_to = batch.start;
                        member.in_hand = InHand::Events(batch.events.len() as u64);
                        member.check_synced(self.synced_at, after);
                        return Poll::Ready(Work::Batch(batch));
                    }
                    after.batches.push(batch);
                }
                member.heard_to = self.end;
                member.waker = Some(waker.clone());
                member.check_synced(self.synced_at, after);
                Poll::Pending
            }
        }
    }

    /// Stops a listener: it hears nothing any more, and ends when the call it may be in returns. It is gone
    /// at once if nobody runs it.
    pub(super) fn stop(&mut self, id: ListenerId, after: &mut Aftermath<K>) {
        let place = self.unstarted.iter().position(|unstarted| unstarted.id == id);
        let unstarted = place.and_then(|place| self.unstarted.remove(place));
        after.unstarted.extend(unstarted);
        if let Some(member) = self.members.get_mut(&id) {
            let feed = member.close(after);
            self.leave(feed, after);
            if place.is_some() {
                self.finish(id, after);
            }
        }
    }

    /// The task of a listener has ended.
    pub(super) fn finish(&mut self, id: ListenerId, after: &mut Aftermath<K>) {
        if let Some(mut member) = self.members.remove(&id) {
            let feed = member.close(after);
            self.leave(feed, after);
            after.members.push(member);
        }
    }

    /// Stops all listeners, for ever.
    pub(super) fn shut_down(&mut self, after: &mut Aftermath<K>) {
        self.is_shut_down = true;
        let ids: Vec<ListenerId> = self.members.keys().copied().collect();
        for id in ids {
            self.stop(id, after);
        }
        self.runners.take_into(&mut after.to_wake);
    }

    /// Ready when the listener's task has ended.
    pub(super) fn poll_gone(&mut self, id: ListenerId, waker: &Waker) -> Poll<()> {
        match self.members.get_mut(&id) {
            Some(member) => {
                member.waiting.wait(waker);
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Ready with true when the listener has heard everything that was there at first, with false when it
    /// never will.
    pub(super) fn poll_synced(&mut self, id: ListenerId, waker: &Waker) -> Poll<bool> {
        match self.members.get_mut(&id) {
            Some(member) if member.is_synced => Poll::Ready(true),
            Some(member) if !matches!(member.feed, Feed::Closed) => {
                member.waiting.wait(waker);
                Poll::Pending
            }
            _ => Poll::Ready(false),
        }
    }

    pub(super) fn note_task(&mut self, id: ListenerId, task: Option<tokio::task::Id>) {
        if let Some(member) = self.members.get_mut(&id) {
            member.task = task;
        }
    }

    pub(super) fn is_run_by(&self, id: ListenerId, task: Option<tokio::task::Id>) -> bool {
        task.is_some() && self.members.get(&id).is_some_and(|member| member.task == task)
    }

    pub(super) fn listener_count(&self) -> usize {
        self.members.len()
    }

    /// How a listener is doing; `None` when it is gone.
    pub(super) fn status(&self, id: ListenerId, now: Duration) -> Option<ListenerStatus> {
        let member = self.members.get(&id)?;
        let (waiting, since) = match &member.feed {
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
        Some(member.status(waiting, since.map_or(Duration::ZERO, |since| now.saturating_sub(since))))
    }

    fn next_batch(&self) -> u64 {
        self.first_batch + self.batches.len() as u64
    }

    /// Appends events for whom they concern.
    pub(super) fn publish(&mut self, draft: Draft<K>, now: Duration, after: &mut Aftermath<K>) {
        let Some(recipients) = self.recipients(draft.audience) else {
            after.events.extend(draft.events);
            return;
        };
        let number = self.next_batch();
        let batch = Arc::new(Batch { start: self.end, at: now, recipients, events: draft.events });
        self.end += batch.events.len() as u64;
        let mut unread = 0;
        after.to_wake.reserve(self.members.len());
        for (&id, member) in &mut self.members {
            let is_concerned = batch.recipients.include(id);
            match &mut member.feed {
                Feed::Closed => continue,
                Feed::Coalescing { backlog, .. } if is_concerned => {
                    batch.absorb_into(backlog, &mut after.events);
                    member.events_coalesced += backlog.take_merged();
                }
                Feed::Coalescing { .. } => {}
                // Somebody who has read everything is not made to pass over what is for others.
                Feed::Following { next } if !is_concerned && *next == number => *next += 1,
                Feed::Following { .. } => unread += 1,
            }
            if is_concerned {
                Wakers::take_one_into(&mut member.waker, &mut after.to_wake);
            }
        }
        if unread == 0 {
            debug_assert!(self.batches.is_empty(), "a follower with unread batches has this one to read too");
            self.first_batch += 1;
            after.batches.push(batch);
        } else {
            self.batches.push_back(Logged { batch, unread });
            self.bound_lag(now, after);
        }
    }

    /// `None` when there is nobody.
    fn recipients(&self, audience: Audience) -> Option<Recipients> {
        let wants = |member: &Member<K>| match audience {
            Audience::Everyone => true,
            Audience::Resyncing => member.resync.is_due,
            Audience::AskedForUnchanged => member.options.unchanged,
        };
        if audience == Audience::Everyone {
            return (!self.members.is_empty()).then_some(Recipients::Everyone);
        }
        let ids: Vec<ListenerId> =
            self.members.iter().filter(|(_, member)| wants(member)).map(|(&id, _)| id).collect();
        (!ids.is_empty()).then_some(Recipients::Only(ids))
    }

    /// Takes those that lag too far off the log.
    fn bound_lag(&mut self, now: Duration, after: &mut Aftermath<K>) {
        for (&id, member) in &mut self.members {
            let Feed::Following { next } = member.feed else { continue };
            let Some(at) = index(next, self.first_batch) else { continue };
            let Some(oldest) = self.batches.get(at).map(|logged| Arc::clone(&logged.batch)) else { continue };
            let lag = self.end - oldest.start;
            let age = now.saturating_sub(oldest.at);
            let options = &member.options;
            if options.every_event || (lag <= options.max_lag_events && age <= options.max_lag_age) {
                continue;
            }
            let mut backlog = Coalesced::new();
            for logged in self.batches.range_mut(at..) {
                logged.unread -= 1;
                if logged.batch.recipients.include(id) {
                    logged.batch.absorb_into(&mut backlog, &mut after.events);
                }
            }
            member.times_coalesced += 1;
            member.events_coalesced += backlog.take_merged();
            after.changes.push(ModeChange::Lags { name: Arc::clone(&options.name), events: lag });
            member.feed = Feed::Coalescing { backlog, since: oldest.at };
            after.batches.push(oldest);
        }
        trim(&mut self.batches, &mut self.first_batch, &mut after.batches);
    }

    /// Forgets the place in the log that somebody had.
    fn leave(&mut self, feed: Feed<K>, after: &mut Aftermath<K>) {
        if let Feed::Following { next } = feed
            && let Some(at) = index(next, self.first_batch)
            && at < self.batches.len()
        {
            self.batches.range_mut(at..).for_each(|logged| logged.unread -= 1);
        } else {
            after.feeds.push(feed);
        }
        trim(&mut self.batches, &mut self.first_batch, &mut after.batches);
    }
}

fn index(number: u64, first: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(first)?).ok()
}

/// Reads a batch, and takes it out for whoever is the last to read it. What everybody has read is at the
/// front: who has not read a batch has not read those after it either.
fn read<K>(batches: &mut VecDeque<Logged<K>>, first: &mut u64, number: u64) -> Option<Arc<Batch<K>>> {
    let at = index(number, *first)?;
    let logged = batches.get_mut(at)?;
    logged.unread -= 1;
    if logged.unread > 0 {
        return Some(Arc::clone(&logged.batch));
    }
    debug_assert_eq!(at, 0, "a batch before one that everybody has read is gone");
    *first += 1;
    batches.pop_front().map(|logged| logged.batch)
}

/// Takes out the batches that nobody has yet to read.
fn trim<K>(batches: &mut VecDeque<Logged<K>>, first: &mut u64, unwanted: &mut Vec<Arc<Batch<K>>>) {
    while batches.front().is_some_and(|logged| logged.unread == 0) {
        unwanted.extend(batches.pop_front().map(|logged| logged.batch));
        *first += 1;
    }
}
