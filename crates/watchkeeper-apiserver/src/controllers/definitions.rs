//! Deletion of custom resource definitions: the objects are deleted first.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    garbage::remove_finalizer,
    object::{Meta, ObjectRef},
    objects::{Deletion, ListableKind, Objects, ServerEvent, WriteOutcome},
    queue::Queue,
    timestamp,
};
use crate::{
    crd::{CLEANUP_FINALIZER, is_established},
    kinds::GroupVersionKind,
    rest::Propagation,
    strategy::Part,
};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";
/// The number of objects that one step deletes.
const OBJECTS_A_STEP: usize = 64;

/// A definition that is being deleted.
#[derive(Debug, Default)]
struct TerminatingDefinition {
    /// The group and name of the defined kind; none until the definition has been read.
    defined: Option<(String, String)>,
    /// The objects that remain to be deleted; none until they have been listed.
    pass: Option<VecDeque<Meta>>,
}

/// The controller that deletes the objects of definitions that are being deleted. Reports the progress in the status of the
/// definition, and removes its finalizer once no objects are left. Finalizers of the objects are respected.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    ending: BTreeMap<Box<str>, TerminatingDefinition>,
    queue: Queue<Box<str>>,
}

impl Definitions {
    /// Records a change.
    pub(crate) fn handle(&mut self, change: &ServerEvent) {
        match change {
            ServerEvent::Observed(object) if object.object_ref.is_of(GROUP, KIND) => {
                self.observe_definition(object);
            }
            ServerEvent::Deleted(object) if object.object_ref.is_of(GROUP, KIND) => {
                self.ending.remove(&object.object_ref.name);
            }
            ServerEvent::Deleted(object) => self.enqueue_definition_of(&object.object_ref.kind),
            ServerEvent::Relisted(kind, objects) if kind.group == GROUP && kind.kind == KIND => {
                let existing: HashSet<&str> = objects.iter().map(|object| &*object.object_ref.name).collect();
                self.ending.retain(|name, _| existing.contains(&**name));
                for object in objects {
                    self.observe_definition(object);
                }
            }
            ServerEvent::Relisted(kind, _) => self.enqueue_definition_of(kind),
            ServerEvent::Observed(_) | ServerEvent::Kinds | ServerEvent::CertificateAuthority(_) => {}
        }
    }

    /// Continues with a definition that is due. Returns false if none is due.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(name) = self.queue.pop(now) else { return false };
        let Some(ending) = self.ending.get_mut(&name) else {
            self.queue.forget(&name);
            return true;
        };
        let object_ref = ObjectRef::new(GROUP, "v1", KIND, "", &name);
        let is_terminating = |definition: &Value| {
            Meta::of(&object_ref.kind, definition).is_some_and(|meta| is_terminating(&meta))
        };
        let Some(definition) = objects.read(&object_ref).filter(is_terminating) else {
            self.ending.remove(&name);
            self.queue.forget(&name);
            return true;
        };
        match ending.step(&object_ref, definition, objects) {
            DeletionProgress::InProgress => self.queue.add(name),
            DeletionProgress::Waiting => self.queue.forget(&name),
            DeletionProgress::Failed => self.queue.retry(name, now),
        }
        true
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    fn observe_definition(&mut self, definition: &Meta) {
        if is_terminating(definition) {
            let name = &definition.object_ref.name;
            if !self.ending.contains_key(name) {
                self.ending.insert(name.clone(), TerminatingDefinition::default());
                self.queue.add(name.clone());
            }
        }
    }

    fn enqueue_definition_of(&mut self, kind: &GroupVersionKind) {
        for (name, ending) in &self.ending {
            let defines =
                ending.defined.as_ref().is_some_and(|(group, of)| *group == kind.group && *of == kind.kind);
            if defines && ending.pass.is_none() {
                self.queue.add(name.clone());
            }
        }
    }
}

/// The progress of the deletion of a definition.
enum DeletionProgress {
    /// More objects remain to be deleted.
    InProgress,
    /// The deletion waits for finalizers of others.
    Waiting,
    /// A write failed and must be retried.
    Failed,
}

impl TerminatingDefinition {
    fn step(
        &mut self,
        object_ref: &ObjectRef,
        definition: Value,
        objects: &impl Objects,
    ) -> DeletionProgress {
        let text =
            |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let defined = self.defined.insert((text("/spec/group"), text("/spec/names/kind")));
        let served = objects
            .kinds()
            .into_iter()
            .find(|served| (&served.kind.group, &served.kind.kind) == (&defined.0, &defined.1));
        let Some(served) = served.filter(|_| is_established(&definition)) else {
            let condition = ("False", "NeverEstablished", "resource was never established");
            return finish(object_ref, definition, condition, objects);
        };
        if self.pass.is_none() {
            let condition = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
            match write_condition(object_ref, definition.clone(), condition, objects) {
                Some(WriteOutcome::Done) => return DeletionProgress::InProgress,
                Some(WriteOutcome::Absent) => return DeletionProgress::Waiting,
                Some(WriteOutcome::Failed) => return DeletionProgress::Failed,
                None => self.pass = Some(objects.list(&served.kind, None).into()),
            }
        }
        self.delete_some(object_ref, definition, &served, objects)
    }

    fn delete_some(
        &mut self,
        object_ref: &ObjectRef,
        definition: Value,
        served: &ListableKind,
        objects: &impl Objects,
    ) -> DeletionProgress {
        let mut refusal = None;
        if let Some(pass) = &mut self.pass {
            for item in pass.drain(..pass.len().min(OBJECTS_A_STEP)).filter(|item| !item.is_being_deleted()) {
                let deletion = Deletion {
                    uid: item.uid.clone(),
                    resource_version: None,
                    propagation: Propagation::Background,
                    is_immediate: false,
                };
                match objects.delete(&item.object_ref, &deletion) {
                    Err(error) if error.code != 404 && error.reason != "Conflict" => {
                        refusal = Some(error.message);
                    }
                    _ => {}
                }
            }
            if !pass.is_empty() && refusal.is_none() {
                return DeletionProgress::InProgress;
            }
        }
        self.pass = None;
        if let Some(refusal) = refusal {
            let message = format!("could not issue all deletes: {refusal}");
            let _ = write_condition(
                object_ref,
                definition,
                ("True", "InstanceDeletionFailed", &message),
                objects,
            );
            return DeletionProgress::Failed;
        }
        if objects.count(&served.kind) == 0 {
            let condition = ("False", "InstanceDeletionCompleted", "removed all instances");
            return finish(object_ref, definition, condition, objects);
        }
        DeletionProgress::Waiting
    }
}

fn is_terminating(definition: &Meta) -> bool {
    definition.is_being_deleted() && definition.has_finalizer(CLEANUP_FINALIZER)
}

/// Writes the final condition to the status, then removes the finalizer of the definition.
fn finish(
    object_ref: &ObjectRef,
    definition: Value,
    condition: (&str, &str, &str),
    objects: &impl Objects,
) -> DeletionProgress {
    if write_condition(object_ref, definition, condition, objects) == Some(WriteOutcome::Failed) {
        return DeletionProgress::Failed;
    }
    let Some(mut definition) = objects.read(object_ref) else { return DeletionProgress::Waiting };
    if let Some(metadata) = definition.get_mut("metadata") {
        remove_finalizer(metadata, CLEANUP_FINALIZER);
    }
    match WriteOutcome::of(objects.replace(object_ref, Part::Main, definition), object_ref) {
        WriteOutcome::Failed => DeletionProgress::Failed,
        WriteOutcome::Done | WriteOutcome::Absent => DeletionProgress::Waiting,
    }
}

/// Writes the condition `Terminating`. Returns none if the condition is already up to date.
fn write_condition(
    object_ref: &ObjectRef,
    mut definition: Value,
    (status, reason, message): (&str, &str, &str),
    objects: &impl Objects,
) -> Option<WriteOutcome> {
    let members = definition.as_object_mut()?.entry("status").or_insert_with(|| json!({})).as_object_mut()?;
    let conditions = members.entry("conditions").or_insert_with(|| json!([])).as_array_mut()?;
    let known =
        conditions.iter().position(|known| known.get("type").is_some_and(|kind| kind == "Terminating"));
    let old = known.and_then(|index| conditions.get(index)).cloned().unwrap_or_default();
    let is_equal = |member: &str, text: &str| old.get(member).is_some_and(|value| value == text);
    if is_equal("status", status) && is_equal("reason", reason) && is_equal("message", message) {
        return None;
    }
    let since = old.get("lastTransitionTime").filter(|_| is_equal("status", status)).cloned();
    let condition = json!({
        "type": "Terminating",
        "status": status,
        "lastTransitionTime": since.unwrap_or_else(|| timestamp::format(objects.now()).into()),
        "reason": reason,
        "message": message,
    });
    match known.and_then(|index| conditions.get_mut(index)) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    Some(WriteOutcome::of(objects.replace(object_ref, Part::Subresource("status"), definition), object_ref))
}
