//! The pods of this suite. The Go side makes the same ones.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube_core::ObjectMeta;
use watchkeeper_informer::{Index, Store};

use crate::suite::RunFailure;

pub(super) const COUNT: u64 = 50_000;
pub(super) const NODES: u64 = 1000;
/// The index by node.
pub(super) const BY_NODE: &str = "node";
const NAMESPACES: u64 = 41;
/// A prime, so that every number is visited, far from its neighbours.
const STRIDE: u64 = 7919;

/// Returns the numbers below `count` in the order of the stride, in an endless cycle.
pub(super) fn strided(count: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |step: u64| step.wrapping_mul(STRIDE) % count)
}

pub(super) fn node(number: u64) -> String {
    format!("node-{:04}", number % NODES)
}

pub(super) fn key(number: u64) -> String {
    format!("namespace-{:03}/pod-name-{number:08}", number % NAMESPACES)
}

/// A pod in its `generation`, on a node.
pub(super) fn pod(number: u64, generation: u64, node: String) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("pod-name-{number:08}")),
            namespace: Some(format!("namespace-{:03}", number % NAMESPACES)),
            uid: Some(format!("uid-{number:08}")),
            resource_version: Some((generation * COUNT + number + 1).to_string()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { node_name: Some(node), ..PodSpec::default() }),
        ..Pod::default()
    }
}

/// The node a pod is on.
pub(super) fn node_of(pod: &Pod) -> Option<&String> {
    pod.spec.as_ref()?.node_name.as_ref()
}

/// All pods in a generation, each on its own node.
pub(super) fn pods(generation: u64) -> Vec<Arc<Pod>> {
    (0..COUNT).map(|number| Arc::new(pod(number, generation, node(number)))).collect()
}

/// An empty store that indexes by node too.
pub(super) fn empty_store() -> Result<(Store<Pod>, Index<Pod>), RunFailure> {
    let store = Store::new();
    let by_node = store.add_index(BY_NODE, |pod: &Pod| node_of(pod).cloned())?;
    Ok((store, by_node))
}

/// A store that holds these pods.
pub(super) fn filled_store(pods: &[Arc<Pod>]) -> Result<(Store<Pod>, Index<Pod>), RunFailure> {
    let (store, by_node) = empty_store()?;
    store.replace(pods.iter().cloned(), None)?;
    Ok((store, by_node))
}

/// Fails if the result is not the expected one.
pub(super) fn expect(what: &str, found: u64, wanted: u64) -> Result<(), RunFailure> {
    if found == wanted { Ok(()) } else { Err(format!("{found} {what}, want {wanted}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_those_of_the_peer() {
        let pod = pod(49_999, 1, node(49_999));
        assert_eq!(pod.metadata.resource_version.as_deref(), Some("100000"));
        assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("node-0999"));
        assert_eq!(key(49_999), "namespace-020/pod-name-00049999");
        let first: Vec<u64> = strided(COUNT).take(8).collect();
        assert_eq!(first, [0, 7919, 15838, 23757, 31676, 39595, 47514, 5433]);
    }
}
