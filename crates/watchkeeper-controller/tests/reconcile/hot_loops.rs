//! Keys that trigger themselves are detected, and no others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde_json::json;
use watchkeeper_controller::{
    Action, Context, Controller, HotLoop, HotLoopLimits, ReconcileError, Request,
    predicate::generation_changed,
};

use crate::support::*;

type Configure = fn(Controller<ConfigMap>) -> Controller<ConfigMap>;
type Found = Arc<Mutex<Vec<HotLoop>>>;

/// Runs a controller of config maps that reports hot loops.
fn telling(client: watchkeeper_client::kube_client::Client) -> (Controller<ConfigMap>, Found) {
    let found = Found::default();
    let tell = Arc::clone(&found);
    let controller = Controller::<ConfigMap>::new(client)
        .named("maps")
        .on_hot_loop(move |hot_loop| tell.lock().push(hot_loop.clone()));
    (controller, found)
}

fn taken(found: &Found) -> Vec<HotLoop> {
    std::mem::take(&mut found.lock())
}

#[tokio::test(start_paused = true)]
async fn a_key_that_its_own_writes_enqueue_is_reported_once_with_evidence() {
    let server = server();
    let client = server.client();
    let clock = Arc::new(AtomicU64::new(0));
    let is_on = Arc::new(Mutex::new(true));
    let switch = Arc::clone(&is_on);
    let (controller, found) = telling(client.clone());
    // A heartbeat in the object itself: each write is a change, and each change causes a write.
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        let now = clock.fetch_add(1, Ordering::Relaxed);
        let beats = request.name() == "hot" && *switch.lock();
        async move {
            if beats {
                tokio::time::sleep(ms(500)).await;
                patch(&maps(&ctx.client()), "hot", json!({"data": {"at": now.to_string()}})).await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let running = started(controller.reconcile_with(reconcile)).await;
    create(&maps(&client), &map("hot")).await;
    create(&maps(&client), &map("cold")).await;
    tokio::time::sleep(Duration::from_mins(3)).await;
    let reports = taken(&found);
    assert_eq!(reports.len(), 1, "{reports:?}");
    let HotLoop { controller, key, reconciles, from_own_events, within, writes, .. } = &reports[0];
    assert_eq!((&**controller, key.as_str(), *reconciles, *from_own_events), ("maps", "default/hot", 10, 10));
    assert_eq!(within.as_millis(), 4_500);
    let writes: BTreeMap<_, _> = writes.iter().map(|(name, w)| (&**name, (w.total, w.no_ops))).collect();
    assert_eq!(writes, BTreeMap::from([("configmaps", (10, 0))]));
    assert_eq!(
        reports[0].to_string(),
        "maps reconciled default/hot 10 times in 4.5s without an external cause, 10 of them because of its own writes; 10 \
         writes of configmaps, of which 0 changed nothing"
    );

    *is_on.lock() = false;
    tokio::time::sleep(Duration::from_mins(2)).await;
    *is_on.lock() = true;
    patch(&maps(&client), "hot", json!({"data": {"edited": "yes"}})).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(taken(&found).len(), 1, "reported again after a quiet window");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_repeats_writes_without_effect_is_reported() {
    let server = server();
    let client = server.client();
    create(&maps(&client), &map("same")).await;
    let (controller, found) = telling(client);
    let reconcile = |request: Request<ConfigMap>, ctx: Context| async move {
        if request.name() == "same" {
            patch(&maps(&ctx.client()), "same", json!({"data": {"k": "v"}})).await;
        }
        Ok::<_, ReconcileError>(Action::requeue_after(Duration::from_secs(2)))
    };
    let running = started(controller.reconcile_with(reconcile)).await;
    tokio::time::sleep(Duration::from_mins(3)).await;
    running.stop().await;
    let reports = taken(&found);
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(
        (reports[0].key.as_str(), reports[0].reconciles, reports[0].from_own_events),
        ("default/same", 10, 0)
    );
    let writes = reports[0].writes["configmaps"];
    assert_eq!((writes.total, writes.no_ops), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_writes_converge_is_not_reported() {
    let server = server();
    let client = server.client();
    create(&maps(&client), &map("a")).await;
    let (controller, found) = telling(client.clone());
    let log = Log::new();
    let recorder = log.clone();
    // Copies one field to another: the event of its write requires no further write.
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        recorder.note(&request);
        async move {
            let data = request.object.as_ref().and_then(|object| object.data.clone()).unwrap_or_default();
            if let Some(wanted) = data.get("wanted")
                && data.get("is") != Some(wanted)
            {
                patch(&maps(&ctx.client()), request.name(), json!({"data": {"is": wanted}})).await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let running = started(controller.reconcile_with(reconcile)).await;
    for edit in 0..100 {
        patch(&maps(&client), "a", json!({"data": {"wanted": edit.to_string()}})).await;
        tokio::time::sleep(ms(300)).await;
    }
    running.stop().await;
    assert!(log.all().len() > 150, "each edit and each write was reconciled");
    assert_eq!(taken(&found), []);
}

#[tokio::test(start_paused = true)]
async fn hot_loop_limits_are_configurable_and_detection_can_be_disabled() {
    let server = server();
    let client = server.client();
    let beat = |request: Request<ConfigMap>, ctx: Context| async move {
        if let Some(object) = &request.object
            && request.name() == "hot"
        {
            let at = object.metadata.resource_version.clone();
            tokio::time::sleep(ms(500)).await;
            patch(&maps(&ctx.client()), "hot", json!({"data": {"at": at}})).await;
        }
        Ok::<_, ReconcileError>(Action::done())
    };
    create(&maps(&client), &map("hot")).await;
    let cases: [(Configure, Option<u32>); 4] = [
        (|controller| controller.hot_loops(HotLoopLimits::new(3, Duration::from_secs(10))), Some(3)),
        (|controller| controller.hot_loops(HotLoopLimits::new(30, Duration::from_secs(10))), None),
        (Controller::without_hot_loops, None),
        // Config maps have no generation, so every update is admitted and the loop persists.
        (|controller| controller.filter(generation_changed()).without_freshness(), Some(10)),
    ];
    for (configure, expected) in cases {
        let (controller, found) = telling(client.clone());
        let running = started(configure(controller).reconcile_with(beat)).await;
        tokio::time::sleep(Duration::from_secs(40)).await;
        running.stop().await;
        assert_eq!(taken(&found).first().map(|found| found.reconciles), expected);
    }
}
