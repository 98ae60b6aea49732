//! Keys, workers and shutdown.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use kube_core::Selector;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use watchkeeper_controller::{
    Action, Context, Controller, Priority, ReconcileError, Reconciler, Request, Triggers,
    manager::{RunError, Runnable as _},
};

use watchkeeper_informer::factory::FactoryBuilder;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_key_is_reconciled_when_its_object_is_created_changed_and_deleted() {
    let server = server();
    let maps = maps(&server.client());
    let log = Log::new();
    let running = started(Controller::<ConfigMap>::new(server.client()).reconcile_with(log.noting())).await;

    let created = create(&maps, &map("a")).await;
    settle().await;
    let changed = patch(&maps, "a", json!({"data": {"k": "v"}})).await;
    settle().await;
    delete(&maps, "a").await;
    settle().await;
    running.stop().await;

    let logged: Vec<_> = log
        .take()
        .into_iter()
        .filter(|logged| logged.key == "default/a")
        .map(|logged| (logged.version, logged.causes))
        .collect();
    let event = || "event of ConfigMap".to_owned();
    assert_eq!(
        logged,
        [
            (created.metadata.resource_version, event()),
            (changed.metadata.resource_version, event()),
            (None, event()),
        ]
    );
}

/// Counts concurrent reconciles, per key and in total.
#[derive(Default)]
struct Crowd {
    now: Mutex<BTreeMap<String, usize>>,
    most: AtomicUsize,
    most_of_a_key: AtomicUsize,
}

impl Reconciler<ConfigMap> for Crowd {
    async fn reconcile(&self, request: Request<ConfigMap>, _: Context) -> Result<Action, ReconcileError> {
        let key = request.key.to_string();
        let (all, of_key) = {
            let mut now = self.now.lock();
            *now.entry(key.clone()).or_default() += 1;
            (now.values().sum(), now[&key])
        };
        self.most.fetch_max(all, Ordering::Relaxed);
        self.most_of_a_key.fetch_max(of_key, Ordering::Relaxed);
        tokio::time::sleep(ms(100)).await;
        *self.now.lock().get_mut(&key).unwrap() -= 1;
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_reconciled_concurrently_up_to_the_number_of_workers_and_each_by_one_worker() {
    let server = server();
    for (workers, expected) in [(None, 1), (Some(0), 1), (Some(4), 4)] {
        let triggers = Triggers::new();
        let crowd = Arc::new(Crowd::default());
        let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
        let controller = match workers {
            Some(workers) => controller.workers(workers),
            None => controller,
        };
        let running = started(controller.reconcile_with(Arc::clone(&crowd))).await;
        for round in 0..20_u64 {
            for name in 0..6 {
                triggers.send(key(&format!("default/m{name}")), because("test"));
            }
            tokio::time::sleep(ms(round * 7)).await;
        }
        tokio::time::sleep(ms(10_000)).await;
        running.stop().await;
        assert_eq!(crowd.most.load(Ordering::Relaxed), expected);
        assert_eq!(crowd.most_of_a_key.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_requeued_after_the_requested_delay_with_the_requested_priority() {
    let (server, triggers, log) = setup();
    let logged = log.clone();
    let reconcile = log.wrap(move |_: Request<ConfigMap>, _: Context| {
        let tries = logged.all().len();
        async move {
            Ok::<_, ReconcileError>(match tries {
                1 => Action::requeue_after(ms(5_000)),
                2 => Action::requeue_after(ms(1_000)).with_priority(Priority::HIGH),
                3 => Action::requeue_after(ms(60_000)),
                _ => Action::done(),
            })
        }
    });
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    log.take();
    let start = log.now();
    triggers.send(key("default/none"), because("test"));
    tokio::time::sleep(ms(10_000)).await;
    triggers.send(key("default/none"), because("earlier than planned"));
    tokio::time::sleep(ms(100_000)).await;
    running.stop().await;

    let logged: Vec<_> = log
        .take()
        .into_iter()
        .map(|logged| (millis_between(start, logged.at), logged.priority, logged.causes))
        .collect();
    assert_eq!(
        logged,
        [
            (0, 0, "test".to_owned()),
            (5_000, 0, "requeue".to_owned()),
            (6_000, Priority::HIGH.0, "requeue".to_owned()),
            (10_000, Priority::HIGH.0, "requeue, earlier than planned".to_owned()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_running_reconciles_finish_and_begins_no_other() {
    let server = server();
    let triggers = Triggers::new();
    let (start_count, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (starts, finishes) = (Arc::clone(&start_count), Arc::clone(&finished));
    let stop_state = Arc::new(Mutex::new(None));
    let reporter = Arc::clone(&stop_state);
    let reconcile = move |_: Request<ConfigMap>, ctx: Context| {
        let (starts, finishes, reporter) =
            (Arc::clone(&starts), Arc::clone(&finishes), Arc::clone(&reporter));
        async move {
            starts.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(ms(10_000)).await;
            *reporter.lock() = Some((ctx.is_stopping(), ctx.cancellation().is_cancelled()));
            finishes.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    tokio::time::sleep(ms(60_000)).await; // the initial objects
    start_count.store(0, Ordering::Relaxed);
    finished.store(0, Ordering::Relaxed);
    triggers.send(key("default/a"), because("test"));
    triggers.send(key("default/b"), because("test"));
    settle().await;
    running.stop().await;
    assert_eq!((start_count.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(*stop_state.lock(), Some((true, false)), "stop requested, and allowed to finish");
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_unfinished_reconciles_and_a_later_run_repeats_them() {
    let (server, triggers, log) = setup();
    let logged = log.clone();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&tokens);
    let reconcile = log.wrap(move |request: Request<ConfigMap>, ctx: Context| {
        recorded.lock().push(ctx.cancellation());
        let is_stuck = request.name() == "stuck" && logged.all().len() == 1;
        async move {
            if is_stuck {
                std::future::pending::<()>().await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    });
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers).stop_within(ms(3_000));
    let reconcile_loop = Arc::new(controller.reconcile_with(reconcile));
    let running = Running::start(&reconcile_loop);
    settle().await;
    log.take();
    tokens.lock().clear();
    triggers.send(key("default/stuck"), because("test"));
    triggers.send(key("default/next"), because("test"));
    settle().await;

    let asked = log.now();
    running.stop().await;
    assert_eq!(log.since(asked), 3_000);
    assert!(tokens.lock()[0].is_cancelled(), "tasks of the reconcile are cancelled");
    assert_eq!(log.all().len(), 1);

    let running = Running::start(&reconcile_loop);
    settle().await;
    running.stop().await;
    let logged: Vec<_> =
        log.take().into_iter().map(|logged| (logged.key, logged.failures, logged.causes)).collect();
    let test = || "test".to_owned();
    let mut again = logged[1..].to_vec();
    again.sort();
    assert_eq!(again, [("default/next".to_owned(), 0, test()), ("default/stuck".to_owned(), 0, test())]);
}

/// A value that reports when it is dropped.
struct DropNotifier(Arc<Notify>);

impl Drop for DropNotifier {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_cannot_run_twice_concurrently_and_ends_when_its_future_is_dropped() {
    let server = server();
    let triggers = Triggers::new();
    let dropped = Arc::new(Notify::new());
    let drops = Arc::clone(&dropped);
    let reconcile = move |request: Request<ConfigMap>, _: Context| {
        let guard = DropNotifier(Arc::clone(&drops));
        async move {
            if request.name() == "stuck" {
                std::future::pending::<()>().await;
            }
            std::mem::forget(guard);
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let reconcile_loop = Arc::new(controller.reconcile_with(reconcile));
    let running = Running::start(&reconcile_loop);
    settle().await;
    triggers.send(key("default/stuck"), because("test"));
    settle().await;

    let error = reconcile_loop.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, RunError::Run { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "configmap ended: the controller is already running; run each reconcile loop once at a time"
    );

    drop(running);
    dropped.notified().await;
    settle().await;
    Running::start(&reconcile_loop).stop().await; // the loop can be run again
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_initial_list_ends_the_preparation() {
    let server = server();
    let client = refused(&server, "/nothing");
    let (late, delay) = late_maps(&client);
    *delay.lock() = ms(3_600_000);
    let factory =
        watchkeeper_informer::SharedInformerFactory::builder(client).source::<ConfigMap>(late).build();
    let log = Log::new();
    let reconcile_loop = Arc::new(Controller::<ConfigMap>::on(&factory).reconcile_with(log.noting()));
    let running = Running::start(&reconcile_loop);
    settle().await;
    let asked = log.now();
    running.stop().await;
    assert_eq!(log.now(), asked);
}

#[tokio::test(start_paused = true)]
async fn low_priority_keys_are_not_starved() {
    let (server, triggers, log) = setup();
    let client = server.client();
    for number in 0..10 {
        create(&maps(&client), &map(&format!("old-{number}"))).await;
    }
    let reconcile = log.wrap(move |request: Request<ConfigMap>, _: Context| {
        async move {
            tokio::time::sleep(ms(10)).await;
            // Busy keys are due again immediately, with a higher priority than the initial list.
            let is_busy = request.name().starts_with("busy");
            let again = Action::requeue_after(ms(0)).with_priority(Priority::NORMAL);
            Ok::<_, ReconcileError>(if is_busy { again } else { Action::done() })
        }
    });
    let controller = Controller::<ConfigMap>::new(client).channel(&triggers);
    triggers.send(key("default/busy-1"), because("test"));
    triggers.send(key("default/busy-2"), because("test"));
    let reconcile_loop = Arc::new(controller.reconcile_with(reconcile));
    let running = Running::start(&reconcile_loop);
    tokio::time::sleep(ms(10_000)).await;
    running.stop().await;
    let logged = log.take_keys();
    let old: Vec<_> =
        (0..).zip(&logged).filter(|(_, key)| key.contains("old")).map(|(place, _)| place).collect();
    assert_eq!(old.len(), 10, "{logged:?}");
    // One in every 16 that were passed over, and one more for each of two priorities.
    for (place, turn) in old.iter().zip(1..) {
        assert!(*place <= turn * 18, "{old:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_never_waits_yields_to_other_tasks() {
    let server = server();
    let triggers = Triggers::new();
    for number in 0..100_000 {
        triggers.send(key(&format!("default/m{number}")), because("test"));
    }
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let reconcile = move |_: Request<ConfigMap>, _: Context| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok::<_, ReconcileError>(Action::done()))
    };
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let reconcile_loop = Arc::new(controller.reconcile_with(reconcile));
    let running = Running::start(&reconcile_loop);
    while done.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(done.load(Ordering::Relaxed) < 10_000, "the reconciler yields to other tasks before it ends");
    running.stop().await;
    assert!(done.load(Ordering::Relaxed) < 10_000, "a stop does not wait for all queued keys");
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_reads_the_caches_and_values_of_its_controller() {
    struct Greeting(&'static str);
    let server = server();
    let client = server.client();
    create(&maps(&client), &map("a")).await;
    create(&deployments(&client), &deployment("web")).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reporter = Arc::clone(&reports);
    let reconcile = move |_: Request<ConfigMap>, ctx: Context| {
        let reporter = Arc::clone(&reporter);
        async move {
            let deployments = ctx.lister::<Deployment>()?.list(&Selector::default()).len();
            let has_map = ctx.reader::<ConfigMap>()?.contains("default/a");
            let greeting = ctx.get::<Greeting>().map(|greeting| greeting.0);
            let absent = ctx.lister::<Pod>().unwrap_err().to_string();
            reporter.lock().push((ctx.controller().to_owned(), deployments, has_map, greeting, absent));
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller =
        Controller::<ConfigMap>::new(client).named("maps").owns::<Deployment>().with(Greeting("hello"));
    let running = started(controller.reconcile_with(reconcile)).await;
    running.stop().await;
    let reports = reports.lock();
    let (name, deployments, has_map, greeting, reason) = &reports[0];
    assert_eq!((name.as_str(), *deployments, *has_map, *greeting), ("maps", 1, true, Some("hello")));
    assert!(
        reason.starts_with("read cache of k8s_openapi::")
            && reason.contains("::Pod: controller maps does not watch"),
        "{reason}"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_client_fail_with_the_remedy() {
    let source = watchkeeper_client::list_watch::ScriptedSource::<ConfigMap>::new();
    let _watch =
        source.open_watch(watchkeeper_client::list_watch::WatchScript::new().initial_events_end("1"));
    let factory = FactoryBuilder::without_client().source::<ConfigMap>(source).build();
    let triggers = Triggers::new();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&errors);
    let reconcile = move |_: Request<ConfigMap>, ctx: Context| {
        let reports = Arc::clone(&reports);
        async move {
            for client in [ctx.client(), ctx.untracked_client()] {
                let error = maps(&client).get("a").await.unwrap_err();
                reports.lock().push(error.to_string());
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    triggers.send(key("default/a"), because("test"));
    let controller = Controller::<ConfigMap>::on(&factory).channel(&triggers);
    started(controller.reconcile_with(reconcile)).await.stop().await;
    let errors = errors.lock();
    assert_eq!(errors.len(), 2);
    assert!(
        errors.iter().all(|error| error.contains("controller configmap has no client; set one with")),
        "{errors:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_can_be_called_without_a_controller() {
    let server = server();
    let reconcile = |request: Request<ConfigMap>, ctx: Context| async move {
        create(&maps(&ctx.client()), &map(request.name())).await;
        Ok::<_, ReconcileError>(Action::requeue_after(ms(7)))
    };
    let context = Context::detached(server.client());
    let action =
        Reconciler::reconcile(&reconcile, Request::new(key("default/a"), None), context).await.unwrap();
    assert_eq!(action, Action::requeue_after(ms(7)));
    assert!(maps(&server.client()).get("a").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_several_threads_every_key_is_reconciled_and_none_concurrently() {
    const KEYS: usize = 2_000;
    let server = server();
    let triggers = Triggers::new();
    let (at_work, done) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(Mutex::new(BTreeSet::new())));
    let all_done = Arc::new(Notify::new());
    let (working, finished, finishes) = (at_work, Arc::clone(&done), Arc::clone(&all_done));
    let reconcile = move |request: Request<ConfigMap>, _: Context| {
        let (working, finished, finishes) =
            (Arc::clone(&working), Arc::clone(&finished), Arc::clone(&finishes));
        async move {
            assert!(working.lock().insert(request.key.clone()), "the key is reconciled concurrently");
            tokio::task::yield_now().await;
            working.lock().remove(&request.key);
            let mut finished = finished.lock();
            finished.insert(request.key);
            if finished.len() == KEYS {
                finishes.notify_one();
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&failures);
    let controller = Controller::<ConfigMap>::new(server.client())
        .channel(&triggers)
        .workers(4)
        .retry_limit(0)
        .on_abandon(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    let running = Running::start(&Arc::new(controller.reconcile_with(reconcile)));
    for _ in 0..5 {
        for number in 0..KEYS {
            triggers.send(key(&format!("default/m{number}")), because("test"));
        }
        tokio::task::yield_now().await;
    }
    all_done.notified().await;
    running.stop().await;
    assert_eq!(failures.load(Ordering::Relaxed), 0);
}
