//! Keys, workers, stopping.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use watchkeeper_controller::{
    Action, Context, Controller, Priority, ReconcileError, Reconciler, Request, Triggers,
    runnable::{RunError, Runnable as _},
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_key_is_looked_at_when_its_object_comes_changes_and_goes() {
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

    let seen: Vec<_> =
        log.take().into_iter().filter(|seen| seen.key == "default/a").map(|seen| (seen.version, seen.causes)).collect();
    let event = || "event of ConfigMap".to_owned();
    assert_eq!(
        seen,
        [
            (created.metadata.resource_version, event()),
            (changed.metadata.resource_version, event()),
            (None, event()),
        ]
    );
}

/// Notes how many run at once, of one key and of all.
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
            let mut now = self.now.lock().unwrap();
            *now.entry(key.clone()).or_default() += 1;
            (now.values().sum(), now[&key])
        };
        self.most.fetch_max(all, Ordering::Relaxed);
        self.most_of_a_key.fetch_max(of_key, Ordering::Relaxed);
        tokio::time::sleep(ms(100)).await;
        *self.now.lock().unwrap().get_mut(&key).unwrap() -= 1;
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_keys_are_worked_on_at_once_as_there_are_workers_and_each_by_one_of_them() {
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
async fn a_key_comes_back_when_it_asks_to_with_the_priority_it_asks_for() {
    let server = server();
    let triggers = Triggers::new();
    let log = Log::new();
    let noted = log.clone();
    let reconcile = move |request: Request<ConfigMap>, _: Context| {
        noted.note(&request);
        let tries = noted.all().len();
        async move {
            Ok::<_, ReconcileError>(match tries {
                1 => Action::requeue_after(ms(5_000)),
                2 => Action::requeue_after(ms(1_000)).with_priority(Priority::HIGH),
                3 => Action::requeue_after(ms(60_000)),
                _ => Action::done(),
            })
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    log.take();
    let began = log.now();
    triggers.send(key("default/none"), because("test"));
    tokio::time::sleep(ms(10_000)).await;
    triggers.send(key("default/none"), because("earlier than planned"));
    tokio::time::sleep(ms(100_000)).await;
    running.stop().await;

    let seen: Vec<_> =
        log.take().into_iter().map(|seen| ((seen.at - began).as_millis(), seen.priority, seen.causes)).collect();
    assert_eq!(
        seen,
        [
            (0, 0, "test".to_owned()),
            (5_000, 0, "requeue".to_owned()),
            (6_000, Priority::HIGH.0, "requeue".to_owned()),
            (10_000, Priority::HIGH.0, "requeue, earlier than planned".to_owned()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_what_runs_finish_and_begins_nothing_new() {
    let server = server();
    let triggers = Triggers::new();
    let (begun, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begins, finishes) = (Arc::clone(&begun), Arc::clone(&finished));
    let was_told = Arc::new(Mutex::new(None));
    let tells = Arc::clone(&was_told);
    let reconcile = move |_: Request<ConfigMap>, ctx: Context| {
        let (begins, finishes, tells) = (Arc::clone(&begins), Arc::clone(&finishes), Arc::clone(&tells));
        async move {
            begins.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(ms(10_000)).await;
            *tells.lock().unwrap() = Some((ctx.is_stopping(), ctx.cancellation().is_cancelled()));
            finishes.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    tokio::time::sleep(ms(60_000)).await; // what is there at first
    (begun.store(0, Ordering::Relaxed), finished.store(0, Ordering::Relaxed));
    triggers.send(key("default/a"), because("test"));
    triggers.send(key("default/b"), because("test"));
    settle().await;
    running.stop().await;
    assert_eq!((begun.load(Ordering::Relaxed), finished.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(*was_told.lock().unwrap(), Some((true, false)), "asked to stop, and let finish");
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_what_does_not_finish_in_time_and_a_later_run_takes_it_up_again() {
    let server = server();
    let triggers = Triggers::new();
    let log = Log::new();
    let noted = log.clone();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&tokens);
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        noted.note(&request);
        kept.lock().unwrap().push(ctx.cancellation());
        let is_stuck = request.name() == "stuck" && noted.all().len() == 1;
        async move {
            if is_stuck {
                std::future::pending::<()>().await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers).stop_within(ms(3_000));
    let reconcile_loop = Arc::new(controller.reconcile_with(reconcile));
    let running = Running::start(&reconcile_loop);
    settle().await;
    log.take();
    tokens.lock().unwrap().clear();
    triggers.send(key("default/stuck"), because("test"));
    triggers.send(key("default/next"), because("test"));
    settle().await;

    let asked = log.now();
    running.stop().await;
    assert_eq!((log.now() - asked).as_millis(), 3_000);
    assert!(tokens.lock().unwrap()[0].is_cancelled(), "what the reconcile started is told");
    assert_eq!(log.all().len(), 1);

    let running = Running::start(&reconcile_loop);
    settle().await;
    running.stop().await;
    let seen: Vec<_> = log.take().into_iter().map(|seen| (seen.key, seen.failures, seen.causes)).collect();
    let test = || "test".to_owned();
    let mut again = seen[1..].to_vec();
    again.sort();
    assert_eq!(again, [("default/next".to_owned(), 0, test()), ("default/stuck".to_owned(), 0, test())]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_runs_once_at_a_time_and_ends_with_the_future_that_runs_it() {
    let server = server();
    let triggers = Triggers::new();
    let dropped = Arc::new(Notify::new());
    let drops = Arc::clone(&dropped);
    struct TellsDrop(Arc<Notify>);
    impl Drop for TellsDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let reconcile = move |request: Request<ConfigMap>, _: Context| {
        let guard = TellsDrop(Arc::clone(&drops));
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
    assert_eq!(error.to_string(), "configmap ended: it is running already");

    drop(running);
    dropped.notified().await;
    settle().await;
    Running::start(&reconcile_loop).stop().await; // it can be run again
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_first_list_ends_the_preparation() {
    let server = server();
    let client = refused(&server, "/nothing");
    let (late, delay) = late_maps(&client);
    *delay.lock().unwrap() = ms(3_600_000);
    let factory = watchkeeper_informer::SharedInformerFactory::builder(client).source::<ConfigMap>(late).build();
    let log = Log::new();
    let reconcile_loop = Arc::new(Controller::<ConfigMap>::on(&factory).reconcile_with(log.noting()));
    let running = Running::start(&reconcile_loop);
    settle().await;
    let asked = log.now();
    running.stop().await;
    assert_eq!(log.now(), asked);
}
