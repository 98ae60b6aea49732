//! Our side of the rows that compare time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_informer::{CachedRef, Index, Store};

use super::pods::{self, COUNT, NODES, expect, filled_store};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Gets a borrowed pod without reading it, as client-go's indexer returns it.
pub(super) fn get(load: Load) -> Result<Measurement, RunFailure> {
    gets(load, |store, key| store.snapshot().get(key).is_some())
}

/// Gets a borrowed pod and reads it.
pub(super) fn get_and_look(load: Load) -> Result<Measurement, RunFailure> {
    gets(load, |store, key| store.snapshot().get(key).is_some_and(|pod| is_versioned(&pod)))
}

/// Gets a shared pod, reads it and drops it.
pub(super) fn get_shared(load: Load) -> Result<Measurement, RunFailure> {
    gets(load, |store, key| store.get(key).is_some_and(|pod| is_versioned(&pod)))
}

fn gets(load: Load, is_there: impl Fn(&Store<Pod>, &str) -> bool) -> Result<Measurement, RunFailure> {
    let pods = pods::pods(0);
    let (store, _) = filled_store(&pods)?;
    let keys: Vec<String> = (0..COUNT).map(pods::key).collect();
    let visited: Vec<usize> = indexes(COUNT)?;
    let meter = Meter::start();
    let found = in_turn(&visited, load).filter(|&&at| is_there(&store, &keys[at])).count();
    let measured = meter.stop(load.operations);
    expect("pods found", found as u64, load.operations)?;
    Ok(measured)
}

fn is_versioned(pod: &Pod) -> bool {
    pod.metadata.resource_version.is_some()
}

/// Gets the pods of a node as a list of borrowed pods, as client-go's indexer returns them.
pub(super) fn by_index(load: Load) -> Result<Measurement, RunFailure> {
    by_indexes(load, |store, _, node| {
        let snapshot = store.snapshot();
        let pods: Vec<CachedRef<'_, Pod>> = snapshot.by_index(pods::BY_NODE, node)?.collect();
        Ok(pods.len())
    })
}

/// Gets the pods of a node as a list of shared pods.
pub(super) fn by_index_shared(load: Load) -> Result<Measurement, RunFailure> {
    by_indexes(load, |_, by_node, node| Ok(by_node.get(node).len()))
}

fn by_indexes(
    load: Load,
    count: impl Fn(&Store<Pod>, &Index<Pod>, &str) -> Result<usize, RunFailure>,
) -> Result<Measurement, RunFailure> {
    let pods = pods::pods(0);
    let (store, by_node) = filled_store(&pods)?;
    let nodes: Vec<String> = (0..NODES).map(pods::node).collect();
    let visited: Vec<usize> = indexes(NODES)?;
    let mut found = 0;
    let meter = Meter::start();
    for &at in in_turn(&visited, load) {
        found += count(&store, &by_node, &nodes[at])?;
    }
    let measured = meter.stop(load.operations);
    expect("pods found", found as u64, load.operations * (COUNT / NODES))?;
    Ok(measured)
}

/// Stores pods of two generations in turn.
pub(super) fn update(load: Load) -> Result<Measurement, RunFailure> {
    let generations = [pods::pods(0), pods::pods(1)];
    updates(load, &generations)
}

/// Stores pods of two generations in turn, the second on other nodes.
pub(super) fn move_to_other_node(load: Load) -> Result<Measurement, RunFailure> {
    let moved = (0..COUNT).map(|number| Arc::new(pods::pod(number, 1, pods::node(number + 1)))).collect();
    updates(load, &[pods::pods(0), moved])
}

fn updates(load: Load, generations: &[Vec<Arc<Pod>>; 2]) -> Result<Measurement, RunFailure> {
    let (store, _) = filled_store(&generations[0])?;
    let visited: Vec<usize> = indexes(COUNT)?;
    let rounds = generations.iter().rev().cycle().flat_map(|pods| visited.iter().map(|&at| &pods[at]));
    let mut replaced = 0;
    let meter = Meter::start();
    for pod in rounds.take(usize::try_from(load.operations)?) {
        replaced += u64::from(store.update(Arc::clone(pod))?.is_some());
    }
    let measured = meter.stop(load.operations);
    expect("pods replaced", replaced, load.operations)?;
    Ok(measured)
}

pub(super) fn replace(load: Load) -> Result<Measurement, RunFailure> {
    let pods = pods::pods(0);
    let (store, _) = pods::empty_store()?;
    let pods = pods.get(..usize::try_from(load.operations)?.min(pods.len())).unwrap_or_default();
    let meter = Meter::start();
    store.replace(pods.iter().cloned(), None)?;
    let measured = meter.stop(pods.len() as u64);
    expect("pods stored", store.len() as u64, pods.len() as u64)?;
    Ok(measured)
}

/// Scans a snapshot of all pods for those of a node.
pub(super) fn scan(load: Load) -> Result<Measurement, RunFailure> {
    let pods = pods::pods(0);
    let (store, _) = filled_store(&pods)?;
    let nodes: Vec<String> = (0..NODES).map(pods::node).collect();
    let visited: Vec<usize> = indexes(NODES)?;
    let meter = Meter::start();
    let of_node = |&at: &usize| {
        let snapshot = store.snapshot();
        let is_there = |pod: &Pod| pods::node_of(pod) == Some(&nodes[at]);
        snapshot.filter(is_there).len()
    };
    let found: usize = in_turn(&visited, load).map(of_node).sum();
    let measured = meter.stop(load.operations);
    expect("pods found", found as u64, load.operations * (COUNT / NODES))?;
    Ok(measured)
}

fn indexes(count: u64) -> Result<Vec<usize>, RunFailure> {
    let visited = pods::strided(count).take(usize::try_from(count)?);
    Ok(visited.map(usize::try_from).collect::<Result<_, _>>()?)
}

fn in_turn<T>(visited: &[T], load: Load) -> impl Iterator<Item = &T> {
    visited.iter().cycle().take(usize::try_from(load.operations).unwrap_or(usize::MAX))
}
