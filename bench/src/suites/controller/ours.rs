//! Our side: a controller on an informer with a scripted server, and a metrics registry.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::list_watch::{ScriptedSource, WatchScript};
use watchkeeper_controller::manager::Runnable as _;
use watchkeeper_controller::metrics::ControllerMetrics;
use watchkeeper_controller::{
    Action, Cause, Context, Controller, ReconcileError, Reconciler, Request, Triggers,
};
use watchkeeper_informer::ObjectKey;
use watchkeeper_informer::factory::FactoryBuilder;

use super::{Count, WORKERS, objects, runtime};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

struct NoOp {
    count: Arc<Count>,
}

impl Reconciler<ConfigMap> for NoOp {
    async fn reconcile(&self, request: Request<ConfigMap>, _: Context) -> Result<Action, ReconcileError> {
        if request.object.is_some() {
            self.count.add();
        }
        Ok(Action::done())
    }
}

pub(super) fn no_op(load: Load) -> Result<Measurement, RunFailure> {
    let source = ScriptedSource::new();
    let first = objects(load.operations).fold(WatchScript::new(), WatchScript::added);
    let _server = source.open_watch(first.initial_events_end("1000000"));
    let asked: Vec<ObjectKey> =
        objects(load.operations).map(|object| ObjectKey::of(&object)).collect::<Result<_, _>>()?;
    let count = Count::new();
    runtime()?.block_on(async {
        let factory = FactoryBuilder::without_client().source::<ConfigMap>(source).build();
        let triggers = Triggers::new();
        let mut registry = Registry::default();
        let controller = Controller::<ConfigMap>::on(&factory)
            .workers(usize::from(WORKERS))
            .channel(&triggers)
            .metrics(&ControllerMetrics::register(&mut registry))
            .reconcile_with(NoOp { count: Arc::clone(&count) });
        let (stop, cause) = (CancellationToken::new(), Cause::Other("triggered".into()));
        // The initial list is reconciled before the clock runs.
        count.want(load.operations);
        let mut running = JoinSet::new();
        running.spawn({
            let stop = stop.clone();
            async move { controller.run(stop).await }
        });
        count.reached().await;
        count.want(load.operations);
        let meter = Meter::start();
        for key in asked {
            triggers.send(key, cause.clone());
        }
        count.reached().await;
        let measured = meter.stop(load.operations);
        let mut scraped = String::new();
        encode(&mut scraped, &registry)?;
        let adds = format!(
            "workqueue_adds_total{{controller=\"configmap\",name=\"configmap\"}} {}\n",
            2 * load.operations
        );
        if !scraped.contains(&adds) {
            return Err(format!("no {adds:?} in the metrics").into());
        }
        stop.cancel();
        running.join_all().await.into_iter().collect::<Result<(), _>>()?;
        Ok(measured)
    })
}
