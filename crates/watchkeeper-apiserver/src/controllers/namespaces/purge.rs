//! One pass over the content of a namespace.

use std::{collections::VecDeque, time::SystemTime};

use serde_json::Value;

use super::conditions::Remaining;
use crate::{
    controllers::{
        object::{Meta, ObjectRef},
        objects::{Deletion, ListableKind, Objects},
        timestamp,
    },
    rest::Propagation,
};

/// The number of objects that one step checks, so that a full namespace does not delay other work.
const OBJECTS_A_STEP: usize = 64;

/// A pass that deletes all objects in a namespace, pods first, and collects what remains.
#[derive(Debug)]
pub(super) struct Purge {
    namespace: Box<str>,
    kinds: VecDeque<ListableKind>,
    /// The current kind, with its objects that are not yet checked.
    current: Option<(ListableKind, VecDeque<Meta>)>,
    remaining: Remaining,
    /// The earliest time at which a remaining object is worth another check, if that depends on time.
    next_check: Option<SystemTime>,
}

/// The progress of a pass.
#[derive(Debug)]
pub(super) enum PurgeProgress {
    /// More objects remain to be checked.
    InProgress(Purge),
    /// The pass is complete. Carries the remaining content and the time of the next check.
    Finished(Remaining, Option<SystemTime>),
}

impl Purge {
    /// Creates a pass over all objects in `namespace`.
    pub(super) fn new(namespace: &str, objects: &impl Objects) -> Self {
        let (pods, others): (Vec<_>, Vec<_>) =
            objects.kinds().into_iter().filter(|served| served.is_namespaced).partition(is_pods);
        Self {
            namespace: namespace.into(),
            kinds: pods.into_iter().chain(others).collect(),
            current: None,
            remaining: Remaining::default(),
            next_check: None,
        }
    }

    /// Checks some more objects.
    pub(super) fn step(mut self, objects: &impl Objects) -> PurgeProgress {
        let mut left = OBJECTS_A_STEP;
        loop {
            if let Some((served, items)) = &mut self.current {
                while let Some(item) = items.pop_front() {
                    if left == 0 {
                        items.push_front(item);
                        return PurgeProgress::InProgress(self);
                    }
                    left -= 1;
                    let refusal = delete(served, &item, &mut self.next_check, objects);
                    self.remaining.refusals.extend(refusal);
                }
            }
            if let Some((served, _)) = self.current.take() {
                let stays = self.count(&served, objects);
                // Objects that pods need (service accounts, volumes) are kept until all pods are deleted.
                if stays > 0 && is_pods(&served) {
                    return PurgeProgress::Finished(self.remaining, self.next_check);
                }
            }
            let Some(served) = self.kinds.pop_front() else {
                return PurgeProgress::Finished(self.remaining, self.next_check);
            };
            let items: VecDeque<_> = objects.list(&served.kind, Some(&self.namespace)).into();
            if !items.is_empty() {
                self.current = Some((served, items));
            }
        }
    }

    fn count(&mut self, served: &ListableKind, objects: &impl Objects) -> usize {
        let items = objects.list(&served.kind, Some(&self.namespace));
        if items.is_empty() {
            return 0;
        }
        for finalizer in items.iter().flat_map(|item| &item.finalizers) {
            *self.remaining.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        *self.remaining.objects.entry(format!("{}.{}", served.plural, served.kind.group)).or_default() +=
            items.len();
        items.len()
    }
}

fn is_pods(served: &ListableKind) -> bool {
    served.kind.group.is_empty() && &*served.plural == "pods"
}

/// Deletes `item`. Returns the reason if the deletion was rejected.
fn delete(
    served: &ListableKind,
    item: &Meta,
    next_check: &mut Option<SystemTime>,
    objects: &impl Objects,
) -> Option<String> {
    let mut is_immediate = false;
    if let Some(deadline) = &item.deletion_timestamp {
        if !is_pods(served) || !item.finalizers.is_empty() || !is_abandoned(item, objects) {
            return None;
        }
        let deadline = timestamp::parse(deadline)?;
        if deadline > objects.now() {
            *next_check = Some(next_check.map_or(deadline, |known| known.min(deadline)));
            return None;
        }
        is_immediate = true;
    }
    let deletion = Deletion {
        uid: item.uid.clone(),
        resource_version: None,
        propagation: Propagation::Background,
        is_immediate,
    };
    match objects.delete(&item.object_ref, &deletion) {
        Err(error) if error.code != 404 && error.reason != "Conflict" => Some(error.message),
        _ => None,
    }
}

/// Returns whether no kubelet will report that this pod has stopped: the pod has no node, or its node does not exist.
fn is_abandoned(pod: &Meta, objects: &impl Objects) -> bool {
    let Some(object) = objects.read(&pod.object_ref) else { return false };
    let node = object.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    node.is_empty() || objects.object(&ObjectRef::new("", "v1", "Node", "", node)).is_none()
}
