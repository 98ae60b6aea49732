//! Tests of the aggregator: single steps, and random schedules against a model of a failing server.

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
    assert_eq!(aggregator.record(SECOND, &occurrence("web", "Synced", 1)), None);
    let AggregatorAction::Create(id, event) = aggregator.next(SECOND) else { panic!("not created") };
    assert_eq!(event.series, None, "a single occurrence is no series");
    assert_eq!(aggregator.outcome(SECOND, id, WriteOutcome::Done), Some(EventFate::Created));
    (aggregator, id)
}

fn count(action: &AggregatorAction) -> i32 {
    match action {
        AggregatorAction::Patch { series, .. } => series.count,
        AggregatorAction::Create(_, event) => event.series.as_ref().map_or(1, |series| series.count),
        AggregatorAction::WaitUntil(at) => panic!("a wait until {at:?}"),
    }
}

#[test]
fn the_second_occurrence_is_written_immediately_and_later_ones_together() {
    let (mut aggregator, id) = written();
    assert_eq!(aggregator.record(SECOND * 2, &occurrence("web", "Synced", 2)), Some(EventFate::Aggregated));
    let patch = aggregator.next(SECOND * 2);
    assert_eq!(count(&patch), 2);
    aggregator.outcome(SECOND * 2, id, WriteOutcome::Done);
    // An occurrence each second for a minute: nothing is written before the interval ends, and the write is not postponed.
    for second in 3..62 {
        aggregator.record(SECOND * second, &occurrence("web", "Synced", u64::from(second)));
        assert_eq!(aggregator.next(SECOND * second), AggregatorAction::WaitUntil(SECOND * 62));
    }
    let patch = aggregator.next(SECOND * 62);
    let AggregatorAction::Patch { series, .. } = &patch else { panic!("{patch:?}") };
    assert_eq!(series.count, 61);
    assert_eq!(series.last_observed_time.0, Timestamp::from_second(61).unwrap());
}

#[test]
fn occurrences_during_a_write_are_part_of_the_next_one() {
    let mut aggregator = Aggregator::new(EventOptions::default());
    aggregator.record(SECOND, &occurrence("web", "Synced", 1));
    let AggregatorAction::Create(id, _) = aggregator.next(SECOND) else { panic!("not created") };
    aggregator.record(SECOND, &occurrence("web", "Synced", 2));
    assert_eq!(
        aggregator.next(SECOND),
        AggregatorAction::WaitUntil(Duration::MAX),
        "one write in flight per series"
    );
    aggregator.outcome(SECOND, id, WriteOutcome::Done);
    assert_eq!(count(&aggregator.next(SECOND)), 2);
}

#[test]
fn a_series_ends_without_occurrences_and_the_next_occurrence_is_a_new_event() {
    let (mut aggregator, _) = written();
    let end = SECOND * 361;
    assert_eq!(aggregator.next(SECOND * 360), AggregatorAction::WaitUntil(end));
    assert_eq!(aggregator.next(end), AggregatorAction::WaitUntil(Duration::MAX));
    assert!(aggregator.series.is_empty() && aggregator.by_key.is_empty() && aggregator.due.is_empty());
    aggregator.record(end, &occurrence("web", "Synced", 361));
    assert!(matches!(aggregator.next(end), AggregatorAction::Create(..)));
}

#[test]
fn a_failed_write_is_retried_up_to_the_limit() {
    let mut aggregator = Aggregator::new(EventOptions::default());
    let mut now = SECOND;
    aggregator.record(now, &occurrence("web", "Synced", 1));
    for attempt in 1..=12 {
        let AggregatorAction::Create(id, _) = aggregator.next(now) else { panic!("attempt {attempt}") };
        // A further occurrence does not change the time of the retry.
        aggregator.record(now, &occurrence("web", "Synced", 1));
        let fate = aggregator.outcome(now, id, WriteOutcome::Failed);
        assert_eq!(fate, (attempt == 12).then_some(EventFate::Failed));
        if attempt < 12 {
            assert_eq!(aggregator.next(now), AggregatorAction::WaitUntil(now + SECOND * 10));
        }
        now += SECOND * 10;
    }
    assert!(aggregator.series.is_empty() && aggregator.due.is_empty());
}

#[test]
fn a_lost_response_does_not_create_a_second_event() {
    let mut aggregator = Aggregator::new(EventOptions::default());
    aggregator.record(SECOND, &occurrence("web", "Synced", 1));
    let AggregatorAction::Create(id, first) = aggregator.next(SECOND) else { panic!("not created") };
    aggregator.outcome(SECOND, id, WriteOutcome::Failed);
    let AggregatorAction::Create(_, again) = aggregator.next(SECOND * 11) else { panic!("not retried") };
    assert_eq!(first.metadata.name, again.metadata.name);
    assert_eq!(aggregator.outcome(SECOND * 11, id, WriteOutcome::Exists), Some(EventFate::Created));
    assert!(aggregator.is_idle());
}

#[test]
fn a_name_in_use_and_an_expired_object_lead_to_another_name() {
    let mut aggregator = Aggregator::new(EventOptions::default());
    aggregator.record(SECOND, &occurrence("web", "Synced", 1));
    let AggregatorAction::Create(id, first) = aggregator.next(SECOND) else { panic!("not created") };
    assert_eq!(aggregator.outcome(SECOND, id, WriteOutcome::Exists), None);
    let AggregatorAction::Create(_, second) = aggregator.next(SECOND) else { panic!("not created again") };
    assert_ne!(first.metadata.name, second.metadata.name);
    aggregator.outcome(SECOND, id, WriteOutcome::Done);
    aggregator.record(SECOND * 2, &occurrence("web", "Synced", 2));
    assert!(matches!(aggregator.next(SECOND * 2), AggregatorAction::Patch { .. }));
    assert_eq!(aggregator.outcome(SECOND * 2, id, WriteOutcome::Gone), None);
    let again = aggregator.next(SECOND * 2);
    let AggregatorAction::Create(_, third) = &again else { panic!("not created again") };
    assert_ne!(third.metadata.name, second.metadata.name);
    assert_eq!(count(&again), 2, "with the count of the series");
}

#[test]
fn a_rejected_event_is_not_retried() {
    let mut aggregator = Aggregator::new(EventOptions::default());
    aggregator.record(SECOND, &occurrence("web", "Synced", 1));
    let AggregatorAction::Create(id, _) = aggregator.next(SECOND) else { panic!("not created") };
    assert_eq!(aggregator.outcome(SECOND, id, WriteOutcome::Rejected), Some(EventFate::Failed));
    assert_eq!(aggregator.next(SECOND * 100), AggregatorAction::WaitUntil(Duration::MAX));
}

#[test]
fn events_about_one_object_are_limited_to_a_burst_and_a_rate() {
    let mut aggregator = Aggregator::new(EventOptions::default());
    let start = |aggregator: &mut Aggregator, now: Duration, number: usize| {
        aggregator.record(now, &occurrence("web", &format!("Reason{number}"), 1)).is_none()
    };
    let started = (0..40).filter(|number| start(&mut aggregator, SECOND, *number)).count();
    assert_eq!(started, 25);
    assert!(
        aggregator.record(SECOND, &occurrence("other", "Reason", 1)).is_none(),
        "other objects have their own limit"
    );
    let later = SECOND * 301;
    assert!(start(&mut aggregator, later, 100) && !start(&mut aggregator, later, 101));
    let much_later = SECOND * 300 * 100;
    let started = (200..240).filter(|number| start(&mut aggregator, much_later, *number)).count();
    assert_eq!(started, 25, "the bucket is refilled up to the burst");
}

#[test]
fn memory_is_bounded_and_idle_series_are_evicted_first() {
    let options = EventOptions { series: 3, ..EventOptions::default() };
    let mut aggregator = Aggregator::new(options);
    let write = |aggregator: &mut Aggregator, now: Duration| match aggregator.next(now) {
        AggregatorAction::Create(id, _) => aggregator.outcome(now, id, WriteOutcome::Done),
        action => panic!("{action:?}"),
    };
    for (second, object) in ["a", "b"].into_iter().enumerate() {
        let now = SECOND * u32::try_from(second).unwrap();
        aggregator.record(now, &occurrence(object, "R", 1));
        write(&mut aggregator, now);
    }
    let now = SECOND * 5;
    assert_eq!(aggregator.record(now, &occurrence("c", "R", 1)), None);
    assert_eq!(
        aggregator.record(now, &occurrence("d", "R", 1)),
        None,
        "evicts a, which was idle for longest"
    );
    let keys: Vec<&str> = aggregator.series.values().map(|series| series.object.as_str()).collect();
    assert_eq!(keys, ["b", "c", "d"]);
    assert_eq!(aggregator.record(now, &occurrence("e", "R", 1)), None, "evicts b");
    assert_eq!(
        aggregator.record(now, &occurrence("f", "R", 1)),
        Some(EventFate::RateLimited),
        "unwritten series are not evicted"
    );
    assert!(aggregator.buckets.len() <= 3);
}

#[test]
fn draining_writes_all_unwritten_occurrences_once() {
    let (mut aggregator, id) = written();
    for second in 2..10 {
        aggregator.record(SECOND * 2, &occurrence("web", "Synced", second));
    }
    let _ = aggregator.next(SECOND * 2);
    aggregator.outcome(SECOND * 2, id, WriteOutcome::Done);
    aggregator.record(SECOND * 3, &occurrence("web", "Synced", 10));
    aggregator.record(SECOND * 3, &occurrence("web", "New", 10));
    assert!(matches!(aggregator.next(SECOND * 3), AggregatorAction::Create(..)));
    assert!(
        matches!(aggregator.next(SECOND * 3), AggregatorAction::WaitUntil(_)),
        "a series that continues waits for its interval"
    );
    aggregator.drain(SECOND * 3);
    assert_eq!(count(&aggregator.next(SECOND * 3)), 10);
    assert!(!aggregator.is_idle());
    aggregator.outcome(SECOND * 3, id, WriteOutcome::Failed);
    aggregator.outcome(SECOND * 3, id + 1, WriteOutcome::Done);
    assert!(aggregator.is_idle(), "no retries while draining");
}

#[derive(Debug, Clone)]
enum Step {
    Record(u8, u8),
    Pass(u16),
    Respond(WriteOutcome),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        3 => Just(WriteOutcome::Done),
        1 => Just(WriteOutcome::Failed),
        1 => Just(WriteOutcome::Gone),
        1 => Just(WriteOutcome::Rejected),
    ];
    prop_oneof![
        3 => (0_u8..3, 0_u8..3).prop_map(|(object, reason)| Step::Record(object, reason)),
        1 => (0_u16..400).prop_map(Step::Pass),
        3 => outcome.prop_map(Step::Respond),
    ]
}

/// A model of the server: the stored counts.
#[derive(Default)]
struct Server {
    counts: BTreeMap<(SeriesId, String), u32>,
    /// The counts of objects that were deleted.
    gone: u32,
    /// The occurrences that were reported as failed.
    failed: u32,
}

impl Server {
    /// Executes the action with the given outcome. Every second failure is a lost response: the write was executed.
    fn respond(
        &mut self,
        aggregator: &mut Aggregator,
        now: Duration,
        action: &AggregatorAction,
        outcome: WriteOutcome,
    ) {
        let (id, name) = match action {
            AggregatorAction::Create(id, event) => (*id, event.metadata.name.clone().unwrap()),
            AggregatorAction::Patch { id, name, .. } => (*id, name.clone()),
            AggregatorAction::WaitUntil(at) => panic!("a wait until {at:?}"),
        };
        let (key, count) = ((id, name), u32::try_from(count(action)).unwrap());
        let outcome = match (action, outcome) {
            (AggregatorAction::Create(..), _) if self.counts.contains_key(&key) => WriteOutcome::Exists,
            (AggregatorAction::Create(..), WriteOutcome::Gone) => WriteOutcome::Failed,
            (_, outcome) => outcome,
        };
        let is_lost_response = outcome == WriteOutcome::Failed && count.is_multiple_of(2);
        if outcome == WriteOutcome::Done || is_lost_response {
            self.counts.insert(key.clone(), count);
        }
        if outcome == WriteOutcome::Gone {
            self.gone += self.counts.remove(&key).unwrap_or(0);
        }
        let in_series = aggregator.series.get(&id).map_or(0, |series| series.count);
        if aggregator.outcome(now, id, outcome) == Some(EventFate::Failed) {
            let known = self.counts.get(&key).copied().unwrap_or(0);
            self.failed += in_series.saturating_sub(known);
        }
    }
}

proptest! {
    #[test]
    fn every_occurrence_is_stored_or_reported_as_failed(steps in prop::collection::vec(step(), 0..120)) {
        let mut aggregator = Aggregator::new(EventOptions { burst: 1000, ..EventOptions::default() });
        let (mut server, mut now, mut occurred) = (Server::default(), SECOND, 0_u32);
        let mut in_flight: Vec<AggregatorAction> = Vec::new();
        for step in steps {
            match step {
                Step::Record(object, reason) => {
                    occurred += 1;
                    let occurrence = occurrence(&format!("o{object}"), &format!("r{reason}"), now.as_secs());
                    prop_assert_ne!(aggregator.record(now, &occurrence), Some(EventFate::RateLimited));
                }
                Step::Pass(seconds) => now += SECOND * u32::from(seconds),
                Step::Respond(outcome) => {
                    if let Some(action) = in_flight.pop() {
                        server.respond(&mut aggregator, now, &action, outcome);
                    }
                }
            }
            while in_flight.len() < 4 {
                match aggregator.next(now) {
                    AggregatorAction::WaitUntil(at) => {
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
                AggregatorAction::WaitUntil(_) => {}
                action => in_flight.push(action),
            }
            let Some(action) = in_flight.pop() else { break };
            server.respond(&mut aggregator, now, &action, WriteOutcome::Done);
        }
        prop_assert!(aggregator.is_idle());
        let known: u32 = server.counts.values().sum();
        // A deleted object is created again with the whole count, so occurrences may be counted twice but never lost.
        prop_assert!(known + server.failed + server.gone >= occurred);
        if server.gone == 0 && server.failed == 0 {
            prop_assert_eq!(known, occurred);
        }
    }
}
