//! A server whose storage is restored from a backup, and which passes the versions it had before until the informer is
//! back.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::{runtime, time::sleep};
use watchkeeper_informer::{
    SharedIndexInformer, controller::Config, event::Event, handler::HandlerOptions,
    reflector::ReflectorOptions,
};

use super::{
    server::{Hurt, Shared, What, World},
    story::SOON,
};

/// Something that happens on the server.
#[derive(Debug, Clone)]
enum Step {
    Write(u8, What),
    /// Writes to other collections, which advance the bookmarks.
    WriteElsewhere(u64),
    Bookmark,
}

fn steps(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![3 => Just(What::Put), 2 => Just(What::Delete)];
    let step = prop_oneof![
        6 => (0..8_u8, what).prop_map(|(key, what)| Step::Write(key, what)),
        1 => (1..20_u64).prop_map(Step::WriteElsewhere),
        1 => Just(Step::Bookmark),
    ];
    prop::collection::vec(step, len)
}

/// A backup that is restored.
#[derive(Debug, Clone)]
struct Restore {
    /// How old it is, in writes to the collection, and in writes to others before those.
    writes_ago: usize,
    elsewhere: u64,
    /// The steps on the restored server before the informer reconnects.
    unseen: Vec<Step>,
    /// Whether the server is then past the version the informer has reached.
    is_past: bool,
}

fn restores() -> impl Strategy<Value = Restore> {
    (0..6_usize, 0..10_u64, steps(0..12), prop::bool::weighted(0.8)).prop_map(
        |(writes_ago, elsewhere, unseen, is_past)| Restore { writes_ago, elsewhere, unseen, is_past },
    )
}

fn perform(world: &Shared, step: &Step) {
    let mut world = world.0.lock();
    match step {
        Step::Write(key, what) => world.write(*key, *what, 1),
        Step::WriteElsewhere(writes) => world.write_elsewhere(*writes),
        Step::Bookmark => world.hurt(Hurt::Bookmark),
    }
}

type View = BTreeMap<String, ConfigMap>;

fn key(object: &ConfigMap) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

async fn run(
    before: Vec<Step>,
    restores: Vec<Restore>,
    options: ReflectorOptions,
) -> Result<(), TestCaseError> {
    let world = Shared(Arc::new(Mutex::new(World::without_sink())));
    let config = Config::new("restored", world.encoded()).reflector(options);
    let informer = SharedIndexInformer::new(config);
    let view: Arc<Mutex<View>> = Arc::default();
    let delivered = Arc::clone(&view);
    let handler = move |event: Event<ConfigMap>| {
        let object = event.object().get().expect("decodes");
        let mut view = delivered.lock();
        match event {
            Event::Deleted(_) => view.remove(&key(&object)),
            _ => view.insert(key(&object), ConfigMap::clone(&object)),
        };
        async {}
    };
    informer
        .add_async_handler(handler, HandlerOptions::new("view"))
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    informer.start();
    for step in &before {
        perform(&world, step);
        sleep(Duration::from_millis(1)).await;
    }
    for Restore { writes_ago, elsewhere, unseen, is_past } in restores {
        // What nothing was seen of since its list cannot be verified in full.
        perform(&world, &Step::Write(9, What::Put));
        sleep(Duration::from_secs(2)).await;
        let (reached, deletion) = {
            let world = world.0.lock();
            (world.version(), world.last_deletion())
        };
        world.0.lock().restore(writes_ago, elsewhere);
        let is_lost = deletion.filter(|deletion| !world.0.lock().has_deletion(deletion));
        for step in &unseen {
            perform(&world, step);
        }
        // A history that repeats the last change at the same version cannot be distinguished from the lost one.
        prop_assume!(!is_lost.is_some_and(|deletion| world.0.lock().has_deletion(&deletion)));
        if is_past {
            let behind = reached.saturating_sub(world.0.lock().version());
            world.0.lock().write_elsewhere(behind + 5);
        }
        sleep(SOON).await;
        let held: View =
            informer.snapshot().iter().map(|object| (key(&object), ConfigMap::clone(&object))).collect();
        let truth = world.0.lock().objects();
        prop_assert_eq!(&held, &truth, "{:?}", informer.stats());
        prop_assert_eq!(&*view.lock(), &truth, "the view of the handler");
        prop_assert!(informer.status().is_synced(), "{:?}", informer.status());
    }
    informer.shutdown().await;
    Ok(())
}

proptest! {
    #[test]
    fn a_restored_server_past_our_version_is_detected_and_the_cache_is_corrected(
        before in steps(5..40),
        restores in prop::collection::vec(restores(), 1..3),
        is_streaming in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut options = ReflectorOptions::default();
        options.seed = Some(seed);
        options.streaming.is_enabled = is_streaming;
        options.history_check.every = None;
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().map_err(|error| {
            TestCaseError::fail(error.to_string())
        })?;
        runtime.block_on(run(before, restores, options))?;
    }
}
