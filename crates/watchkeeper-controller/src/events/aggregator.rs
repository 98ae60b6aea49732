//! From things that happen to objects to write: what is a series, what is too much, what is tried again.
//!
//! A state machine: occurrences, the time and what came of writes go in, writes and waits come out.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::events::v1::{Event, EventSeries},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

use super::{
    EventOptions,
    metrics::Fate,
    object::{Occurrence, event_name},
};

/// Which series. Never used twice.
pub(super) type SeriesId = u64;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Create the object.
    Create(SeriesId, Box<Event>),
    /// Set the series of an object that exists.
    Patch { id: SeriesId, namespace: String, name: String, series: EventSeries },
    /// Nothing before this time.
    WaitUntil(Duration),
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// An object of that name exists already.
    Exists,
    /// There is no such object any more.
    Gone,
    /// The server will not take it, now or later.
    Refused,
    /// It may be taken later.
    Failed,
}

#[derive(Debug)]
struct Series {
    key: String,
    object: String,
    event: Event,
    /// How often it happened.
    count: u32,
    last_date: Timestamp,
    last_at: Duration,
    /// How often the server knows it happened; zero when it does not know of it at all.
    written: u32,
    written_at: Duration,
    /// The count that is being written.
    in_flight: Option<u32>,
    attempts: u32,
    /// When something is to be done about it, if nothing else happens.
    due: Duration,
}

/// How many events a source may still start about one object.
#[derive(Debug)]
struct Allowance {
    left: u32,
    since: Duration,
}

impl Allowance {
    fn refill(&mut self, now: Duration, burst: u32, interval: Duration) {
        let intervals = now.saturating_sub(self.since).as_nanos() / interval.as_nanos().max(1);
        let more = u32::try_from(intervals).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(more).min(burst);
        self.since =
            if self.left == burst { now } else { self.since.saturating_add(interval.saturating_mul(more)) };
    }
}

#[derive(Debug)]
pub(super) struct Aggregator {
    options: EventOptions,
    series: BTreeMap<SeriesId, Series>,
    by_key: BTreeMap<String, SeriesId>,
    due: BTreeSet<(Duration, SeriesId)>,
    allowances: BTreeMap<String, Allowance>,
    next_id: SeriesId,
    last_stamp: i64,
    is_draining: bool,
}

impl Aggregator {
    pub(super) fn new(options: EventOptions) -> Self {
        Self {
            options,
            series: BTreeMap::new(),
            by_key: BTreeMap::new(),
            due: BTreeSet::new(),
            allowances: BTreeMap::new(),
            next_id: 0,
            last_stamp: 0,
            is_draining: false,
        }
    }

    /// Takes something that happened. The answer is what became of it, if that is known already.
    pub(super) fn occur(&mut self, now: Duration, occurrence: &Occurrence) -> Option<Fate> {
        let key = occurrence.key();
        if let Some(id) = self.by_key.get(&key).copied() {
            self.add_to(id, now, occurrence.date);
            return Some(Fate::Aggregated);
        }
        if !self.make_room() || !self.is_allowed(now, &occurrence.source()) {
            return Some(Fate::RateLimited);
        }
        let (id, stamp) = (self.next_id, self.stamp(occurrence.date));
        self.next_id += 1;
        let series = Series {
            key: key.clone(),
            object: occurrence.regarding.name.clone().unwrap_or_default(),
            event: occurrence.object(stamp),
            count: 1,
            last_date: occurrence.date,
            last_at: now,
            written: 0,
            written_at: now,
            in_flight: None,
            attempts: 0,
            due: now,
        };
        self.by_key.insert(key, id);
        self.due.insert((now, id));
        self.series.insert(id, series);
        None
    }

    /// What to do at `now`. Several writes may be on their way, each of another series.
    pub(super) fn next(&mut self, now: Duration) -> Action {
        loop {
            let Some(&(due, id)) = self.due.first() else { return Action::WaitUntil(Duration::MAX) };
            if due > now {
                return Action::WaitUntil(due);
            }
            self.due.pop_first();
            let Some(series) = self.series.get_mut(&id) else { continue };
            if series.count == series.written {
                // Nothing to write and nothing new: the series is over.
                self.forget(id);
                continue;
            }
            series.in_flight = Some(series.count);
            series.attempts += 1;
            let told = (series.count > 1).then(|| EventSeries {
                count: i32::try_from(series.count).unwrap_or(i32::MAX),
                last_observed_time: MicroTime(series.last_date),
            });
            let metadata = &series.event.metadata;
            return match told {
                Some(told) if series.written > 0 => Action::Patch {
                    id,
                    namespace: metadata.namespace.clone().unwrap_or_default(),
                    name: metadata.name.clone().unwrap_or_default(),
                    series: told,
                },
                told => Action::Create(id, Box::new(Event { series: told, ..series.event.clone() })),
            };
        }
    }

    /// Takes in what came of a write. The answer is what became of the event, if that is known now.
    pub(super) fn outcome(&mut self, now: Duration, id: SeriesId, outcome: Outcome) -> Option<Fate> {
        let stamp = self.stamp(Timestamp::UNIX_EPOCH);
        let series = self.series.get_mut(&id)?;
        let mut written = series.in_flight.take()?;
        let is_creation = series.written == 0;
        match outcome {
            Outcome::Done => {}
            // That it exists when it was tried before means that the answer was lost, and it was created; with what it was to say then.
            Outcome::Exists if is_creation && series.attempts > 1 => written = 1,
            Outcome::Exists | Outcome::Gone
                if series.attempts < self.options.attempts && !(is_creation && outcome == Outcome::Gone) =>
            {
                // The name is another's, or the object has expired: it is made anew, under another name.
                series.event.metadata.name = Some(event_name(&series.object, stamp));
                (series.written, series.due) = (0, now);
                self.due.insert((now, id));
                return None;
            }
            Outcome::Failed if series.attempts < self.options.attempts && !self.is_draining => {
                series.due = now.saturating_add(self.options.retry_interval);
                self.due.insert((series.due, id));
                return None;
            }
            Outcome::Exists | Outcome::Gone | Outcome::Refused | Outcome::Failed => {
                self.forget(id);
                return Some(Fate::Failed);
            }
        }
        let fate = is_creation.then_some(Fate::Created);
        (series.written, series.written_at, series.attempts) = (written, now, 0);
        self.schedule(id, now);
        fate
    }

    /// What is known is written as soon as possible, once.
    pub(super) fn drain(&mut self, now: Duration) {
        self.is_draining = true;
        let ids: Vec<SeriesId> = self.series.keys().copied().collect();
        for id in ids {
            self.schedule(id, now);
        }
    }

    /// Nothing is on its way or waits to be written.
    pub(super) fn is_idle(&self) -> bool {
        self.series.values().all(|series| series.in_flight.is_none() && series.count == series.written)
    }

    fn add_to(&mut self, id: SeriesId, now: Duration, date: Timestamp) {
        let Some(series) = self.series.get_mut(&id) else { return };
        series.count = series.count.saturating_add(1);
        (series.last_at, series.last_date) = (now, date.max(series.last_date));
        // One that waits to be tried again goes on waiting.
        if series.in_flight.is_none() && series.attempts == 0 {
            self.schedule(id, now);
        }
    }

    /// When to look at a series again, of which nothing is on its way.
    fn schedule(&mut self, id: SeriesId, now: Duration) {
        let (refresh, ends) = (self.options.refresh_interval, self.options.series_ends_after);
        let Some(series) = self.series.get_mut(&id).filter(|series| series.in_flight.is_none()) else {
            return;
        };
        self.due.remove(&(series.due, id));
        let has_news = series.count > series.written;
        series.due = if has_news && (self.is_draining || series.written <= 1) {
            now
        } else if has_news {
            // Written at most once an interval, and when the series ends.
            series.written_at.saturating_add(refresh).max(now)
        } else {
            series.last_at.saturating_add(ends).max(now)
        };
        self.due.insert((series.due, id));
    }

    fn forget(&mut self, id: SeriesId) {
        if let Some(series) = self.series.remove(&id) {
            self.due.remove(&(series.due, id));
            self.by_key.remove(&series.key);
        }
    }

    /// Makes room for one more series: of those that have no news, a part goes, those first that were quiet for longest. If there are
    /// none, there is no room.
    fn make_room(&mut self) -> bool {
        if self.series.len() < self.options.series {
            return true;
        }
        let is_quiet = |series: &Series| series.in_flight.is_none() && series.count == series.written;
        let quiet = self.series.iter().filter(|(_, series)| is_quiet(series));
        let mut quiet: Vec<(Duration, SeriesId)> = quiet.map(|(id, series)| (series.last_at, *id)).collect();
        quiet.sort_unstable();
        let some = quiet.len().div_ceil(4);
        quiet.truncate(some);
        for (_, id) in quiet {
            self.forget(id);
        }
        some > 0
    }

    fn is_allowed(&mut self, now: Duration, source: &str) -> bool {
        let (burst, interval) = (self.options.burst, self.options.refill_interval);
        if self.allowances.len() >= self.options.series && !self.allowances.contains_key(source) {
            self.forget_allowances(now);
        }
        let allowance =
            self.allowances.entry(source.to_owned()).or_insert(Allowance { left: burst, since: now });
        allowance.refill(now, burst, interval);
        let is_allowed = allowance.left > 0;
        allowance.left = allowance.left.saturating_sub(1);
        is_allowed
    }

    /// Forgets half the allowances: those of which most is left, because they lose least by being whole again.
    fn forget_allowances(&mut self, now: Duration) {
        let (burst, interval) = (self.options.burst, self.options.refill_interval);
        let mut left: Vec<(u32, String)> = Vec::with_capacity(self.allowances.len());
        for (source, allowance) in &mut self.allowances {
            allowance.refill(now, burst, interval);
            left.push((allowance.left, source.clone()));
        }
        left.sort_unstable();
        let kept = left.len() / 2;
        for (_, source) in left.split_off(kept) {
            self.allowances.remove(&source);
        }
    }

    /// A number no other event of this process has, by the date if that moves.
    fn stamp(&mut self, date: Timestamp) -> i64 {
        let nanos = i64::try_from(date.as_nanosecond()).unwrap_or(0);
        self.last_stamp = nanos.max(self.last_stamp.saturating_add(1));
        self.last_stamp
    }
}
