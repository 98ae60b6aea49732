//! kube-rs's side, as its users write it.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube_client::Api;
use kube_core::WatchEvent;
use kube_core::params::{ListParams, WatchParams};

use super::ours::check;
use super::{count, server};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};
use crate::suites::cluster_pods as pods;

pub(super) fn list(load: Load) -> Result<Measurement, RunFailure> {
    let body = pods::list(load.operations);
    let runtime = server::runtime()?;
    let meter = Meter::start();
    let kept = count::under_the_meter(&runtime, listed(body))?;
    let measured = meter.stop(load.operations);
    check(kept.len(), load)?;
    Ok(measured)
}

async fn listed(body: Bytes) -> Result<Vec<Arc<Pod>>, RunFailure> {
    let api: Api<Pod> = Api::all(server::client(body));
    let list = api.list(&ListParams::default()).await?;
    Ok(list.items.into_iter().map(Arc::new).collect())
}

pub(super) fn watch(load: Load) -> Result<Measurement, RunFailure> {
    let body = pods::watch(load.operations);
    let runtime = server::runtime()?;
    let meter = Meter::start();
    let kept = count::under_the_meter(&runtime, watched(body))?;
    let measured = meter.stop(load.operations);
    check(kept.len(), load)?;
    Ok(measured)
}

async fn watched(body: Bytes) -> Result<Vec<Arc<Pod>>, RunFailure> {
    let api: Api<Pod> = Api::all(server::client(body));
    let mut events = pin!(api.watch(&WatchParams::default(), "1").await?.into_stream());
    let mut kept = Vec::new();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                kept.push(Arc::new(pod));
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => return Err(status.message.into()),
        }
    }
    Ok(kept)
}
