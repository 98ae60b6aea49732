//! What cannot be arranged through a driver whose timers are exact.

use watchkeeper_client::{
    error::{ApiReason, TransportKind},
    list_watch::Bookmark,
};

use super::*;
use crate::{Cached, reflector::intake::Incoming};

const SECOND: Duration = Duration::from_secs(1);

fn machine() -> Machine<()> {
    let mut options = ReflectorOptions::default();
    options.history_check.on_reconnect = false;
    Machine::new(options, Rng::with_seed(7))
}

/// A machine whose streaming list was accepted at time zero.
fn streaming() -> Machine<()> {
    let mut machine = machine();
    assert!(matches!(machine.step(Duration::ZERO, Input::Started).action, DriverAction::Watch(_)));
    machine.step(Duration::ZERO, Input::Opened);
    machine
}

fn added(key: &str, version: &str) -> Input<()> {
    let identity = Identity::new("", key, "uid", version);
    Input::Event(EventKind::Added, Incoming { identity, object: Ok(Cached::from(())), content: None })
}

fn failed(reason: Reason) -> Input<()> {
    Input::Failed(FailureReport::new(Failure::new(reason), "no"))
}

fn list_causes(output: &StepOutput<()>) -> Vec<(bool, Option<&'static str>)> {
    let cause = |event: &ReflectorEvent| match event {
        ReflectorEvent::ListStarted { is_streaming, cause } => Some((*is_streaming, *cause)),
        _ => None,
    };
    output.events.iter().filter_map(cause).collect()
}

#[test]
fn an_overdue_streaming_list_ends_however_late_its_timer_fires() {
    for late in [Duration::ZERO, Duration::from_millis(1), SECOND * 100] {
        let output = streaming().step(SECOND * 10 + late, Input::Timer);
        assert!(matches!(output.action, DriverAction::List(_)), "{late:?}: {:?}", output.action);
    }
    let early = streaming().step(SECOND * 9, Input::Timer);
    assert_eq!(early.action, DriverAction::Read { deadline: Some(SECOND * 10) });
}

#[test]
fn a_streaming_list_that_ends_empty_is_retried_after_a_delay_and_others_immediately() {
    let ended = |machine: &mut Machine<()>, at| machine.step(at, Input::Ended).action;
    assert!(matches!(ended(&mut streaming(), Duration::ZERO), DriverAction::Wait { .. }));
    assert!(matches!(ended(&mut streaming(), SECOND), DriverAction::Watch(_)), "it lasted");
    let mut machine = streaming();
    machine.step(Duration::ZERO, added("a", "5"));
    assert!(matches!(ended(&mut machine, Duration::ZERO), DriverAction::Watch(_)), "it brought something");
}

#[test]
fn a_streaming_list_is_counted_under_its_cause_and_the_first_has_none() {
    let mut machine = machine();
    assert_eq!(list_causes(&machine.step(Duration::ZERO, Input::Started)), [(true, None)]);
    machine.step(Duration::ZERO, Input::Opened);
    machine.step(Duration::ZERO, Input::Bookmark(Bookmark::new("10".to_owned(), true)));
    let expired = machine.step(SECOND * 2, failed(Reason::Api(ApiReason::Expired)));
    assert_eq!(list_causes(&expired), [(true, Some("expired"))]);
}

#[test]
fn a_timer_that_fires_early_does_not_end_a_wait() {
    let mut machine = machine();
    machine.step(Duration::ZERO, Input::Started);
    let refused = machine.step(Duration::ZERO, failed(Reason::Transport(TransportKind::Refused)));
    let DriverAction::Wait { until } = refused.action else { panic!("{refused:?}") };
    let early = machine.step(until.saturating_sub(Duration::from_millis(1)), Input::Timer);
    assert_eq!(early.action, DriverAction::Wait { until });
    assert!(matches!(machine.step(until, Input::Timer).action, DriverAction::Watch(_)));
}
