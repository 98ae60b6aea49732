//! Deletion of custom resource definitions: the objects are deleted first.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    garbage::{Propagation, remove_finalizer},
    object::{Meta, Place},
    objects::{Change, Deletion, Objects, Served, Written},
    queue::Queue,
    timestamp,
};
use crate::{
    crd::{CLEANUP_FINALIZER, is_established},
    kinds::GroupVersionKind,
    strategy::Part,
};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";
/// The number of objects that one step deletes.
const OBJECTS_A_STEP: usize = 64;

/// A definition that is being deleted.
#[derive(Debug, Default)]
struct Ending {
    /// The group and name of the defined kind; none until the definition has been read.
    defined: Option<(String, String)>,
    /// The objects that remain to be deleted; none until they have been listed.
    pass: Option<VecDeque<Meta>>,
}

/// The controller that deletes the objects of definitions that are being deleted. Reports the progress in the status of the
/// definition, and removes its finalizer once no objects are left. Finalizers of the objects are respected.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    ending: BTreeMap<Box<str>, Ending>,
    queue: Queue<Box<str>>,
}

impl Definitions {
    /// Records a change.
    pub(crate) fn take(&mut self, change: &Change) {
        match change {
            Change::Seen(object) if object.place.is_of(GROUP, KIND) => self.take_definition(object),
            Change::Gone(object) if object.place.is_of(GROUP, KIND) => {
                self.ending.remove(&object.place.name);
            }
            Change::Gone(object) => self.enqueue_definition_of(&object.place.kind),
            Change::Relisted(kind, objects) if kind.group == GROUP && kind.kind == KIND => {
                let there: HashSet<&str> = objects.iter().map(|object| &*object.place.name).collect();
                self.ending.retain(|name, _| there.contains(&**name));
                for object in objects {
                    self.take_definition(object);
                }
            }
            Change::Relisted(kind, _) => self.enqueue_definition_of(kind),
            Change::Seen(_) | Change::Kinds | Change::Trusted(_) => {}
        }
    }

    /// Continues with a definition that is due. Returns false if none is due.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(name) = self.queue.pop(now) else { return false };
        let Some(ending) = self.ending.get_mut(&name) else {
            self.queue.forget(&name);
            return true;
        };
        let place = Place::new(GROUP, "v1", KIND, "", &name);
        let is_ending =
            |definition: &Value| Meta::of(&place.kind, definition).is_some_and(|meta| is_ending(&meta));
        let Some(definition) = objects.read(&place).filter(is_ending) else {
            self.ending.remove(&name);
            self.queue.forget(&name);
            return true;
        };
        match ending.step(&place, definition, objects) {
            Progress::Going => self.queue.add(name),
            Progress::Waiting => self.queue.forget(&name),
            Progress::Failed => self.queue.retry(name, now),
        }
        true
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    fn take_definition(&mut self, definition: &Meta) {
        if is_ending(definition) {
            let name = &definition.place.name;
            if !self.ending.contains_key(name) {
                self.ending.insert(name.clone(), Ending::default());
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
enum Progress {
    /// More objects remain to be deleted.
    Going,
    /// The deletion waits for finalizers of others.
    Waiting,
    /// A write failed and must be retried.
    Failed,
}

impl Ending {
    fn step(&mut self, place: &Place, definition: Value, objects: &impl Objects) -> Progress {
        let text =
            |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let defined = self.defined.insert((text("/spec/group"), text("/spec/names/kind")));
        let served = objects
            .kinds()
            .into_iter()
            .find(|served| (&served.kind.group, &served.kind.kind) == (&defined.0, &defined.1));
        let Some(served) = served.filter(|_| is_established(&definition)) else {
            let condition = ("False", "NeverEstablished", "resource was never established");
            return finish(place, definition, condition, objects);
        };
        if self.pass.is_none() {
            let condition = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
            match write_condition(place, definition.clone(), condition, objects) {
                Some(Written::Done) => return Progress::Going,
                Some(Written::Absent) => return Progress::Waiting,
                Some(Written::Failed) => return Progress::Failed,
                None => self.pass = Some(objects.list(&served.kind, None).into()),
            }
        }
        self.delete_some(place, definition, &served, objects)
    }

    fn delete_some(
        &mut self,
        place: &Place,
        definition: Value,
        served: &Served,
        objects: &impl Objects,
    ) -> Progress {
        let mut refusal = None;
        if let Some(pass) = &mut self.pass {
            for item in pass.drain(..pass.len().min(OBJECTS_A_STEP)).filter(|item| !item.is_being_deleted()) {
                let deletion = Deletion {
                    uid: item.uid.clone(),
                    resource_version: None,
                    propagation: Propagation::Background,
                    is_immediate: false,
                };
                match objects.delete(&item.place, &deletion) {
                    Err(error) if error.code != 404 && error.reason != "Conflict" => {
                        refusal = Some(error.message);
                    }
                    _ => {}
                }
            }
            if !pass.is_empty() && refusal.is_none() {
                return Progress::Going;
            }
        }
        self.pass = None;
        if let Some(refusal) = refusal {
            let message = format!("could not issue all deletes: {refusal}");
            let _ = write_condition(place, definition, ("True", "InstanceDeletionFailed", &message), objects);
            return Progress::Failed;
        }
        if objects.count(&served.kind) == 0 {
            let condition = ("False", "InstanceDeletionCompleted", "removed all instances");
            return finish(place, definition, condition, objects);
        }
        Progress::Waiting
    }
}

fn is_ending(definition: &Meta) -> bool {
    definition.is_being_deleted() && definition.has_finalizer(CLEANUP_FINALIZER)
}

/// Writes the final condition to the status, then removes the finalizer of the definition.
fn finish(
    place: &Place,
    definition: Value,
    condition: (&str, &str, &str),
    objects: &impl Objects,
) -> Progress {
    if write_condition(place, definition, condition, objects) == Some(Written::Failed) {
        return Progress::Failed;
    }
    let Some(mut definition) = objects.read(place) else { return Progress::Waiting };
    if let Some(metadata) = definition.get_mut("metadata") {
        remove_finalizer(metadata, CLEANUP_FINALIZER);
    }
    match Written::of(objects.replace(place, Part::Main, definition), place) {
        Written::Failed => Progress::Failed,
        Written::Done | Written::Absent => Progress::Waiting,
    }
}

/// Writes the condition `Terminating`. Returns none if the condition is already up to date.
fn write_condition(
    place: &Place,
    mut definition: Value,
    (status, reason, message): (&str, &str, &str),
    objects: &impl Objects,
) -> Option<Written> {
    let members = definition.as_object_mut()?.entry("status").or_insert_with(|| json!({})).as_object_mut()?;
    let conditions = members.entry("conditions").or_insert_with(|| json!([])).as_array_mut()?;
    let known =
        conditions.iter().position(|known| known.get("type").is_some_and(|kind| kind == "Terminating"));
    let old = known.and_then(|place| conditions.get(place)).cloned().unwrap_or_default();
    let says = |member: &str, text: &str| old.get(member).is_some_and(|value| value == text);
    if says("status", status) && says("reason", reason) && says("message", message) {
        return None;
    }
    let since = old.get("lastTransitionTime").filter(|_| says("status", status)).cloned();
    let condition = json!({
        "type": "Terminating",
        "status": status,
        "lastTransitionTime": since.unwrap_or_else(|| timestamp::format(objects.now()).into()),
        "reason": reason,
        "message": message,
    });
    match known.and_then(|place| conditions.get_mut(place)) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    Some(Written::of(objects.replace(place, Part::Subresource("status"), definition), place))
}
