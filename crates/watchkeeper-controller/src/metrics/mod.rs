//! Metrics of controllers, informers, requests and the process, under the names that existing dashboards use.
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
//! # Informer metrics
//!
//! [`register_informer_metrics`] exports the figures of each informer of a factory. A manager registers them for its factory.
//!
//! | name | kind | meaning |
//! |---|---|---|
//! | `watchkeeper_informer_objects` | gauge | objects in the cache |
//! | `watchkeeper_informer_encoded_objects` | gauge | objects whose encoded bytes are kept, including earlier versions that are in use |
//! | `watchkeeper_informer_decoded_objects` | gauge | those of them that are also kept decoded |
//! | `watchkeeper_informer_encoded_bytes` | gauge | encoded bytes that are kept, compressed or not |
//! | `watchkeeper_informer_decoded_bytes` | gauge | estimated memory of the decoded objects |
//! | `watchkeeper_informer_decodes_total` | counter | reads that decoded an object |
//! | `watchkeeper_informer_decode_seconds_total` | counter | time that these reads took |
//! | `watchkeeper_informer_hits_total` | counter | reads of objects that were kept decoded |
//! | `watchkeeper_informer_evictions_total` | counter | decoded objects that were dropped to keep within the budget |
//! | `watchkeeper_informer_compression_ratio` | gauge | bytes before compression per byte after, with the current dictionary |
//! | `watchkeeper_informer_dictionaries_total` | counter | dictionaries that were trained |
//! | `watchkeeper_informer_dictionary_age_seconds` | gauge | time since the current dictionary was trained |
//! | `watchkeeper_informer_memory_budget_bytes` | gauge, without labels | memory that decoded objects of all informers may take |
//! | `watchkeeper_informer_quarantined_objects` | gauge | objects that could not be decoded or transformed |
//! | `watchkeeper_informer_lists_total` | counter | lists that were started, including relists |
//! | `watchkeeper_informer_relists_total` | counter, label `cause` | relists |
//! | `watchkeeper_informer_watch_restarts_total` | counter, label `reason` | watches that were resumed, by the reason why the previous one ended |
//! | `watchkeeper_informer_failures_total` | counter | lists and watches that failed |
//! | `watchkeeper_informer_last_event_age_seconds` | gauge | time since something was received from the server |
//! | `informer_queued_items` | gauge | keys with changes that are not in the cache yet |
//!
//! The labels are `resource`, such as `pods.v1` or `deployments.v1.apps`, `type`, the name of the type of the objects, and
//! `scope`, such as `in namespace shop`, which all namespaces do not have. `informer_queued_items` has client-go's labels
//! `group`, `version`, `resource` and `name`, and the label `type`. Labels are shortened to 120 characters; a label `number`
//! distinguishes informers whose other labels are equal. Above 100 informers, the others share the series of the resource
//! `exceeded_cardinality_limit`.
//!
//! Informers that keep all objects decoded, with
//! [`MemoryPolicy::Decoded`](watchkeeper_informer::MemoryPolicy::Decoded), have no series for encoded and decoded objects. The
//! compression ratio and the age of the dictionary exist once a dictionary was trained. An informer with several sources, one
//! for each namespace, reports sums, and the age of the source that has received nothing for the longest time.
//!
//! # Other metrics
//!
//! [`RestMetrics`] counts requests to the API server, and [`register_process_metrics`] registers the metrics of the process. A
//! manager registers both.

mod controller;
mod informer;
mod process;
mod rest;

use prometheus_client::registry::{Metric, Registry};

pub(crate) use self::controller::ControllerSeries;
pub use self::{
    controller::{ControllerMetrics, DuplicateName},
    informer::register_informer_metrics,
    process::register_process_metrics,
    rest::RestMetrics,
};

/// Registers a metric, and returns it.
pub(crate) fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
