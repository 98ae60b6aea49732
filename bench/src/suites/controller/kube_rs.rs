//! kube-rs's side, as its users write it.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_runtime::controller::{Action, Config};
use kube_runtime::reflector::{self, ObjectRef};
use kube_runtime::watcher::Event;
use kube_runtime::{Controller, watcher};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Count, WORKERS, objects, runtime};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

pub(super) fn no_op(load: Load) -> Result<Measurement, RunFailure> {
    let (reader, mut writer) = reflector::store::<ConfigMap>();
    writer.apply_watcher_event(&Event::Init);
    let mut asked: Vec<ObjectRef<ConfigMap>> = Vec::new();
    for object in objects(load.operations) {
        asked.push(ObjectRef::from_obj(&object));
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let count = Count::new();
    let (ask, when_asked) = oneshot::channel::<Vec<ObjectRef<ConfigMap>>>();
    let from_outside = stream::once(when_asked).flat_map(|asked| stream::iter(asked.unwrap_or_default()));
    let controller = Controller::for_stream(stream::pending::<Result<ConfigMap, watcher::Error>>(), reader)
        .with_config(Config::default().concurrency(WORKERS))
        .reconcile_on(from_outside);
    let reconcile = |_: Arc<ConfigMap>, count: Arc<Count>| async move {
        count.add();
        Ok::<_, Infallible>(Action::await_change())
    };
    runtime()?.block_on(async {
        let running = controller.run(reconcile, |_, _, _| Action::await_change(), Arc::clone(&count));
        let mut tasks = JoinSet::new();
        tasks.spawn(running.for_each(|_| async {}));
        count.want(load.operations);
        let meter = Meter::start();
        ask.send(asked).map_err(|_| "the controller has ended")?;
        count.reached().await;
        let measured = meter.stop(load.operations);
        tasks.shutdown().await;
        Ok(measured)
    })
}
