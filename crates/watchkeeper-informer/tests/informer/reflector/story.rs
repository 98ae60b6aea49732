//! Random histories of a server that also misbehaves.
//!
//! Every change is checked when the sink receives it: it must be the next event of the server's history, or
//! the complete state as of a version that is not older. Every request is checked when it is made: it must
//! continue from the last change received. When the faults end, the sink must soon contain the state of the
//! server, and the reflector must send no further requests.

use std::{future::pending, sync::Arc, time::Duration};

use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::{runtime, task::JoinSet, time::sleep};
use watchkeeper_informer::reflector::{Reflector, ReflectorOptions};

use super::server::{Hurt, Plan, Shared, What, World};

/// A delay is at most a minute, and the slowest recovery takes two of them.
pub(crate) const SOON: Duration = Duration::from_secs(2 * 60 + 5);

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write { key: u8, what: What, gap: u64 },
    Pass { millis: u64 },
    Compact,
    Hurt(Hurt),
    Plan(Plan),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![6 => Just(What::Put), 1 => Just(What::PutBroken), 3 => Just(What::Delete)];
    let hurt = prop::sample::select(vec![
        Hurt::Close,
        Hurt::Cut,
        Hurt::Expire,
        Hurt::Busy,
        Hurt::Internal,
        Hurt::Bookmark,
        Hurt::Duplicate,
        Hurt::StepBack,
        Hurt::Stall,
    ]);
    let n = || 0..6_usize;
    let plan = prop_oneof![
        7 => prop::sample::select(vec![
            Plan::Expired,
            Plan::TooLarge,
            Plan::Busy,
            Plan::Unavailable,
            Plan::Internal,
            Plan::Refused,
            Plan::Reset,
        ]),
        1 => Just(Plan::Invalid),
        1 => Just(Plan::NeverEnds),
        2 => n().prop_map(Plan::BreaksAfter),
        2 => n().prop_map(Plan::EndsAfter),
        2 => n().prop_map(Plan::Behind),
        2 => n().prop_map(Plan::BehindAnyway),
    ];
    let millis = prop_oneof![0..50_u64, 500..3000_u64, 10_000..70_000_u64];
    let step = prop_oneof![
        10 => (0..8_u8, what, 1..4_u64).prop_map(|(key, what, gap)| Step::Write { key, what, gap }),
        4 => millis.prop_map(|millis| Step::Pass { millis }),
        1 => Just(Step::Compact),
        4 => hurt.prop_map(Step::Hurt),
        4 => plan.prop_map(Step::Plan),
    ];
    prop::collection::vec(step, 1..80)
}

async fn run_steps(steps: Vec<Step>, options: ReflectorOptions) -> Result<(), TestCaseError> {
    let world = Shared(Arc::new(Mutex::new(World::new())));
    let reflector = Reflector::new("story", Arc::new(world.encoded())).options(options);
    let monitor = reflector.monitor();
    let mut running = JoinSet::new();
    running.spawn(reflector.run(world.clone(), pending()));
    for step in steps {
        match step {
            Step::Write { key, what, gap } => world.0.lock().write(key, what, gap),
            Step::Compact => world.0.lock().compact(),
            Step::Hurt(hurt) => world.0.lock().hurt(hurt),
            Step::Plan(plan) => world.0.lock().plan(plan),
            Step::Pass { millis } => sleep(Duration::from_millis(millis)).await,
        }
    }
    world.0.lock().behave();
    sleep(SOON).await;
    let set_aside: Vec<_> = monitor.quarantined().iter().map(|object| object.key.to_string()).collect();
    let (wrong, differences, requests) = {
        let world = world.0.lock();
        (world.wrong.clone(), world.differences(&set_aside), world.requests)
    };
    prop_assert!(wrong.is_empty(), "{wrong:#?}");
    prop_assert!(
        differences.is_empty(),
        "{differences:#?}\n{:?}\n{:?}",
        monitor.status(),
        monitor.counters()
    );
    prop_assert!(monitor.status().is_synced(), "{:?}", monitor.status());
    sleep(Duration::from_mins(4)).await;
    let more = world.0.lock().requests - requests;
    prop_assert!(more <= 5, "a watch may be verified and renewed in that time; there were {more} requests");
    Ok(())
}

/// Returns the options of a reflector in a random test.
pub(crate) fn random_options(seed: u64, is_streaming: bool, has_pages: bool) -> ReflectorOptions {
    let mut options = ReflectorOptions::default();
    options.seed = Some(seed);
    options.streaming.is_enabled = is_streaming;
    options.page_size = has_pages.then_some(3);
    options.history_check.every = None;
    options
}

/// Runs a test on paused time.
pub(crate) fn run_paused(test: impl Future<Output = Result<(), TestCaseError>>) -> Result<(), TestCaseError> {
    let mut runtime = runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.map_err(|error| TestCaseError::fail(error.to_string()))?.block_on(test)
}

proptest! {
    #[test]
    fn with_any_faults_the_changes_are_correct_and_complete(
        steps in steps(),
        is_streaming in any::<bool>(),
        has_pages in any::<bool>(),
        seed in any::<u64>(),
    ) {
        run_paused(run_steps(steps, random_options(seed, is_streaming, has_pages)))?;
    }
}
