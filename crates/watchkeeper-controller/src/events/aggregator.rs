//! From things that happen to objects to write: what is a series, what is too much, what is tried again.
//!
//! A state machine: occurrences, the time and what came of writes go in, writes and waits come out.

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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;
    use proptest::prelude::*;

    use super::*;
    use crate::events::EventType;

    const SECOND: Duration = Duration::from_secs(1);

    fn occurrence(object: &str, reason: &str, second: u64) -> Occurrence {
        Occurrence {
            kind: EventType::Normal,
            reason: reason.to_owned(),
            action: "Test".to_owned(),
            note: "a note".to_owned(),
            regarding: ObjectReference {
                kind: Some("Pod".to_owned()),
                name: Some(object.to_owned()),
                namespace: Some("n".to_owned()),
                ..ObjectReference::default()
            },
            related: None,
            controller: "test".to_owned(),
            instance: "test-host".to_owned(),
            date: Timestamp::from_second(i64::try_from(second).unwrap()).unwrap(),
        }
    }

    /// An aggregator whose first event was written.
    fn written() -> (Aggregator, SeriesId) {
        let mut aggregator = Aggregator::new(EventOptions::default());
        assert_eq!(aggregator.occur(SECOND, &occurrence("web", "Synced", 1)), None);
        let Action::Create(id, event) = aggregator.next(SECOND) else { panic!("created at once") };
        assert_eq!(event.series, None, "one is no series");
        assert_eq!(aggregator.outcome(SECOND, id, Outcome::Done), Some(Fate::Created));
        (aggregator, id)
    }

    fn count(action: &Action) -> i32 {
        match action {
            Action::Patch { series, .. } => series.count,
            Action::Create(_, event) => event.series.as_ref().map_or(1, |series| series.count),
            Action::WaitUntil(at) => panic!("a wait until {at:?}"),
        }
    }

    #[test]
    fn the_second_occurrence_is_written_at_once_and_later_ones_together() {
        let (mut aggregator, id) = written();
        assert_eq!(aggregator.occur(SECOND * 2, &occurrence("web", "Synced", 2)), Some(Fate::Aggregated));
        let patch = aggregator.next(SECOND * 2);
        assert_eq!(count(&patch), 2);
        aggregator.outcome(SECOND * 2, id, Outcome::Done);
        // One each second for a minute: nothing is written before the interval is over, and it is not put off for ever either.
        for second in 3..62 {
            aggregator.occur(SECOND * second, &occurrence("web", "Synced", u64::from(second)));
            assert_eq!(aggregator.next(SECOND * second), Action::WaitUntil(SECOND * 62));
        }
        let patch = aggregator.next(SECOND * 62);
        let Action::Patch { series, .. } = &patch else { panic!("{patch:?}") };
        assert_eq!(series.count, 61);
        assert_eq!(series.last_observed_time.0, Timestamp::from_second(61).unwrap());
    }

    #[test]
    fn occurrences_during_a_write_are_in_the_next() {
        let mut aggregator = Aggregator::new(EventOptions::default());
        aggregator.occur(SECOND, &occurrence("web", "Synced", 1));
        let Action::Create(id, _) = aggregator.next(SECOND) else { panic!("created") };
        aggregator.occur(SECOND, &occurrence("web", "Synced", 2));
        assert_eq!(
            aggregator.next(SECOND),
            Action::WaitUntil(Duration::MAX),
            "one write of a series at a time"
        );
        aggregator.outcome(SECOND, id, Outcome::Done);
        assert_eq!(count(&aggregator.next(SECOND)), 2);
    }

    #[test]
    fn a_series_that_nothing_is_added_to_ends_and_the_same_thing_is_a_new_event() {
        let (mut aggregator, _) = written();
        let end = SECOND * 361;
        assert_eq!(aggregator.next(SECOND * 360), Action::WaitUntil(end));
        assert_eq!(aggregator.next(end), Action::WaitUntil(Duration::MAX));
        assert!(aggregator.series.is_empty() && aggregator.by_key.is_empty() && aggregator.due.is_empty());
        aggregator.occur(end, &occurrence("web", "Synced", 361));
        assert!(matches!(aggregator.next(end), Action::Create(..)));
    }

    #[test]
    fn a_write_that_fails_is_tried_again_so_often_and_then_given_up() {
        let mut aggregator = Aggregator::new(EventOptions::default());
        let mut now = SECOND;
        aggregator.occur(now, &occurrence("web", "Synced", 1));
        for attempt in 1..=12 {
            let Action::Create(id, _) = aggregator.next(now) else { panic!("attempt {attempt}") };
            // More of the same changes nothing about when it is tried again.
            aggregator.occur(now, &occurrence("web", "Synced", 1));
            let fate = aggregator.outcome(now, id, Outcome::Failed);
            assert_eq!(fate, (attempt == 12).then_some(Fate::Failed));
            if attempt < 12 {
                assert_eq!(aggregator.next(now), Action::WaitUntil(now + SECOND * 10));
            }
            now += SECOND * 10;
        }
        assert!(aggregator.series.is_empty() && aggregator.due.is_empty());
    }

    #[test]
    fn an_answer_that_was_lost_is_no_second_event() {
        let mut aggregator = Aggregator::new(EventOptions::default());
        aggregator.occur(SECOND, &occurrence("web", "Synced", 1));
        let Action::Create(id, first) = aggregator.next(SECOND) else { panic!("created") };
        aggregator.outcome(SECOND, id, Outcome::Failed);
        let Action::Create(_, again) = aggregator.next(SECOND * 11) else { panic!("tried again") };
        assert_eq!(first.metadata.name, again.metadata.name);
        assert_eq!(aggregator.outcome(SECOND * 11, id, Outcome::Exists), Some(Fate::Created));
        assert!(aggregator.is_idle());
    }

    #[test]
    fn a_name_that_is_anothers_and_an_object_that_has_expired_lead_to_another_name() {
        let mut aggregator = Aggregator::new(EventOptions::default());
        aggregator.occur(SECOND, &occurrence("web", "Synced", 1));
        let Action::Create(id, first) = aggregator.next(SECOND) else { panic!("created") };
        assert_eq!(aggregator.outcome(SECOND, id, Outcome::Exists), None);
        let Action::Create(_, second) = aggregator.next(SECOND) else { panic!("created anew") };
        assert_ne!(first.metadata.name, second.metadata.name);
        aggregator.outcome(SECOND, id, Outcome::Done);
        aggregator.occur(SECOND * 2, &occurrence("web", "Synced", 2));
        assert!(matches!(aggregator.next(SECOND * 2), Action::Patch { .. }));
        assert_eq!(aggregator.outcome(SECOND * 2, id, Outcome::Gone), None);
        let again = aggregator.next(SECOND * 2);
        let Action::Create(_, third) = &again else { panic!("created anew") };
        assert_ne!(third.metadata.name, second.metadata.name);
        assert_eq!(count(&again), 2, "with what is known of the series");
    }

    #[test]
    fn a_refusal_is_final() {
        let mut aggregator = Aggregator::new(EventOptions::default());
        aggregator.occur(SECOND, &occurrence("web", "Synced", 1));
        let Action::Create(id, _) = aggregator.next(SECOND) else { panic!("created") };
        assert_eq!(aggregator.outcome(SECOND, id, Outcome::Refused), Some(Fate::Failed));
        assert_eq!(aggregator.next(SECOND * 100), Action::WaitUntil(Duration::MAX));
    }

    #[test]
    fn one_object_may_start_so_many_events_and_then_one_in_a_while() {
        let mut aggregator = Aggregator::new(EventOptions::default());
        let start = |aggregator: &mut Aggregator, now: Duration, number: usize| {
            aggregator.occur(now, &occurrence("web", &format!("Reason{number}"), 1)).is_none()
        };
        let started = (0..40).filter(|number| start(&mut aggregator, SECOND, *number)).count();
        assert_eq!(started, 25);
        assert!(aggregator.occur(SECOND, &occurrence("other", "Reason", 1)).is_none(), "others may");
        let later = SECOND * 301;
        assert!(start(&mut aggregator, later, 100) && !start(&mut aggregator, later, 101));
        let much_later = SECOND * 300 * 100;
        let started = (200..240).filter(|number| start(&mut aggregator, much_later, *number)).count();
        assert_eq!(started, 25, "no more than a burst is saved up");
    }

    #[test]
    fn memory_is_bounded_and_quiet_series_go_first() {
        let options = EventOptions { series: 3, ..EventOptions::default() };
        let mut aggregator = Aggregator::new(options);
        let write = |aggregator: &mut Aggregator, now: Duration| match aggregator.next(now) {
            Action::Create(id, _) => aggregator.outcome(now, id, Outcome::Done),
            action => panic!("{action:?}"),
        };
        for (second, object) in ["a", "b"].into_iter().enumerate() {
            let now = SECOND * u32::try_from(second).unwrap();
            aggregator.occur(now, &occurrence(object, "R", 1));
            write(&mut aggregator, now);
        }
        let now = SECOND * 5;
        assert_eq!(aggregator.occur(now, &occurrence("c", "R", 1)), None);
        assert_eq!(
            aggregator.occur(now, &occurrence("d", "R", 1)),
            None,
            "in place of a, which was quiet for longest"
        );
        let keys: Vec<&str> = aggregator.series.values().map(|series| series.object.as_str()).collect();
        assert_eq!(keys, ["b", "c", "d"]);
        assert_eq!(aggregator.occur(now, &occurrence("e", "R", 1)), None, "in place of b");
        assert_eq!(
            aggregator.occur(now, &occurrence("f", "R", 1)),
            Some(Fate::RateLimited),
            "none that has not been written goes"
        );
        assert!(aggregator.allowances.len() <= 3);
    }

    #[test]
    fn at_the_end_everything_that_is_known_is_written_once() {
        let (mut aggregator, id) = written();
        for second in 2..10 {
            aggregator.occur(SECOND * 2, &occurrence("web", "Synced", second));
        }
        let _ = aggregator.next(SECOND * 2);
        aggregator.outcome(SECOND * 2, id, Outcome::Done);
        aggregator.occur(SECOND * 3, &occurrence("web", "Synced", 10));
        aggregator.occur(SECOND * 3, &occurrence("web", "New", 10));
        assert!(matches!(aggregator.next(SECOND * 3), Action::Create(..)));
        assert!(
            matches!(aggregator.next(SECOND * 3), Action::WaitUntil(_)),
            "a series that goes on waits for its time"
        );
        aggregator.drain(SECOND * 3);
        assert_eq!(count(&aggregator.next(SECOND * 3)), 10);
        assert!(!aggregator.is_idle());
        aggregator.outcome(SECOND * 3, id, Outcome::Failed);
        aggregator.outcome(SECOND * 3, id + 1, Outcome::Done);
        assert!(aggregator.is_idle(), "what fails at the end is not tried again");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Occur(u8, u8),
        Pass(u16),
        Answer(Outcome),
    }

    fn step() -> impl Strategy<Value = Step> {
        let outcome = prop_oneof![
            3 => Just(Outcome::Done),
            1 => Just(Outcome::Failed),
            1 => Just(Outcome::Gone),
            1 => Just(Outcome::Refused),
        ];
        prop_oneof![
            3 => (0_u8..3, 0_u8..3).prop_map(|(object, reason)| Step::Occur(object, reason)),
            1 => (0_u16..400).prop_map(Step::Pass),
            3 => outcome.prop_map(Step::Answer),
        ]
    }

    /// A server, as far as events go.
    #[derive(Default)]
    struct Server {
        counts: BTreeMap<(SeriesId, String), u32>,
        /// Counts of objects that were taken away, and of series that were given up.
        gone: u32,
        given_up: u32,
    }

    impl Server {
        /// Does what it is asked, or what came of it instead; every other failure is an answer that got lost.
        fn answer(&mut self, aggregator: &mut Aggregator, now: Duration, action: &Action, outcome: Outcome) {
            let (id, name) = match action {
                Action::Create(id, event) => (*id, event.metadata.name.clone().unwrap()),
                Action::Patch { id, name, .. } => (*id, name.clone()),
                Action::WaitUntil(at) => panic!("a wait until {at:?}"),
            };
            let (key, count) = ((id, name), u32::try_from(count(action)).unwrap());
            let outcome = match (action, outcome) {
                (Action::Create(..), _) if self.counts.contains_key(&key) => Outcome::Exists,
                (Action::Create(..), Outcome::Gone) => Outcome::Failed,
                (_, outcome) => outcome,
            };
            let is_lost_answer = outcome == Outcome::Failed && count.is_multiple_of(2);
            if outcome == Outcome::Done || is_lost_answer {
                self.counts.insert(key.clone(), count);
            }
            if outcome == Outcome::Gone {
                self.gone += self.counts.remove(&key).unwrap_or(0);
            }
            let in_series = aggregator.series.get(&id).map_or(0, |series| series.count);
            if aggregator.outcome(now, id, outcome) == Some(Fate::Failed) {
                let known = self.counts.get(&key).copied().unwrap_or(0);
                self.given_up += in_series.saturating_sub(known);
            }
        }
    }

    proptest! {
        #[test]
        fn no_occurrence_is_lost_without_being_told(steps in prop::collection::vec(step(), 0..120)) {
            let mut aggregator = Aggregator::new(EventOptions { burst: 1000, ..EventOptions::default() });
            let (mut server, mut now, mut occurred) = (Server::default(), SECOND, 0_u32);
            let mut in_flight: Vec<Action> = Vec::new();
            for step in steps {
                match step {
                    Step::Occur(object, reason) => {
                        occurred += 1;
                        let occurrence = occurrence(&format!("o{object}"), &format!("r{reason}"), now.as_secs());
                        prop_assert_ne!(aggregator.occur(now, &occurrence), Some(Fate::RateLimited));
                    }
                    Step::Pass(seconds) => now += SECOND * u32::from(seconds),
                    Step::Answer(outcome) => {
                        if let Some(action) = in_flight.pop() {
                            server.answer(&mut aggregator, now, &action, outcome);
                        }
                    }
                }
                while in_flight.len() < 4 {
                    match aggregator.next(now) {
                        Action::WaitUntil(at) => {
                            prop_assert!(at > now);
                            break;
                        }
                        action => in_flight.push(action),
                    }
                }
            }
            aggregator.drain(now);
            loop {
                match aggregator.next(now) {
                    Action::WaitUntil(_) => {}
                    action => in_flight.push(action),
                }
                let Some(action) = in_flight.pop() else { break };
                server.answer(&mut aggregator, now, &action, Outcome::Done);
            }
            prop_assert!(aggregator.is_idle());
            let known: u32 = server.counts.values().sum();
            // An object that was taken away is made anew with the whole count: it may be counted twice, never too little.
            prop_assert!(known + server.given_up + server.gone >= occurred);
            if server.gone == 0 && server.given_up == 0 {
                prop_assert_eq!(known, occurred);
            }
        }
    }
}
