//! The queue, written to be read instead of to be fast: maps, scans and no slots, links, heaps or tokens.

use std::{cmp::Reverse, collections::BTreeMap};

use watchkeeper_workqueue::{Admission, Cause};

pub(crate) type Key = u8;
pub(crate) const PATIENCE: u32 = 3;

/// When a key is wanted next, in milliseconds. Of two wishes the lesser holds.
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

/// What a worker says at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    Done,
    Forget,
    Retry(Wanted),
    Requeue(Wanted),
    PutBack(Wanted),
}

/// A key: in line (since when), waiting (for what, since when), or neither: held. Its causes are uncapped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    in_line: Option<u64>,
    waiting: Option<(Wanted, u64)>,
    rerun: Option<(Wanted, i8)>,
    pub(crate) priority: i8,
    pub(crate) failures: u32,
    pub(crate) causes: Vec<Cause>,
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) entries: BTreeMap<Key, Entry>,
    pub(crate) now: u64,
    left_aside: BTreeMap<i8, u32>,
    arrivals: u64,
    is_shut_down: bool,
}

impl Reference {
    pub(crate) fn add(&mut self, key: Key, wanted: Wanted, priority: i8, cause: Option<Cause>) -> Admission {
        if self.is_shut_down {
            return Admission::Refused;
        }
        let known = self.entries.remove(&key);
        let is_new = known.is_none();
        let mut entry = known.unwrap_or(Entry { priority, ..Entry::default() });
        entry.causes.extend(cause);
        entry.failures += u32::from(matches!(wanted, Wanted::BackedOffUntil(_)));
        let admission = if is_new {
            return self.place(key, entry, wanted);
        } else if entry.in_line.is_some() {
            if priority > entry.priority {
                (entry.priority, entry.in_line) = (priority, Some(self.next_arrival()));
            }
            Admission::Merged
        } else if let Some((before, _)) = entry.waiting {
            entry.priority = entry.priority.max(priority);
            if wanted < before {
                return self.place(key, entry, wanted);
            }
            before.admission()
        } else {
            let (before, highest) = entry.rerun.unwrap_or((wanted, priority));
            entry.rerun = Some((before.min(wanted), highest.max(priority)));
            Admission::Deferred
        };
        self.entries.insert(key, entry);
        admission
    }

    /// Hands a key out: the entry as it is then, its causes included.
    pub(crate) fn get(&mut self) -> Option<(Key, Entry)> {
        let in_line = |(key, entry): (&Key, &Entry)| Some((Reverse(entry.priority), entry.in_line?, *key));
        let mut line: Vec<_> = self.entries.iter().filter_map(in_line).collect();
        line.sort_unstable();
        let mut lanes: Vec<i8> = line.iter().map(|(priority, ..)| priority.0).collect();
        lanes.dedup();
        let aside = |lane: &i8| self.left_aside.get(lane).copied().unwrap_or(0);
        let impatient = lanes.iter().filter(|lane| aside(lane) >= PATIENCE);
        let lane = *impatient.min_by_key(|lane| Reverse(aside(lane))).or(lanes.first())?;
        for lane in lanes {
            *self.left_aside.entry(lane).or_default() += 1;
        }
        self.left_aside.insert(lane, 0);
        let key = line.into_iter().find(|(priority, ..)| priority.0 == lane)?.2;
        let entry = self.entries.get_mut(&key)?;
        entry.in_line = None;
        let handed_out = entry.clone();
        entry.causes.clear();
        Some((key, handed_out))
    }

    /// Ends the work on a key that was handed out with `causes`.
    pub(crate) fn finish(&mut self, key: Key, causes: Vec<Cause>, verdict: Verdict) -> Option<Admission> {
        let mut entry = self.entries.remove(&key)?;
        let (failures, again) = match verdict {
            Verdict::Done => (entry.failures, None),
            Verdict::Forget => (0, None),
            Verdict::Retry(at) => (entry.failures + 1, Some(at)),
            Verdict::Requeue(at) => (0, Some(at)),
            Verdict::PutBack(at) => (entry.failures, Some(at)),
        };
        entry.failures = failures;
        let again = again.filter(|_| !self.is_shut_down).map(|at| (at, entry.priority));
        match verdict {
            Verdict::Retry(_) | Verdict::PutBack(_) if again.is_some() => {
                let added_meanwhile = std::mem::replace(&mut entry.causes, causes);
                if let Verdict::Retry(_) = verdict {
                    entry.causes.push(Cause::Retry(entry.failures));
                }
                entry.causes.extend(added_meanwhile);
            }
            _ => entry.causes.extend(again.map(|_| Cause::Requeue)),
        }
        let (wanted, priority) = match (entry.rerun.take(), again) {
            (Some((a, p)), Some((b, q))) => (a.min(b), p.max(q)),
            (one, other) => one.or(other)?,
        };
        entry.priority = priority;
        Some(self.place(key, entry, wanted))
    }

    pub(crate) fn advance(&mut self, millis: u64) {
        self.now += millis;
        let due = |(key, entry): (&Key, &Entry)| {
            let (wanted, arrival) = entry.waiting?;
            Some((wanted.at().filter(|at| *at <= self.now)?, arrival, *key))
        };
        let mut due: Vec<_> = self.entries.iter().filter_map(due).collect();
        due.sort_unstable();
        for (.., key) in due {
            let in_line = (None, Some(self.next_arrival()));
            self.entries.entry(key).and_modify(|entry| (entry.waiting, entry.in_line) = in_line);
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
            entry.rerun = entry.rerun.filter(|(wanted, _)| wanted.at().is_none());
        }
        self.entries.extract_if(.., |_, entry| entry.waiting.is_some()).map(|(key, _)| key).collect()
    }

    /// Keys in line, waiting, and held.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let in_line = self.entries.values().filter(|entry| entry.in_line.is_some()).count();
        let waiting = self.entries.values().filter(|entry| entry.waiting.is_some()).count();
        (in_line, waiting, self.entries.len() - in_line - waiting)
    }

    fn place(&mut self, key: Key, mut entry: Entry, wanted: Wanted) -> Admission {
        let arrival = self.next_arrival();
        let is_later = wanted.at().is_some_and(|at| at > self.now);
        (entry.in_line, entry.waiting) =
            if is_later { (None, Some((wanted, arrival))) } else { (Some(arrival), None) };
        self.entries.insert(key, entry);
        if is_later { wanted.admission() } else { Admission::Queued }
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}
