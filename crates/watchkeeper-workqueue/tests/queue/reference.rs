//! A reference queue, written for readability: maps and scans instead of slots, links, sets and tokens.

use std::{cmp::Reverse, collections::BTreeMap};

use watchkeeper_workqueue::{Admission, Cause};

pub(crate) type Key = u8;
pub(crate) const STARVATION_LIMIT: u32 = 3;

/// The time of the next run of a key, in milliseconds. Of two requests the lesser counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    Immediately,
    BackedOffUntil(u64),
    Now,
    At(u64),
}

impl Wanted {
    fn at(self) -> Option<u64> {
        if let Self::At(at) | Self::BackedOffUntil(at) = self { Some(at) } else { None }
    }

    fn admission(self) -> Admission {
        if matches!(self, Self::BackedOffUntil(_)) { Admission::BackingOff } else { Admission::Scheduled }
    }
}

/// How a worker finishes a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Done,
    Forget,
    Retry(Wanted),
    Requeue(Wanted),
    PutBack(Wanted),
}

/// A key that is queued (with its place), waiting (with its time and place), or neither: processed. Causes are not limited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    queued: Option<u64>,
    waiting: Option<(Wanted, u64)>,
    rerun: Option<Rerun>,
    ready_since: u64,
    started: u64,
    pub(crate) priority: i8,
    pub(crate) failures: u32,
    pub(crate) causes: Vec<Cause>,
}

#[derive(Debug, Clone, Copy)]
struct Rerun {
    wanted: Wanted,
    priority: i8,
    since: u64,
}

/// The figures of a queue. Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) depth: BTreeMap<i8, usize>,
    pub(crate) waiting: usize,
    pub(crate) processing: usize,
    pub(crate) unfinished: u64,
    pub(crate) longest: u64,
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    /// Number and sum.
    pub(crate) queue_durations: (u64, u64),
    pub(crate) work_durations: (u64, u64),
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) entries: BTreeMap<Key, Entry>,
    pub(crate) now: u64,
    passed_over: BTreeMap<i8, u32>,
    arrivals: u64,
    is_shut_down: bool,
    counted: Figures,
}

impl Reference {
    pub(crate) fn add(&mut self, key: Key, wanted: Wanted, priority: i8, cause: Option<Cause>) -> Admission {
        if self.is_shut_down {
            return Admission::Refused;
        }
        self.counted.retries += u64::from(wanted.at().is_some());
        let known = self.entries.remove(&key);
        let is_new = known.is_none();
        let mut entry = known.unwrap_or(Entry { priority, ..Entry::default() });
        entry.causes.extend(cause);
        entry.failures += u32::from(matches!(wanted, Wanted::BackedOffUntil(_)));
        let admission = if is_new {
            return self.place(key, entry, wanted, None);
        } else if entry.queued.is_some() {
            if priority > entry.priority {
                (entry.priority, entry.queued) = (priority, Some(self.next_arrival()));
            }
            Admission::Merged
        } else if let Some((before, _)) = entry.waiting {
            entry.priority = entry.priority.max(priority);
            if wanted < before {
                return self.place(key, entry, wanted, None);
            }
            before.admission()
        } else {
            let new = Rerun { wanted, priority, since: self.now };
            let old = entry.rerun.unwrap_or(new);
            let merged = Rerun {
                wanted: old.wanted.min(wanted),
                priority: old.priority.max(priority),
                since: old.since,
            };
            let was_ready = entry.rerun.is_some_and(|rerun| rerun.wanted.at().is_none());
            self.counted.adds += u64::from(!was_ready && merged.wanted.at().is_none());
            entry.rerun = Some(merged);
            Admission::Deferred
        };
        self.entries.insert(key, entry);
        admission
    }

    /// Dequeues a key. Returns the entry as of the dequeue, including its causes.
    pub(crate) fn get(&mut self) -> Option<(Key, Entry)> {
        let queued = |(key, entry): (&Key, &Entry)| Some((Reverse(entry.priority), entry.queued?, *key));
        let mut line: Vec<_> = self.entries.iter().filter_map(queued).collect();
        line.sort_unstable();
        let mut priorities: Vec<i8> = line.iter().map(|(priority, ..)| priority.0).collect();
        priorities.dedup();
        let passed_over = |priority: &i8| self.passed_over.get(priority).copied().unwrap_or(0);
        let starved = priorities.iter().filter(|priority| passed_over(priority) >= STARVATION_LIMIT);
        let chosen = *starved.min_by_key(|priority| Reverse(passed_over(priority))).or(priorities.first())?;
        for priority in priorities {
            *self.passed_over.entry(priority).or_default() += 1;
        }
        self.passed_over.insert(chosen, 0);
        let key = line.into_iter().find(|(priority, ..)| priority.0 == chosen)?.2;
        let entry = self.entries.get_mut(&key)?;
        (entry.queued, entry.started) = (None, self.now);
        self.counted.queue_durations.0 += 1;
        self.counted.queue_durations.1 += self.now - entry.ready_since;
        let dequeued = entry.clone();
        entry.causes.clear();
        Some((key, dequeued))
    }

    /// Finishes a key that was dequeued with `causes`.
    pub(crate) fn finish(&mut self, key: Key, causes: Vec<Cause>, outcome: Outcome) -> Option<Admission> {
        let mut entry = self.entries.remove(&key)?;
        self.counted.work_durations.0 += 1;
        self.counted.work_durations.1 += self.now - entry.started;
        let (failures, again) = match outcome {
            Outcome::Done => (entry.failures, None),
            Outcome::Forget => (0, None),
            Outcome::Retry(at) => (entry.failures + 1, Some(at)),
            Outcome::Requeue(at) => (0, Some(at)),
            Outcome::PutBack(at) => (entry.failures, Some(at)),
        };
        entry.failures = failures;
        let again = again.filter(|_| !self.is_shut_down);
        let is_retry = matches!(outcome, Outcome::Retry(_) | Outcome::Requeue(_));
        self.counted.retries += u64::from(is_retry && again.is_some());
        match outcome {
            Outcome::Retry(_) | Outcome::PutBack(_) if again.is_some() => {
                let added_meanwhile = std::mem::replace(&mut entry.causes, causes);
                if let Outcome::Retry(_) = outcome {
                    entry.causes.push(Cause::Retry(entry.failures));
                }
                entry.causes.extend(added_meanwhile);
            }
            _ => entry.causes.extend(again.map(|_| Cause::Requeue)),
        }
        let rerun = entry.rerun.take();
        let wanted = match (rerun, again) {
            (Some(rerun), Some(again)) => {
                entry.priority = entry.priority.max(rerun.priority);
                rerun.wanted.min(again)
            }
            (Some(rerun), None) => {
                entry.priority = rerun.priority;
                rerun.wanted
            }
            (None, again) => again?,
        };
        Some(self.place(key, entry, wanted, rerun))
    }

    pub(crate) fn advance(&mut self, millis: u64) {
        self.now += millis;
        let due = |(key, entry): (&Key, &Entry)| {
            let (wanted, arrival) = entry.waiting?;
            Some((wanted.at().filter(|at| *at <= self.now)?, arrival, *key))
        };
        let mut due: Vec<_> = self.entries.iter().filter_map(due).collect();
        due.sort_unstable();
        for (at, _, key) in due {
            let arrival = self.next_arrival();
            self.entries.entry(key).and_modify(|entry| {
                (entry.waiting, entry.queued, entry.ready_since) = (None, Some(arrival), at);
            });
            self.counted.adds += 1;
        }
    }

    pub(crate) fn cancel(&mut self, key: Key) -> bool {
        self.entries.extract_if(key..=key, |_, entry| entry.waiting.is_some()).next().is_some()
    }

    pub(crate) fn postpone(&mut self, key: Key, until: u64) -> bool {
        let next = self.next_arrival();
        let waiting = self.entries.get_mut(&key).and_then(|entry| entry.waiting.as_mut());
        let Some((Wanted::At(at) | Wanted::BackedOffUntil(at), arrival)) = waiting else { return false };
        if *at < until {
            (*at, *arrival) = (until, next);
        }
        true
    }

    pub(crate) fn shut_down(&mut self) -> Vec<Key> {
        self.is_shut_down = true;
        for entry in self.entries.values_mut() {
            entry.rerun = entry.rerun.filter(|rerun| rerun.wanted.at().is_none());
        }
        self.entries.extract_if(.., |_, entry| entry.waiting.is_some()).map(|(key, _)| key).collect()
    }

    pub(crate) fn queued(&self) -> usize {
        self.entries.values().filter(|entry| entry.queued.is_some()).count()
    }

    pub(crate) fn figures(&self) -> Figures {
        let mut figures = self.counted.clone();
        for entry in self.entries.values() {
            let rerun = entry.rerun.filter(|rerun| rerun.wanted.at().is_none());
            if entry.queued.is_some() {
                *figures.depth.entry(entry.priority).or_default() += 1;
            } else if entry.waiting.is_some() {
                figures.waiting += 1;
            } else {
                let running = self.now - entry.started;
                figures.processing += 1;
                figures.unfinished += running;
                figures.longest = figures.longest.max(running);
            }
            if let Some(rerun) = rerun {
                *figures.depth.entry(rerun.priority).or_default() += 1;
            }
        }
        figures
    }

    /// Queues a key or makes it wait. A rerun was counted and became ready when it was added.
    fn place(&mut self, key: Key, mut entry: Entry, wanted: Wanted, rerun: Option<Rerun>) -> Admission {
        let arrival = self.next_arrival();
        let is_later = wanted.at().is_some_and(|at| at > self.now);
        if is_later {
            (entry.queued, entry.waiting) = (None, Some((wanted, arrival)));
        } else {
            (entry.queued, entry.waiting) = (Some(arrival), None);
            entry.ready_since = rerun.map_or(self.now, |rerun| rerun.since);
            let was_counted = rerun.is_some_and(|rerun| rerun.wanted.at().is_none());
            self.counted.adds += u64::from(!was_counted);
        }
        self.entries.insert(key, entry);
        if is_later { wanted.admission() } else { Admission::Queued }
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}
