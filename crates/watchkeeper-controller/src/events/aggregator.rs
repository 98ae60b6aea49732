//! Aggregation of recorded events into series, rate limits and retries.
//!
//! A state machine: occurrences, the time and the outcomes of writes in, writes and waits out.

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
    metrics::EventFate,
    object::{Occurrence, event_name},
};

/// The identity of a series, which is never reused.
pub(super) type SeriesId = u64;

/// The next step of the writer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AggregatorAction {
    /// Create the event object.
    Create(SeriesId, Box<Event>),
    /// Set the series of an existing event object.
    Patch { id: SeriesId, namespace: String, name: String, series: EventSeries },
    /// Wait until this time.
    WaitUntil(Duration),
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The write succeeded.
    Done,
    /// An object of that name already exists.
    Exists,
    /// The object does not exist any more.
    Gone,
    /// The server rejected the object permanently.
    Rejected,
    /// The write failed, and may succeed later.
    Failed,
}

/// The occurrences of one event.
#[derive(Debug)]
struct Series {
    key: String,
    object: String,
    event: Event,
    /// The number of occurrences.
    count: u32,
    last_date: Timestamp,
    last_at: Duration,
    /// The number of occurrences that the server has stored; zero before the object is created.
    written: u32,
    written_at: Duration,
    /// The count that is being written.
    in_flight: Option<u32>,
    attempts: u32,
    /// The time of the next action on the series.
    due: Duration,
}

/// A token bucket: the number of events that a controller may still start about one object.
#[derive(Debug)]
struct TokenBucket {
    left: u32,
    since: Duration,
}

impl TokenBucket {
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
    buckets: BTreeMap<String, TokenBucket>,
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
            buckets: BTreeMap::new(),
            next_id: 0,
            last_stamp: 0,
            is_draining: false,
        }
    }

    /// Adds an occurrence. Returns its fate if it is known already.
    pub(super) fn record(&mut self, now: Duration, occurrence: &Occurrence) -> Option<EventFate> {
        let key = occurrence.key();
        if let Some(id) = self.by_key.get(&key).copied() {
            self.add_to(id, now, occurrence.date);
            return Some(EventFate::Aggregated);
        }
        if !self.has_capacity() || !self.is_allowed(now, &occurrence.source()) {
            return Some(EventFate::RateLimited);
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

    /// Returns the next action at `now`. Several writes may be in flight, at most one per series.
    pub(super) fn next(&mut self, now: Duration) -> AggregatorAction {
        loop {
            let Some(&(due, id)) = self.due.first() else {
                return AggregatorAction::WaitUntil(Duration::MAX);
            };
            if due > now {
                return AggregatorAction::WaitUntil(due);
            }
            self.due.pop_first();
            let Some(series) = self.series.get_mut(&id) else { continue };
            if series.count == series.written {
                // Nothing is left to write and no occurrence was added: the series has ended.
                self.forget(id);
                continue;
            }
            series.in_flight = Some(series.count);
            series.attempts += 1;
            let event_series = (series.count > 1).then(|| EventSeries {
                count: i32::try_from(series.count).unwrap_or(i32::MAX),
                last_observed_time: MicroTime(series.last_date),
            });
            let metadata = &series.event.metadata;
            return match event_series {
                Some(event_series) if series.written > 0 => AggregatorAction::Patch {
                    id,
                    namespace: metadata.namespace.clone().unwrap_or_default(),
                    name: metadata.name.clone().unwrap_or_default(),
                    series: event_series,
                },
                event_series => AggregatorAction::Create(
                    id,
                    Box::new(Event { series: event_series, ..series.event.clone() }),
                ),
            };
        }
    }

    /// Processes the outcome of a write. Returns the fate of the event if it is known now.
    pub(super) fn outcome(
        &mut self,
        now: Duration,
        id: SeriesId,
        outcome: WriteOutcome,
    ) -> Option<EventFate> {
        let stamp = self.stamp(Timestamp::UNIX_EPOCH);
        let series = self.series.get_mut(&id)?;
        let mut written = series.in_flight.take()?;
        let is_creation = series.written == 0;
        match outcome {
            WriteOutcome::Done => {}
            // After a failed attempt, an existing object means that the attempt created it and the response was lost. The
            // object has the content of that attempt.
            WriteOutcome::Exists if is_creation && series.attempts > 1 => written = 1,
            WriteOutcome::Exists | WriteOutcome::Gone
                if series.attempts < self.options.attempts
                    && !(is_creation && outcome == WriteOutcome::Gone) =>
            {
                // The name belongs to another event, or the object has expired: create the object under another name.
                series.event.metadata.name = Some(event_name(&series.object, stamp));
                (series.written, series.due) = (0, now);
                self.due.insert((now, id));
                return None;
            }
            WriteOutcome::Failed if series.attempts < self.options.attempts && !self.is_draining => {
                series.due = now.saturating_add(self.options.retry_interval);
                self.due.insert((series.due, id));
                return None;
            }
            WriteOutcome::Exists | WriteOutcome::Gone | WriteOutcome::Rejected | WriteOutcome::Failed => {
                self.forget(id);
                return Some(EventFate::Failed);
            }
        }
        let fate = is_creation.then_some(EventFate::Created);
        (series.written, series.written_at, series.attempts) = (written, now, 0);
        self.schedule(id, now);
        fate
    }

    /// Makes all unwritten occurrences due, without retries.
    pub(super) fn drain(&mut self, now: Duration) {
        self.is_draining = true;
        let ids: Vec<SeriesId> = self.series.keys().copied().collect();
        for id in ids {
            self.schedule(id, now);
        }
    }

    /// Returns whether no write is in flight and no occurrence is unwritten.
    pub(super) fn is_idle(&self) -> bool {
        self.series.values().all(|series| series.in_flight.is_none() && series.count == series.written)
    }

    fn add_to(&mut self, id: SeriesId, now: Duration, date: Timestamp) {
        let Some(series) = self.series.get_mut(&id) else { return };
        series.count = series.count.saturating_add(1);
        (series.last_at, series.last_date) = (now, date.max(series.last_date));
        // A series that waits for a retry keeps its time.
        if series.in_flight.is_none() && series.attempts == 0 {
            self.schedule(id, now);
        }
    }

    /// Sets the time of the next action on a series without a write in flight.
    fn schedule(&mut self, id: SeriesId, now: Duration) {
        let (refresh, ends) = (self.options.refresh_interval, self.options.series_ends_after);
        let Some(series) = self.series.get_mut(&id).filter(|series| series.in_flight.is_none()) else {
            return;
        };
        self.due.remove(&(series.due, id));
        let is_unwritten = series.count > series.written;
        series.due = if is_unwritten && (self.is_draining || series.written <= 1) {
            now
        } else if is_unwritten {
            // Written at most once per interval, and when the series ends.
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

    /// Returns whether a series can be added. At the limit, evicts a quarter of the completely written series, those with
    /// the oldest last occurrence first.
    fn has_capacity(&mut self) -> bool {
        if self.series.len() < self.options.series {
            return true;
        }
        let is_quiet = |series: &Series| series.in_flight.is_none() && series.count == series.written;
        let quiet = self.series.iter().filter(|(_, series)| is_quiet(series));
        let mut quiet: Vec<(Duration, SeriesId)> = quiet.map(|(id, series)| (series.last_at, *id)).collect();
        quiet.sort_unstable();
        let evicted = quiet.len().div_ceil(4);
        quiet.truncate(evicted);
        for (_, id) in quiet {
            self.forget(id);
        }
        evicted > 0
    }

    fn is_allowed(&mut self, now: Duration, source: &str) -> bool {
        let (burst, interval) = (self.options.burst, self.options.refill_interval);
        if self.buckets.len() >= self.options.series && !self.buckets.contains_key(source) {
            self.evict_buckets(now);
        }
        let bucket = self.buckets.entry(source.to_owned()).or_insert(TokenBucket { left: burst, since: now });
        bucket.refill(now, burst, interval);
        let is_allowed = bucket.left > 0;
        bucket.left = bucket.left.saturating_sub(1);
        is_allowed
    }

    /// Evicts the fuller half of the buckets, which lose the least by being refilled.
    fn evict_buckets(&mut self, now: Duration) {
        let (burst, interval) = (self.options.burst, self.options.refill_interval);
        let mut left: Vec<(u32, String)> = Vec::with_capacity(self.buckets.len());
        for (source, bucket) in &mut self.buckets {
            bucket.refill(now, burst, interval);
            left.push((bucket.left, source.clone()));
        }
        left.sort_unstable();
        let kept = left.len() / 2;
        for (_, source) in left.split_off(kept) {
            self.buckets.remove(&source);
        }
    }

    /// Returns a number that is unique within this process: the date, or the next free number after it.
    fn stamp(&mut self, date: Timestamp) -> i64 {
        let nanos = i64::try_from(date.as_nanosecond()).unwrap_or(0);
        self.last_stamp = nanos.max(self.last_stamp.saturating_add(1));
        self.last_stamp
    }
}
