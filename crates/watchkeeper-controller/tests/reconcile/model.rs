//! The guarantees of the whole loop, checked on random histories.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use parking_lot::Mutex;
use proptest::prelude::*;
use watchkeeper_client::list_watch::{ScriptedSource, WatchHandle, WatchScript};
use watchkeeper_controller::{Action, Context, Controller, ReconcileError, Request, Triggers};
use watchkeeper_informer::{ObjectKey, factory::FactoryBuilder};
use watchkeeper_workqueue::{Clock as _, TokioClock};

use crate::support::*;

const RETRIES: u32 = 3;

/// An external event.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u8),
    Delete(u8),
    Trigger(u8),
    Pause(u16),
}

/// The course of a reconcile by its number: its duration and its outcome.
#[derive(Debug, Clone, Copy)]
struct Course {
    takes: u16,
    ends: Ends,
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    Well,
    WithAnError,
    WithAPanic,
    WithAConflict,
    ByAskingForMore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0..4_u8;
    let step = prop_oneof![
        5 => key().prop_map(Step::Write),
        1 => key().prop_map(Step::Delete),
        2 => key().prop_map(Step::Trigger),
        4 => (0..300_u16).prop_map(Step::Pause),
    ];
    prop::collection::vec(step, 1..60)
}

fn courses() -> impl Strategy<Value = Vec<Course>> {
    let ends = prop_oneof![
        6 => Just(Ends::Well),
        2 => Just(Ends::WithAnError),
        1 => Just(Ends::WithAPanic),
        1 => Just(Ends::WithAConflict),
        1 => Just(Ends::ByAskingForMore),
    ];
    let takes = prop_oneof![2 => Just(0_u16), 1 => 1..200_u16];
    prop::collection::vec((takes, ends).prop_map(|(takes, ends)| Course { takes, ends }), 1..40)
}

/// A reconcile, from start to end.
#[derive(Debug, Clone)]
struct Ran {
    key: u8,
    start: Duration,
    ended: Option<Duration>,
    version: Option<u64>,
    failures: u32,
}

#[derive(Default)]
struct World {
    ran: Vec<Ran>,
    given_up: Vec<(u8, u32)>,
}

fn number(key: &ObjectKey) -> u8 {
    key.name().trim_start_matches('k').parse().unwrap()
}

fn object(key: u8, version: u64, uid: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(format!("k{key}")),
        namespace: Some("default".into()),
        resource_version: Some(version.to_string()),
        uid: Some(uid.to_string()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// The objects on the server, and the time at which each key last had to be enqueued.
#[derive(Default)]
struct Outside {
    version: u64,
    there: BTreeMap<u8, (u64, u64)>,
    last_change: BTreeMap<u8, (Duration, Option<u64>)>,
    last_trigger: BTreeMap<u8, Duration>,
}

impl Outside {
    fn step(&mut self, step: Step, now: Duration, watch: &WatchHandle<ConfigMap>, triggers: &Triggers) {
        self.version += 1;
        let version = self.version;
        match step {
            Step::Write(key) => {
                let known = self.there.get(&key).copied();
                let uid = known.map_or(version, |(_, uid)| uid);
                let object = object(key, version, uid);
                let event = WatchScript::new();
                watch.send(if known.is_some() { event.modified(object) } else { event.added(object) });
                self.there.insert(key, (version, uid));
                self.last_change.insert(key, (now, Some(version)));
            }
            Step::Delete(key) => {
                if let Some((_, uid)) = self.there.remove(&key) {
                    watch.send(WatchScript::new().deleted(object(key, version, uid)));
                    self.last_change.insert(key, (now, None));
                }
            }
            Step::Trigger(key) => {
                triggers.send(crate::support::key(&format!("default/k{key}")), because("test"));
                self.last_trigger.insert(key, now);
            }
            Step::Pause(_) => {}
        }
    }
}

async fn play(workers: usize, steps: Vec<Step>, courses: Vec<Course>) -> Result<(), TestCaseError> {
    let source = ScriptedSource::<ConfigMap>::new();
    let watch = source.open_watch(WatchScript::new().initial_events_end("1"));
    let factory = FactoryBuilder::without_client().source::<ConfigMap>(source).build();
    let triggers = Triggers::new();
    let world = Arc::new(Mutex::new(World::default()));
    let clock = TokioClock::new();
    let (recorder, time) = (Arc::clone(&world), clock);
    let reconcile = move |request: Request<ConfigMap>, _: Context| {
        let (recorder, time) = (Arc::clone(&recorder), time);
        let object = request.object.as_ref();
        let version = object.and_then(|object| object.metadata.resource_version.as_ref()?.parse().ok());
        let ran = Ran {
            key: number(&request.key),
            start: time.now(),
            ended: None,
            version,
            failures: request.failures,
        };
        let index = {
            let ran_so_far = &mut recorder.lock().ran;
            ran_so_far.push(ran);
            ran_so_far.len() - 1
        };
        // Later reconciles all succeed, so that the run ends.
        let course = courses.get(index).copied().unwrap_or(Course { takes: 0, ends: Ends::Well });
        async move {
            tokio::time::sleep(ms(course.takes.into())).await;
            recorder.lock().ran[index].ended = Some(time.now());
            match course.ends {
                Ends::Well => Ok(Action::done()),
                Ends::WithAnError => Err(ReconcileError::new("as scripted")),
                // Panics without invoking the panic hook.
                Ends::WithAPanic => std::panic::resume_unwind(Box::new("as scripted")),
                Ends::WithAConflict => Err(ReconcileError::conflict("as scripted")),
                Ends::ByAskingForMore => Ok(Action::requeue_after(ms(50))),
            }
        }
    };
    let abandoned = Arc::clone(&world);
    let controller = Controller::<ConfigMap>::on(&factory)
        .channel(&triggers)
        .workers(workers)
        .retry_limit(RETRIES)
        .on_abandon(move |it| abandoned.lock().given_up.push((number(it.key), it.attempts)));
    let running = started(controller.reconcile_with(reconcile)).await;

    let mut outside = Outside { version: 1, ..Outside::default() };
    for step in steps {
        if let Step::Pause(pause) = step {
            tokio::time::sleep(ms(pause.into())).await;
        }
        outside.step(step, clock.now(), &watch, &triggers);
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    running.stop().await;
    let world = world.lock();
    check(&world, &outside, workers)
}

fn check(world: &World, outside: &Outside, workers: usize) -> Result<(), TestCaseError> {
    // Every key is reconciled after the last event that concerns it, and observes that event.
    for (key, (at, version)) in &outside.last_change {
        let reconciles = world.ran.iter().filter(|ran| ran.key == *key && ran.start >= *at);
        prop_assert!(
            reconciles.clone().any(|ran| ran.version == *version),
            "{key} after {at:?}: {:?}",
            world.ran
        );
    }
    for (key, at) in &outside.last_trigger {
        prop_assert!(world.ran.iter().any(|ran| ran.key == *key && ran.start >= *at), "{key} after {at:?}");
    }
    let mut last: BTreeMap<u8, &Ran> = BTreeMap::new();
    for (index, ran) in world.ran.iter().enumerate() {
        prop_assert!(ran.ended.is_some(), "a reconcile did not end");
        // A key is processed by one worker at a time, and the states it observes never go back.
        if let Some(earlier) = last.insert(ran.key, ran) {
            prop_assert!(earlier.ended.is_some_and(|ended| ended <= ran.start), "{earlier:?} and {ran:?}");
            prop_assert!(ran.version.is_none() || ran.version >= earlier.version, "{earlier:?} and {ran:?}");
        }
        let at_once = world.ran[..=index]
            .iter()
            .filter(|other| other.ended.is_none_or(|ended| ended > ran.start))
            .count();
        prop_assert!(at_once <= workers.max(1), "{at_once} at once");
        prop_assert!(ran.failures <= RETRIES, "{ran:?}");
    }
    for (_, tries) in &world.given_up {
        prop_assert_eq!(*tries, RETRIES + 1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_followed_by_a_reconcile_of_its_key_on_one_worker_with_bounded_failures(
        workers in 1..4_usize, steps in steps(), courses in courses(),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(workers, steps, courses))?;
    }
}
