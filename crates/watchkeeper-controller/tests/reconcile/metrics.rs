//! Metrics of a controller.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::registry::Registry;
use serde_json::json;
use watchkeeper_client::kube_client::api::PostParams;
use watchkeeper_controller::{
    Action, Context, Controller, ReconcileError, Request, Triggers,
    manager::{RunError, Runnable as _},
    metrics::ControllerMetrics,
};
use watchkeeper_informer::SharedInformerFactory;

use crate::support::*;

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// Series that exist before the first reconcile.
const ZERO_AT_FIRST: [&str; 11] = [
    "controller_runtime_reconcile_total{controller=\"maps\",result=\"success\"}",
    "controller_runtime_reconcile_total{controller=\"maps\",result=\"error\"}",
    "controller_runtime_reconcile_total{controller=\"maps\",result=\"requeue\"}",
    "controller_runtime_reconcile_total{controller=\"maps\",result=\"requeue_after\"}",
    "controller_runtime_reconcile_errors_total{controller=\"maps\"}",
    "controller_runtime_terminal_reconcile_errors_total{controller=\"maps\"}",
    "controller_runtime_reconcile_panics_total{controller=\"maps\"}",
    "controller_runtime_reconcile_timeouts_total{controller=\"maps\"}",
    "controller_runtime_reconcile_time_seconds_count{controller=\"maps\"}",
    "controller_runtime_active_workers{controller=\"maps\"}",
    "workqueue_depth{controller=\"maps\",name=\"maps\",priority=\"0\"}",
];

/// The values of the series at the end.
const AT_LAST: [(&str, f64); 15] = [
    ("controller_runtime_reconcile_total{controller=\"maps\",result=\"error\"}", 7.0),
    ("controller_runtime_reconcile_total{controller=\"maps\",result=\"requeue\"}", 1.0),
    ("controller_runtime_reconcile_total{controller=\"maps\",result=\"requeue_after\"}", 1.0),
    ("controller_runtime_reconcile_errors_total{controller=\"maps\"}", 7.0),
    ("controller_runtime_terminal_reconcile_errors_total{controller=\"maps\"}", 1.0),
    ("controller_runtime_reconcile_panics_total{controller=\"maps\"}", 2.0),
    ("controller_runtime_reconcile_timeouts_total{controller=\"maps\"}", 2.0),
    ("controller_runtime_max_concurrent_reconciles{controller=\"maps\"}", 2.0),
    ("controller_runtime_active_workers{controller=\"maps\"}", 0.0),
    ("watchkeeper_reconcile_conflicts_total{controller=\"maps\"}", 1.0),
    ("watchkeeper_reconcile_given_up_total{controller=\"maps\"}", 3.0),
    ("watchkeeper_hot_loops_total{controller=\"maps\"}", 0.0),
    ("watchkeeper_freshness_waits_total{controller=\"maps\",result=\"reached\"}", 1.0),
    ("watchkeeper_freshness_waits_total{controller=\"maps\",result=\"timeout\"}", 1.0),
    ("workqueue_depth{controller=\"maps\",name=\"maps\",priority=\"0\"}", 0.0),
];

async fn nothing(_: Request<ConfigMap>, _: Context) -> Result<Action, ReconcileError> {
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn without_a_manager_a_second_controller_of_the_same_name_and_registry_does_not_start() {
    let server = server();
    let mut registry = Registry::default();
    let metrics = ControllerMetrics::register(&mut registry);
    let factory = SharedInformerFactory::new(server.client());
    let controller = |workers| {
        let controller = Controller::<ConfigMap>::on(&factory).named("maps").workers(workers);
        controller.metrics(&metrics).reconcile_with(nothing)
    };
    let (first, second) = (Arc::new(controller(3)), controller(5));
    let running = Running::start(&first);
    settle().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let is_rejected = |result: Result<(), RunError>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, RunError::DuplicateName(duplicate) if duplicate.name == "maps"), "{error}");
    };
    is_rejected(second.prepare(stop.clone()).await);
    is_rejected(second.run(stop.clone()).await);
    drop(second);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let workers = value(&text, "controller_runtime_max_concurrent_reconciles{controller=\"maps\"}");
    assert_eq!(workers, Some(3.0), "{text}");
    assert_eq!(
        value(&text, "workqueue_depth{controller=\"maps\",name=\"maps\",priority=\"0\"}"),
        Some(0.0),
        "{text}"
    );
    running.stop().await;

    // Dropping the controller frees its name, even while the informers are still removing its handlers.
    drop(first);
    controller(1).prepare(stop).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controller_metrics_have_their_standard_names_and_values() {
    let server = server();
    let client = server.client();
    let mut registry = Registry::default();
    let metrics = ControllerMetrics::register(&mut registry);
    let triggers = Triggers::new();
    let (source, delay) = late_maps(&client);
    let stale = create(&maps(&client), &map("conflict")).await;
    patch(&maps(&client), "conflict", json!({"data": {"k": "v"}})).await;
    let factory = SharedInformerFactory::builder(client).source::<ConfigMap>(source).build();
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        let stale = stale.clone();
        async move {
            let is_live = request.causes.to_string().contains("test");
            match request.name() {
                "error" => return Err(ReconcileError::new("failed")),
                "terminal" => return Err(ReconcileError::terminal("failed")),
                "panic" => panic!("failed"),
                "timeout" => std::future::pending().await,
                "conflict" if is_live && request.failures == 0 && ctx.reconcile_id() < 10 => {
                    _ = maps(&ctx.client()).update(&PostParams::default(), &stale).await?;
                }
                "later" => return Ok(Action::requeue_after(ms(3_600_000))),
                "writer" => {
                    let news = json!({"data": {"k": ctx.reconcile_id().to_string()}});
                    _ = patch(&maps(&ctx.client()), "conflict", news).await;
                }
                _ => {}
            }
            Ok(Action::done())
        }
    };
    let controller = Controller::<ConfigMap>::on(&factory)
        .named("maps")
        .channel(&triggers)
        .workers(2)
        .timeout(ms(2_000))
        .retry_limit(1)
        .freshness_timeout(ms(1_000))
        .metrics(&metrics);
    let text = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    };
    let reconcile_loop = Arc::new(controller.reconcile_with(reconcile));
    let zero = text();
    for series in ZERO_AT_FIRST {
        assert_eq!(value(&zero, series), Some(0.0), "{series} in\n{zero}");
    }
    let running = Running::start(&reconcile_loop);
    settle().await;
    *delay.lock() = ms(500);
    for name in ["error", "terminal", "panic", "timeout", "conflict", "later", "fine"] {
        triggers.send(key(&format!("default/{name}")), because("test"));
    }
    tokio::time::sleep(ms(1_000)).await;
    let busy = text();
    assert_eq!(value(&busy, "controller_runtime_active_workers{controller=\"maps\"}"), Some(1.0));
    tokio::time::sleep(ms(60_000)).await;
    triggers.send(key("default/writer"), because("test"));
    tokio::time::sleep(ms(100)).await;
    triggers.send(key("default/writer"), because("test"));
    tokio::time::sleep(ms(60_000)).await;
    *delay.lock() = ms(30_000);
    triggers.send(key("default/writer"), because("test"));
    tokio::time::sleep(ms(100)).await;
    triggers.send(key("default/writer"), because("test"));
    tokio::time::sleep(ms(60_000)).await;
    running.stop().await;

    let reports = text();
    for (series, count) in AT_LAST {
        assert_eq!(value(&reports, series), Some(count), "{series} in\n{reports}");
    }
    let sum = |prefix: &str| -> f64 {
        reports
            .lines()
            .filter(|line| line.starts_with(prefix))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    assert_eq!(
        value(&reports, "controller_runtime_reconcile_time_seconds_count{controller=\"maps\"}"),
        Some(sum("controller_runtime_reconcile_total{")),
        "every reconcile is timed"
    );
}
