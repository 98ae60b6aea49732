//! The aggregator, step by step, and against a server that fails in every way.

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
    assert_eq!(aggregator.next(SECOND), Action::WaitUntil(Duration::MAX), "one write of a series at a time");
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
