//! Garbage collection: objects are deleted when their owners no longer exist.

mod edges;
mod graph;
#[cfg(test)]
mod model;

use std::{collections::HashSet, time::Duration};

use serde_json::Value;

use self::graph::{Action, ActionResult, Graph, ObjectOperation};
pub(crate) use self::graph::{LiveReads, OwnerLookup};
use super::{
    object::{Meta, Uid},
    objects::{Deletion, Objects, ServerEvent, WriteOutcome},
};
use crate::{kinds::GroupVersionKind, status::ApiError, strategy::Part};

/// The controller that executes the actions of a [`Graph`] on the server. Each step checks one object.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    graph: Graph,
}

impl Collector {
    /// Records a change.
    pub(crate) fn handle(&mut self, change: &ServerEvent) {
        match change {
            ServerEvent::Observed(object) if is_collected(&object.object_ref.kind) => {
                self.graph.observe(object.clone());
            }
            ServerEvent::Deleted(object) => self.graph.forget(&object.uid),
            ServerEvent::Relisted(kind, objects) if is_collected(kind) => {
                self.graph.relist(kind, objects.clone());
            }
            ServerEvent::Observed(_) | ServerEvent::Relisted(..) | ServerEvent::CertificateAuthority(_) => {}
            ServerEvent::Kinds => self.graph.kinds_changed(),
        }
    }

    /// Checks the next object that is due and executes the resulting action. Returns false if none is due.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(step) = self.graph.step(now, objects) else { return false };
        if let Some(action) = step.action {
            let outcome = match WriteOutcome::of(execute(&action, objects), &action.object_ref) {
                WriteOutcome::Done => ActionResult::Done,
                WriteOutcome::Absent => ActionResult::Absent,
                WriteOutcome::Failed => ActionResult::Failed,
            };
            self.graph.report(step.task, &action.operation, outcome, now);
        }
        true
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.graph.next_due()
    }
}

/// Returns whether objects of `kind` are garbage collected. Events are excluded: they are numerous and expire after an
/// hour.
fn is_collected(kind: &GroupVersionKind) -> bool {
    !(kind.kind == "Event" && matches!(kind.group.as_str(), "" | "events.k8s.io"))
}

fn execute(action: &Action, objects: &impl Objects) -> Result<(), ApiError> {
    let edit: &dyn Fn(&mut Value) = match &action.operation {
        ObjectOperation::Delete(propagation) => {
            let deletion = Deletion {
                uid: action.uid.clone(),
                resource_version: Some(action.resource_version.clone()),
                propagation: *propagation,
                is_immediate: false,
            };
            return objects.delete(&action.object_ref, &deletion);
        }
        ObjectOperation::RemoveOwners(owners) => &|metadata| remove_owners(metadata, owners),
        ObjectOperation::UnblockOwners => &unblock_owners,
        ObjectOperation::RemoveFinalizer(finalizer) => &|metadata| remove_finalizer(metadata, finalizer),
    };
    let Some(mut object) = objects.read(&action.object_ref) else { return Ok(()) };
    let is_unchanged = Meta::of(&action.object_ref.kind, &object)
        .is_some_and(|meta| meta.uid == action.uid && meta.resource_version == action.resource_version);
    if !is_unchanged {
        return Err(ApiError::new(409, "Conflict", "the object has changed since it was judged"));
    }
    if let Some(metadata) = object.get_mut("metadata") {
        edit(metadata);
    }
    objects.replace(&action.object_ref, Part::Main, object)
}

fn owner_references(metadata: &mut Value) -> Option<&mut Vec<Value>> {
    metadata.get_mut("ownerReferences")?.as_array_mut()
}

fn remove_owners(metadata: &mut Value, owners: &[Uid]) {
    let Some(references) = owner_references(metadata) else { return };
    let owners: HashSet<&str> = owners.iter().map(|owner| &**owner).collect();
    references.retain(|reference| {
        let uid = reference.get("uid").and_then(Value::as_str);
        !uid.is_some_and(|uid| owners.contains(uid))
    });
    if references.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("ownerReferences");
    }
}

fn unblock_owners(metadata: &mut Value) {
    for reference in owner_references(metadata).into_iter().flatten() {
        if let Some(blocks) = reference.get_mut("blockOwnerDeletion") {
            *blocks = false.into();
        }
    }
}

/// Removes `finalizer` from `metadata`.
pub(super) fn remove_finalizer(metadata: &mut Value, finalizer: &str) {
    let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else { return };
    finalizers.retain(|one| one.as_str() != Some(finalizer));
    if finalizers.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("finalizers");
    }
}
