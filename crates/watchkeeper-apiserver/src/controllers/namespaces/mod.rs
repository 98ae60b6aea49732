//! Deletion of namespaces: the content is deleted first.

mod conditions;
mod purge;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use self::{
    conditions::Remaining,
    purge::{Purge, PurgeProgress},
};
use super::{
    object::{Meta, ObjectRef},
    objects::{Objects, ServerEvent, WriteOutcome},
    queue::Queue,
    timestamp,
};
use crate::{kinds::GroupVersionKind, strategy::Part};

/// The entry of `spec.finalizers` that keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";
/// The delay before the next pass over a namespace, per remaining object. Without the delay, a namespace whose objects are
/// removed one by one would be scanned once for each object.
const PASS_DELAY_PER_OBJECT: Duration = Duration::from_micros(100);
/// The longest delay between passes.
const MAX_PASS_DELAY: Duration = Duration::from_secs(1);

/// The number of recently deleted namespaces that are remembered.
const ENDED: usize = 256;

/// The controller that deletes the content of namespaces that are being deleted. Reports the remaining content in their
/// status, and removes the finalizer once they are empty. Content is deleted as a client would delete it: finalizers and
/// grace periods are respected.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    terminating: BTreeSet<Box<str>>,
    /// Recently deleted namespaces. An object whose creation was in progress when its namespace was deleted is deleted
    /// afterwards.
    ended: VecDeque<Box<str>>,
    passes: BTreeMap<Box<str>, Purge>,
    resting_until: HashMap<Box<str>, Duration>,
    queue: Queue<Box<str>>,
}

impl Namespaces {
    /// Records a change.
    pub(crate) fn handle(&mut self, change: &ServerEvent) {
        match change {
            ServerEvent::Observed(object) if is_namespace(&object.object_ref.kind) => {
                self.observe_namespace(object);
            }
            ServerEvent::Deleted(object) if is_namespace(&object.object_ref.kind) => {
                self.terminating.remove(&object.object_ref.name);
                self.resting_until.remove(&object.object_ref.name);
                self.ended.push_back(object.object_ref.name.clone());
                self.ended.drain(..self.ended.len().saturating_sub(ENDED));
            }
            // No kubelet will report that the pods of the node have stopped.
            ServerEvent::Deleted(object) if object.object_ref.is_of("", "Node") => self.enqueue_all(),
            ServerEvent::Observed(object) if self.ended.contains(&object.object_ref.namespace) => {
                self.queue.add(object.object_ref.namespace.clone());
            }
            ServerEvent::Observed(object) | ServerEvent::Deleted(object) => {
                self.enqueue(&object.object_ref.namespace);
            }
            ServerEvent::Relisted(kind, objects) => {
                if is_namespace(kind) {
                    let existing: HashSet<&str> =
                        objects.iter().map(|object| &*object.object_ref.name).collect();
                    self.terminating.retain(|name| existing.contains(&**name));
                    for object in objects {
                        self.observe_namespace(object);
                    }
                }
                self.enqueue_all();
            }
            ServerEvent::Kinds => self.enqueue_all(),
            ServerEvent::CertificateAuthority(_) => {}
        }
    }

    /// Continues with a namespace that is due. Returns false if none is due.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(name) = self.queue.pop(now) else { return false };
        let object_ref = ObjectRef::new("", "v1", "Namespace", "", &name);
        let going = self.passes.remove(&name);
        let found = objects.read(&object_ref);
        if found.is_none() && self.ended.contains(&name) {
            self.sweep(name, going, objects);
            return true;
        }
        let Some(namespace) = found.filter(is_terminating) else {
            self.queue.forget(&name);
            return true;
        };
        let pass = match going {
            Some(pass) => pass,
            None => match mark_terminating(&object_ref, &namespace, objects) {
                Some(WriteOutcome::Failed) => {
                    self.queue.retry(name, now);
                    return true;
                }
                // The write of the mark enqueues the namespace again.
                Some(WriteOutcome::Done | WriteOutcome::Absent) => return true,
                None => Purge::new(&name, objects),
            },
        };
        match pass.step(objects) {
            PurgeProgress::InProgress(pass) => {
                self.passes.insert(name.clone(), pass);
                self.queue.add(name);
            }
            PurgeProgress::Finished(remaining, next_check) => {
                if let Some(wait) = next_check.and_then(|at| at.duration_since(objects.now()).ok()) {
                    self.queue.add_at(name.clone(), now + wait);
                }
                self.finish(name, &object_ref, namespace, &remaining, now, objects);
            }
        }
        true
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    /// Deletes objects that were created in a namespace while it was deleted.
    fn sweep(&mut self, name: Box<str>, going: Option<Purge>, objects: &impl Objects) {
        match going.unwrap_or_else(|| Purge::new(&name, objects)).step(objects) {
            PurgeProgress::InProgress(pass) => {
                self.passes.insert(name.clone(), pass);
                self.queue.add(name);
            }
            PurgeProgress::Finished(..) => self.queue.forget(&name),
        }
    }

    fn observe_namespace(&mut self, namespace: &Meta) {
        self.ended.retain(|name| *name != namespace.object_ref.name);
        if namespace.is_being_deleted() {
            self.terminating.insert(namespace.object_ref.name.clone());
            self.enqueue(&namespace.object_ref.name);
        }
    }

    fn enqueue(&mut self, namespace: &str) {
        let Some(name) = self.terminating.get(namespace) else { return };
        match self.resting_until.get(name) {
            Some(&until) => self.queue.add_at(name.clone(), until),
            None => self.queue.add(name.clone()),
        }
    }

    fn enqueue_all(&mut self) {
        for name in self.terminating.clone() {
            self.enqueue(&name);
        }
    }

    fn finish(
        &mut self,
        name: Box<str>,
        object_ref: &ObjectRef,
        namespace: Value,
        remaining: &Remaining,
        now: Duration,
        objects: &impl Objects,
    ) {
        let delay = PASS_DELAY_PER_OBJECT
            .saturating_mul(remaining.count().try_into().unwrap_or(u32::MAX))
            .min(MAX_PASS_DELAY);
        self.resting_until.insert(name.clone(), now + delay);
        let is_empty = remaining.count() == 0 && remaining.refusals.is_empty();
        let mut written = report(object_ref, namespace, remaining, objects);
        if is_empty && written != Some(WriteOutcome::Failed) {
            written = finalize(object_ref, objects);
        }
        match written {
            Some(WriteOutcome::Failed) => self.queue.retry(name, now),
            _ if !remaining.refusals.is_empty() => self.queue.retry(name, now),
            _ => self.queue.forget(&name),
        }
    }
}

fn is_namespace(kind: &GroupVersionKind) -> bool {
    kind.group.is_empty() && kind.kind == "Namespace"
}

/// Returns whether the namespace is being deleted and still has a finalizer.
fn is_terminating(namespace: &Value) -> bool {
    namespace.pointer("/metadata/deletionTimestamp").is_some()
        && namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
}

fn mark_terminating(
    object_ref: &ObjectRef,
    namespace: &Value,
    objects: &impl Objects,
) -> Option<WriteOutcome> {
    if namespace.pointer("/status/phase").is_some_and(|phase| phase == "Terminating") {
        return None;
    }
    let mut namespace = namespace.clone();
    status_of(&mut namespace)?.insert("phase".to_owned(), "Terminating".into());
    Some(WriteOutcome::of(objects.replace(object_ref, Part::Subresource("status"), namespace), object_ref))
}

/// Writes the remaining content into the conditions. Returns none if they are already up to date.
fn report(
    object_ref: &ObjectRef,
    mut namespace: Value,
    remaining: &Remaining,
    objects: &impl Objects,
) -> Option<WriteOutcome> {
    let status = status_of(&mut namespace)?;
    let conditions = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut()?;
    let is_unset = conditions.is_empty() && remaining == &Remaining::default();
    if is_unset || !conditions::update(conditions, remaining, &timestamp::format(objects.now())) {
        return None;
    }
    Some(WriteOutcome::of(objects.replace(object_ref, Part::Subresource("status"), namespace), object_ref))
}

/// Removes the finalizer of an empty namespace.
fn finalize(object_ref: &ObjectRef, objects: &impl Objects) -> Option<WriteOutcome> {
    let mut namespace = objects.read(object_ref).filter(is_terminating)?;
    let finalizers = namespace.pointer_mut("/spec/finalizers")?.as_array_mut()?;
    let before = finalizers.len();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if finalizers.len() == before {
        return None;
    }
    Some(WriteOutcome::of(objects.replace(object_ref, Part::Subresource("finalize"), namespace), object_ref))
}

fn status_of(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.as_object_mut()?.entry("status").or_insert_with(|| json!({})).as_object_mut()
}
