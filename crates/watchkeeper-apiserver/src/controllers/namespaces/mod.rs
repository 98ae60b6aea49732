//! Namespaces that end: everything in them goes first.

mod conditions;
mod purge;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use self::{
    conditions::Remaining,
    purge::{Progress, Purge},
};
use super::{
    object::{Meta, Place},
    objects::{Change, Objects, Written},
    queue::Queue,
    timestamp,
};
use crate::{kinds::GroupVersionKind, strategy::Part};

/// The entry of `spec.finalizers` that keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";
/// For each object that stays, so long is not looked at its namespace again; otherwise a namespace whose objects go one
/// by one would be gone through once for each.
const REST_PER_OBJECT: Duration = Duration::from_micros(100);
/// No rest is longer.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// So many of the namespaces that ended last are remembered.
const ENDED: usize = 256;

/// Empties namespaces that are being deleted, says in their status what keeps them, and lets them go once they are
/// empty. Content goes as any client would delete it: its own finalizers and grace periods are respected.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    terminating: BTreeSet<Box<str>>,
    /// Namespaces that have ended not long ago. An object that was on its way into one when it ended is deleted after it.
    ended: VecDeque<Box<str>>,
    passes: BTreeMap<Box<str>, Purge>,
    resting_until: HashMap<Box<str>, Duration>,
    queue: Queue<Box<str>>,
}

impl Namespaces {
    /// Takes note of a change.
    pub(crate) fn take(&mut self, change: &Change) {
        match change {
            Change::Seen(object) if is_namespace(&object.place.kind) => self.take_namespace(object),
            Change::Gone(object) if is_namespace(&object.place.kind) => {
                self.terminating.remove(&object.place.name);
                self.resting_until.remove(&object.place.name);
                self.ended.push_back(object.place.name.clone());
                self.ended.drain(..self.ended.len().saturating_sub(ENDED));
            }
            // Its pods will not be reported as stopped by anyone now.
            Change::Gone(object) if object.place.is_of("", "Node") => self.look_at_all(),
            Change::Seen(object) if self.ended.contains(&object.place.namespace) => {
                self.queue.add(object.place.namespace.clone());
            }
            Change::Seen(object) | Change::Gone(object) => self.look_at(&object.place.namespace),
            Change::Relisted(kind, objects) => {
                if is_namespace(kind) {
                    let there: HashSet<&str> = objects.iter().map(|object| &*object.place.name).collect();
                    self.terminating.retain(|name| there.contains(&**name));
                    for object in objects {
                        self.take_namespace(object);
                    }
                }
                self.look_at_all();
            }
            Change::Kinds => self.look_at_all(),
            Change::Trusted(_) => {}
        }
    }

    /// Goes on with a namespace that is due. False when none is.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(name) = self.queue.pop(now) else { return false };
        let place = Place::new("", "v1", "Namespace", "", &name);
        let going = self.passes.remove(&name);
        let found = objects.read(&place);
        if found.is_none() && self.ended.contains(&name) {
            self.sweep(name, going, objects);
            return true;
        }
        let Some(namespace) = found.filter(is_ending) else {
            self.queue.forget(&name);
            return true;
        };
        let pass = match going {
            Some(pass) => pass,
            None => match mark_terminating(&place, &namespace, objects) {
                Some(Written::Failed) => {
                    self.queue.retry(name, now);
                    return true;
                }
                // Having been marked, it comes by again.
                Some(Written::Done | Written::Absent) => return true,
                None => Purge::new(&name, objects),
            },
        };
        match pass.step(objects) {
            Progress::Going(pass) => {
                self.passes.insert(name.clone(), pass);
                self.queue.add(name);
            }
            Progress::Finished(remaining, next_look) => {
                if let Some(wait) = next_look.and_then(|at| at.duration_since(objects.now()).ok()) {
                    self.queue.add_at(name.clone(), now + wait);
                }
                self.finish(name, &place, namespace, &remaining, now, objects);
            }
        }
        true
    }

    /// When there is something to do: at once (zero), at a time, or not before something is heard.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    /// Deletes what came into a namespace as it ended.
    fn sweep(&mut self, name: Box<str>, going: Option<Purge>, objects: &impl Objects) {
        match going.unwrap_or_else(|| Purge::new(&name, objects)).step(objects) {
            Progress::Going(pass) => {
                self.passes.insert(name.clone(), pass);
                self.queue.add(name);
            }
            Progress::Finished(..) => self.queue.forget(&name),
        }
    }

    fn take_namespace(&mut self, namespace: &Meta) {
        self.ended.retain(|name| *name != namespace.place.name);
        if namespace.is_being_deleted() {
            self.terminating.insert(namespace.place.name.clone());
            self.look_at(&namespace.place.name);
        }
    }

    fn look_at(&mut self, namespace: &str) {
        let Some(name) = self.terminating.get(namespace) else { return };
        match self.resting_until.get(name) {
            Some(&until) => self.queue.add_at(name.clone(), until),
            None => self.queue.add(name.clone()),
        }
    }

    fn look_at_all(&mut self) {
        for name in self.terminating.clone() {
            self.look_at(&name);
        }
    }

    fn finish(
        &mut self,
        name: Box<str>,
        place: &Place,
        namespace: Value,
        remaining: &Remaining,
        now: Duration,
        objects: &impl Objects,
    ) {
        let rest = REST_PER_OBJECT
            .saturating_mul(remaining.count().try_into().unwrap_or(u32::MAX))
            .min(LONGEST_REST);
        self.resting_until.insert(name.clone(), now + rest);
        let is_empty = remaining.count() == 0 && remaining.refusals.is_empty();
        let mut written = report(place, namespace, remaining, objects);
        if is_empty && written != Some(Written::Failed) {
            written = finalize(place, objects);
        }
        match written {
            Some(Written::Failed) => self.queue.retry(name, now),
            _ if !remaining.refusals.is_empty() => self.queue.retry(name, now),
            _ => self.queue.forget(&name),
        }
    }
}

fn is_namespace(kind: &GroupVersionKind) -> bool {
    kind.group.is_empty() && kind.kind == "Namespace"
}

/// It is being deleted and has not been let go by everyone yet.
fn is_ending(namespace: &Value) -> bool {
    namespace.pointer("/metadata/deletionTimestamp").is_some()
        && namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
}

fn mark_terminating(place: &Place, namespace: &Value, objects: &impl Objects) -> Option<Written> {
    if namespace.pointer("/status/phase").is_some_and(|phase| phase == "Terminating") {
        return None;
    }
    let mut namespace = namespace.clone();
    status_of(&mut namespace)?.insert("phase".to_owned(), "Terminating".into());
    Some(Written::of(objects.replace(place, Part::Subresource("status"), namespace), place))
}

/// Writes what remains into the conditions; none if they say so already.
fn report(
    place: &Place,
    mut namespace: Value,
    remaining: &Remaining,
    objects: &impl Objects,
) -> Option<Written> {
    let status = status_of(&mut namespace)?;
    let conditions = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut()?;
    let says_nothing = conditions.is_empty() && remaining == &Remaining::default();
    if says_nothing || !conditions::update(conditions, remaining, &timestamp::format(objects.now())) {
        return None;
    }
    Some(Written::of(objects.replace(place, Part::Subresource("status"), namespace), place))
}

/// Lets an empty namespace go.
fn finalize(place: &Place, objects: &impl Objects) -> Option<Written> {
    let mut namespace = objects.read(place).filter(is_ending)?;
    let finalizers = namespace.pointer_mut("/spec/finalizers")?.as_array_mut()?;
    let before = finalizers.len();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if finalizers.len() == before {
        return None;
    }
    Some(Written::of(objects.replace(place, Part::Subresource("finalize"), namespace), place))
}

fn status_of(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.as_object_mut()?.entry("status").or_insert_with(|| json!({})).as_object_mut()
}
