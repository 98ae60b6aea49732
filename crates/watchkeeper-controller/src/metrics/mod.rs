//! Metrics of controllers, requests and the process, under the names that existing dashboards use.
//!
//! # Controller metrics
//!
//! [`Manager::add`](crate::manager::Manager::add) registers the series of each controller and its work queue. A controller that
//! runs without a manager registers them through [`Controller::metrics`](crate::Controller::metrics). All series exist, with the
//! value zero, before the first reconcile. They are removed when the controller is dropped.
//!
//! | name | kind | labels in addition to `controller` | meaning |
//! |---|---|---|---|
//! | `controller_runtime_reconcile_total` | counter | `result`: `success`, `error`, `requeue`, `requeue_after` | reconciles; `requeue` counts conflicts |
//! | `controller_runtime_reconcile_errors_total` | counter | | failed reconciles, without conflicts |
//! | `controller_runtime_terminal_reconcile_errors_total` | counter | | failed reconciles that are not retried |
//! | `controller_runtime_reconcile_panics_total` | counter | | reconciles that panicked |
//! | `controller_runtime_reconcile_timeouts_total` | counter | | reconciles that timed out |
//! | `controller_runtime_reconcile_time_seconds` | histogram | | duration of a reconcile |
//! | `controller_runtime_max_concurrent_reconciles` | gauge | | number of workers |
//! | `controller_runtime_active_workers` | gauge | | number of workers that are reconciling |
//! | `watchkeeper_reconcile_conflicts_total` | counter | | reconciles that conflicted because of a stale state and are retried |
//! | `watchkeeper_reconcile_given_up_total` | counter | | keys that exhausted their retries |
//! | `watchkeeper_freshness_waits_total` | counter | `result`: `reached`, `timeout` | keys that waited for their own writes to be observed |
//! | `watchkeeper_freshness_wait_seconds` | histogram | | duration of these waits |
//! | `watchkeeper_hot_loops_total` | counter | | keys found to trigger themselves |
//!
//! The metrics of the work queue are registered with them: see [`watchkeeper_workqueue::prometheus`]. Their labels `name` and
//! `controller` both contain the name of the controller.
//!
//! Controller names are unique within a registry. A second controller of the same name is rejected with [`DuplicateName`], because both
//! would report to the same series.
//!
//! # Other metrics
//!
//! [`RestMetrics`] counts requests to the API server, and [`register_process_metrics`] registers the metrics of the process. A
//! manager registers both.

mod controller;
mod process;
mod rest;

use prometheus_client::registry::{Metric, Registry};

pub(crate) use self::controller::ControllerSeries;
pub use self::{
    controller::{ControllerMetrics, DuplicateName},
    process::register_process_metrics,
    rest::RestMetrics,
};

/// Registers a metric, and returns it.
pub(crate) fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
