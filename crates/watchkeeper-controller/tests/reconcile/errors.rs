//! Handling of keys whose reconcile fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use parking_lot::Mutex;
use serde_json::json;
use watchkeeper_client::kube_client::api::{Patch, PatchParams, PostParams};
use watchkeeper_controller::{AbandonReason, Action, Context, Controller, ReconcileError, Request};

use crate::support::*;

/// The attempts on one key: start time and number of earlier failures.
fn attempts_on(log: &Log, key: &str, start: Duration) -> Vec<(u128, u32)> {
    let of_key = log.all().into_iter().filter(|logged| logged.key == key);
    of_key.map(|logged| (millis_between(start, logged.at), logged.failures)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_failing_key_is_retried_after_its_own_backoff_and_reset_on_success() {
    let (server, triggers, log) = setup();
    let reconcile = log.wrap(move |request: Request<ConfigMap>, _: Context| {
        let fails = request.name() == "bad" && request.failures < 4;
        async move { if fails { Err(ReconcileError::new("not yet")) } else { Ok(Action::done()) } }
    });
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    let start = log.now();
    triggers.send(key("default/bad"), because("test"));
    tokio::time::sleep(ms(10)).await;
    triggers.send(key("default/good"), because("test"));
    triggers.send(key("default/bad"), because("does not jump its backoff"));
    tokio::time::sleep(ms(990)).await;
    triggers.send(key("default/bad"), because("test"));
    settle().await;
    running.stop().await;

    let bad = attempts_on(&log, "default/bad", start);
    let backoff: Vec<_> = bad.iter().map(|(at, _)| *at).collect();
    assert_eq!(bad.iter().map(|(_, failures)| *failures).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    // 5, 10, 20 and 40 ms, each rounded up to the timer's tick.
    for (pair, expected) in backoff[..5].windows(2).zip([5, 10, 20, 40]) {
        assert!((expected..=expected + 1).contains(&(pair[1] - pair[0])), "{backoff:?}");
    }
    assert_eq!(attempts_on(&log, "default/good", start), [(10, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_abandoned_after_its_retries_and_reconciled_again_when_it_changes() {
    let server = server();
    let maps = maps(&server.client());
    let given_up = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&given_up);
    let log = Log::new();
    let reconcile = log.wrap(move |_: Request<ConfigMap>, _: Context| async move {
        Err::<Action, _>(ReconcileError::new("cannot be done"))
    });
    let controller = Controller::<ConfigMap>::new(server.client()).named("pods").retry_limit(5).on_abandon(
        move |abandoned| {
            let AbandonReason::Error(error) = &abandoned.reason else { panic!("{abandoned:?}") };
            let report = format!("{} {} {} {error}", abandoned.controller, abandoned.key, abandoned.attempts);
            reports.lock().push(report);
        },
    );
    let running = started(controller.reconcile_with(reconcile)).await;
    tokio::time::sleep(ms(600_000)).await;
    given_up.lock().clear();
    log.take();

    create(&maps, &map("a")).await;
    tokio::time::sleep(ms(3_600_000)).await;
    let failures: Vec<_> = log.take().into_iter().map(|logged| logged.failures).collect();
    assert_eq!(failures, [0, 1, 2, 3, 4, 5]);
    assert_eq!(*given_up.lock(), ["pods default/a 6 cannot be done"]);

    patch(&maps, "a", json!({"data": {"k": "v"}})).await;
    settle().await;
    assert_eq!(log.take()[0].failures, 0, "its failures are reset");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_reported_and_not_retried() {
    let (server, triggers, log) = setup();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&reports);
    let reconcile = log.wrap(move |_: Request<ConfigMap>, _: Context| async move {
        Err::<Action, _>(ReconcileError::terminal("never"))
    });
    let controller = Controller::<ConfigMap>::new(server.client())
        .channel(&triggers)
        .on_abandon(move |abandoned| reported.lock().push((abandoned.key.to_string(), abandoned.attempts)));
    let running = started(controller.reconcile_with(reconcile)).await;
    log.take();
    reports.lock().clear();
    triggers.send(key("default/a"), because("test"));
    tokio::time::sleep(ms(3_600_000)).await;
    running.stop().await;
    assert_eq!(log.take_keys(), ["default/a"]);
    assert_eq!(*reports.lock(), [("default/a".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_reconciled_again_and_not_counted_as_a_failure() {
    let (server, triggers, log) = setup();
    let maps_api = maps(&server.client());
    let old = create(&maps_api, &map("a")).await;
    patch(&maps_api, "a", json!({"data": {"k": "someone else's"}})).await;
    let writes_left = Arc::new(AtomicU32::new(0));
    let left = Arc::clone(&writes_left);
    let reconcile = log.wrap(move |request: Request<ConfigMap>, ctx: Context| {
        let is_stale = request.name() == "a" && left.load(Ordering::Relaxed) > 0;
        let (left, stale) = (Arc::clone(&left), old.clone());
        async move {
            if is_stale {
                left.fetch_sub(1, Ordering::Relaxed);
                maps(&ctx.client()).update(&PostParams::default(), &stale).await?;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    });
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers).retry_limit(0);
    let running = started(controller.reconcile_with(reconcile)).await;
    log.take();
    writes_left.store(3, Ordering::Relaxed);
    let start = log.now();
    triggers.send(key("default/a"), because("test"));
    settle().await;
    running.stop().await;
    let logged = attempts_on(&log, "default/a", start);
    assert_eq!(logged.iter().map(|(_, failures)| *failures).collect::<Vec<_>>(), [0; 4], "{logged:?}");
    // 10, 20 and 40 ms, each rounded up to the timer's tick.
    for (pair, expected) in logged.windows(2).zip([10, 20, 40]) {
        assert!((expected..=expected + 1).contains(&(pair[1].0 - pair[0].0)), "{logged:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_of_its_key_and_the_worker_continues() {
    let (server, triggers, log) = setup();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&reports);
    // First before the future exists, then within it, then with a payload that is not text.
    let reconcile = log.wrap(move |request: Request<ConfigMap>, _: Context| {
        let is_bad = request.name() == "bad";
        assert!(!is_bad || request.failures != 0, "panics before the future exists");
        async move {
            match (is_bad, request.failures) {
                (true, 1) => panic!("within {}", "it"),
                (true, _) => std::panic::panic_any(7_u8),
                (false, _) => Ok::<_, ReconcileError>(Action::done()),
            }
        }
    });
    let controller = Controller::<ConfigMap>::new(server.client())
        .channel(&triggers)
        .retry_limit(2)
        .on_abandon(move |abandoned| {
            let AbandonReason::Panic(message) = abandoned.reason else { panic!("{abandoned:?}") };
            reported.lock().push(message.to_owned());
            panic!("and the hook panics too");
        });
    let running = started(controller.reconcile_with(reconcile)).await;
    log.take();
    triggers.send(key("default/bad"), because("test"));
    triggers.send(key("default/good"), because("test"));
    settle().await;
    triggers.send(key("default/good"), because("test"));
    settle().await;
    running.stop().await;
    let (good, bad): (Vec<_>, Vec<_>) =
        log.take().into_iter().partition(|logged| logged.key == "default/good");
    assert_eq!(bad.into_iter().map(|logged| logged.failures).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(good.len(), 2);
    assert_eq!(*reports.lock(), ["(no message)"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_times_out_is_dropped_and_retried() {
    let (server, triggers, log) = setup();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&tokens);
    let reconcile = log.wrap(move |request: Request<ConfigMap>, ctx: Context| {
        let is_stuck = request.name() == "slow" && request.failures == 0;
        recorded.lock().push((request.key.to_string(), ctx.cancellation()));
        async move {
            if is_stuck {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(ms(999)).await;
            Ok::<_, ReconcileError>(Action::done())
        }
    });
    let controller = Controller::<ConfigMap>::new(server.client()).channel(&triggers).timeout(ms(1_000));
    let running = started(controller.reconcile_with(reconcile)).await;
    tokio::time::sleep(ms(60_000)).await;
    log.take();
    tokens.lock().clear();
    let start = log.now();
    triggers.send(key("default/slow"), because("test"));
    tokio::time::sleep(ms(10_000)).await;
    let cancelled: Vec<_> = tokens.lock().iter().map(|(_, token)| token.is_cancelled()).collect();
    running.stop().await;
    let logged = attempts_on(&log, "default/slow", start);
    assert_eq!(logged.len(), 2, "{logged:?}");
    assert!((1_005..=1_007).contains(&logged[1].0) && logged[1].1 == 1, "{logged:?}");
    assert_eq!(cancelled, [true, false], "only the dropped reconcile is cancelled");
    assert!(tokens.lock()[1].1.is_cancelled(), "tasks that outlive the controller are cancelled too");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_desired_state_skips_the_backoff_and_a_status_update_does_not() {
    let server = server();
    let client = server.client();
    let api = deployments(&client);
    create(&api, &deployment("web")).await;
    let log = Log::new();
    let reconcile = log.wrap(move |_: Request<Deployment>, _: Context| async move {
        Err::<Action, _>(ReconcileError::new("broken"))
    });
    let running = started(Controller::<Deployment>::new(client).reconcile_with(reconcile)).await;
    tokio::time::sleep(ms(500_000)).await; // the backoff has grown to minutes
    log.take();
    let status = json!({"status": {"replicas": 1}});
    api.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    settle().await;
    assert_eq!(log.take().len(), 0);
    patch(&api, "web", json!({"spec": {"replicas": 2}})).await;
    settle().await;
    let logged = log.take();
    assert_eq!(logged.len(), 1);
    assert!(logged[0].failures > 10, "its failures are still counted");
    delete(&api, "web").await;
    settle().await;
    assert_eq!(log.take().len(), 1, "a deletion skips the backoff too");
    running.stop().await;
}
