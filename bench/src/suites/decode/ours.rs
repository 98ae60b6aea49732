//! Watchkeeper's side of the decode suite.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use watchkeeper_client::Client;
use watchkeeper_client::list_watch::{
    ListPart, ListRequest, ListWatch, ListerWatcher, WatchEvent, WatchRequest,
};
use watchkeeper_client::rest::ResourcePath;

use super::{count, server};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};
use crate::suites::cluster_pods as pods;

pub(super) fn list(load: Load) -> Result<Measurement, RunFailure> {
    read_list(load, |client| Ok(ListWatch::new(&client.resource::<Pod>())))
}

pub(super) fn narrow(load: Load) -> Result<Measurement, RunFailure> {
    read_list(load, |client| {
        Ok(ListWatch::<NarrowPod>::at(client, ResourcePath::new("", "v1", "pods")?, "Pod"))
    })
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
    let source = ListWatch::new(&Client::from(server::client(body)).resource::<Pod>());
    let mut events = source.watch(WatchRequest::new().resource_version("1")).await?;
    let mut kept = Vec::new();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(item) | WatchEvent::Modified(item) | WatchEvent::Deleted(item) => {
                kept.push(item.decode()?);
            }
            WatchEvent::Bookmark(_) => {}
        }
    }
    Ok(kept)
}

fn read_list<K: Send + Sync + 'static>(
    load: Load,
    source: impl FnOnce(Client) -> Result<ListWatch<K>, RunFailure>,
) -> Result<Measurement, RunFailure> {
    let body = pods::list(load.operations);
    let runtime = server::runtime()?;
    let meter = Meter::start();
    let kept = count::under_the_meter(&runtime, async {
        listed(&source(Client::from(server::client(body)))?).await
    })?;
    let measured = meter.stop(load.operations);
    check(kept.len(), load)?;
    Ok(measured)
}

/// Returns every object of a list, as a cache keeps it.
pub(super) async fn listed<K>(source: &impl ListerWatcher<K>) -> Result<Vec<Arc<K>>, RunFailure> {
    let mut page = source.list(ListRequest::new()).await?;
    let mut kept = Vec::new();
    while let Some(part) = page.next().await {
        if let ListPart::Item(item) = part? {
            kept.push(item.decode()?);
        }
    }
    Ok(kept)
}

/// Fails unless all objects were decoded, because the sides would not be comparable.
pub(super) fn check(found: usize, load: Load) -> Result<(), RunFailure> {
    if found as u64 == load.operations {
        Ok(())
    } else {
        Err(format!("decoded {found} of {} objects", load.operations).into())
    }
}

/// The fields that a controller that schedules or counts pods needs.
#[derive(Debug, Deserialize)]
struct NarrowPod {
    #[serde(rename = "metadata")]
    _metadata: NarrowMetadata,
    #[serde(rename = "spec")]
    _spec: NarrowSpec,
    #[serde(rename = "status")]
    _status: NarrowStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NarrowMetadata {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "namespace")]
    _namespace: String,
    #[serde(rename = "resourceVersion")]
    _resource_version: String,
    #[serde(rename = "labels")]
    _labels: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct NarrowSpec {
    #[serde(rename = "nodeName")]
    _node_name: String,
}

#[derive(Debug, Deserialize)]
struct NarrowStatus {
    #[serde(rename = "phase")]
    _phase: String,
}
