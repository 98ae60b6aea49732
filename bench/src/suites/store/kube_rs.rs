//! kube-rs's side: its reflector store, filled as its reflector fills it.

use k8s_openapi::api::core::v1::Pod;
use kube_runtime::reflector;
use kube_runtime::watcher::Event;

use super::pods::{self, COUNT, NODES, expect};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Scans all pods for those of a node, as users of kube-rs do.
pub(super) fn scan(load: Load) -> Result<Measurement, RunFailure> {
    let (reader, mut writer) = reflector::store::<Pod>();
    writer.apply_watcher_event(&Event::Init);
    for number in 0..COUNT {
        writer.apply_watcher_event(&Event::InitApply(pods::pod(number, 0, pods::node(number))));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let nodes: Vec<String> = (0..NODES).map(pods::node).collect();
    let mut found = 0;
    let meter = Meter::start();
    for at in pods::strided(NODES).take(usize::try_from(load.operations)?) {
        let node = &nodes[usize::try_from(at)?];
        let is_there = |pod: &Pod| pods::node_of(pod) == Some(node);
        found += reader.state_filter(is_there).len() as u64;
    }
    let measured = meter.stop(load.operations);
    expect("pods found", found, load.operations * (COUNT / NODES))?;
    Ok(measured)
}
