//! The decision core of garbage collection: which objects to delete because their owners no longer exist.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use super::edges::Edges;
use crate::{
    controllers::{
        object::{DependentWait, Meta, ObjectRef, Owner, Uid, is_same_kind},
        queue::Queue,
    },
    kinds::GroupVersionKind,
    rest::{FOREGROUND, ORPHAN, Propagation},
};

/// Reads of the current storage, as opposed to the changes observed so far.
pub(crate) trait LiveReads {
    /// Returns the object at `object_ref`.
    fn object(&self, object_ref: &ObjectRef) -> Option<Meta>;
    /// Looks up the object that `owner` names, relative to an object in `namespace`. The uid of the result may differ.
    fn owner(&self, owner: &Owner, namespace: &str) -> OwnerLookup;
}

/// The result of looking up an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnerLookup {
    /// The kind is not served, so the existence of the owner is unknown.
    NotServed,
    /// The owner's kind is namespaced and the dependent is cluster-scoped, so the owner reference is invalid.
    InvalidScope,
    /// The owner does not exist: the name is not in use.
    Absent,
    /// An object has that name.
    Found(Meta),
}

/// An operation on one object, conditional on the state on which the decision was based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// The location of the object.
    pub(crate) object_ref: ObjectRef,
    /// The required uid of the object.
    pub(crate) uid: Uid,
    /// The required resourceVersion of the object.
    pub(crate) resource_version: Box<str>,
    /// The operation on the object.
    pub(crate) operation: ObjectOperation,
}

/// An operation on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectOperation {
    /// Delete the object.
    Delete(Propagation),
    /// Remove the references to these owners.
    RemoveOwners(Vec<Uid>),
    /// Set `blockOwnerDeletion` to false in all owner references.
    UnblockOwners,
    /// Remove this finalizer.
    RemoveFinalizer(&'static str),
}

/// The result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionResult {
    /// The action succeeded.
    Done,
    /// The object no longer existed.
    Absent,
    /// The object had changed, or the server rejected the write.
    Failed,
}

/// A work item for one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum GraphTask {
    /// Check whether the object must be deleted or, if it waits for dependents, whether its finalizer can be removed.
    Check(Uid),
    /// Find the next dependent to orphan.
    Orphan(Uid),
}

/// A task that was started, with the resulting action. The outcome of the action must be [reported](Graph::report).
#[derive(Debug)]
pub(crate) struct StartedTask {
    /// The task that was started.
    pub(crate) task: GraphTask,
    /// The action to execute, if any.
    pub(crate) action: Option<Action>,
}

/// An iteration over the dependents that an owner orphans.
#[derive(Debug, Default)]
struct OrphanPass {
    after: Option<Uid>,
    has_acted: bool,
}

/// The garbage collector as a state machine: observed objects, deletions and the time are the inputs; one action at a time
/// is the output.
///
/// # Guarantees
///
/// * An object is deleted only if all its owner references, as stored at that moment, name owners that do not exist or that
///   wait for their dependents to be deleted.
/// * An object for which this holds is eventually deleted.
///
/// An owner exists if an object of that kind, name and exact uid is stored. Observed changes may lag behind the storage:
/// they determine which objects are checked, never the result of the check.
///
/// References to kinds that are not served are left unchanged until the served kinds change. Two objects that block each
/// other and are both deleted in the foreground wait for each other forever, as in a cluster.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<Uid, Meta>,
    edges: Edges,
    /// Owners whose deletion was observed while references to them exist. Their kinds may no longer be served.
    deleted_owners: HashSet<Uid>,
    /// Objects with an owner of a kind that is not served.
    unserved: BTreeSet<Uid>,
    passes: HashMap<Uid, OrphanPass>,
    queue: Queue<GraphTask>,
}

impl Graph {
    /// Records an object that is new or has changed.
    pub(crate) fn observe(&mut self, object: Meta) {
        let uid = object.uid.clone();
        let old = self.nodes.remove(&uid);
        let (old_owners, old_wait) =
            old.as_ref().map_or((&[][..], DependentWait::Nothing), |old| (&old.owners, old.waits_for()));

        self.replace_owners(&uid, old_owners, &object.owners);
        let known: HashSet<&Owner> = old_owners.iter().collect();
        let is_new_owner = |owner: &&Owner| !known.contains(owner);
        if object.owners.iter().filter(is_new_owner).any(|owner| self.may_be_missing(owner, &object)) {
            self.queue.add(GraphTask::Check(uid.clone()));
        }
        if old.is_none() {
            self.deleted_owners.remove(&uid);
            self.check_dependents(&uid, |dependent| {
                let namespace = &dependent.object_ref.namespace;
                dependent.owners.iter().any(|owner| owner.uid == uid && !object.is_named_by(owner, namespace))
            });
        }
        let wait = object.waits_for();
        self.nodes.insert(uid.clone(), object);
        if wait != old_wait {
            match wait {
                DependentWait::Nothing => {}
                DependentWait::DependentsOrphaned => self.queue.add(GraphTask::Orphan(uid)),
                DependentWait::DependentsDeleted => {
                    self.check_dependents(&uid, |_| true);
                    self.queue.add(GraphTask::Check(uid));
                }
            }
        }
    }

    /// Records the deletion of the object with this uid.
    pub(crate) fn forget(&mut self, uid: &Uid) {
        let Some(object) = self.nodes.remove(uid) else { return };
        self.unserved.remove(uid);
        self.passes.remove(uid);
        self.replace_owners(uid, &object.owners, &[]);
        if self.edges.dependents(uid).is_some() {
            self.deleted_owners.insert(uid.clone());
            self.check_dependents(uid, |_| true);
        }
    }

    /// Records a relist of `kind`: objects of the kind that are missing from `objects` are deleted.
    pub(crate) fn relist(&mut self, kind: &GroupVersionKind, objects: Vec<Meta>) {
        let present: HashSet<&Uid> = objects.iter().map(|object| &object.uid).collect();
        let mut deleted_owners: Vec<Uid> = self
            .nodes
            .values()
            .filter(|node| is_same_kind(&node.object_ref.kind, kind) && !present.contains(&node.uid))
            .map(|node| node.uid.clone())
            .collect();
        deleted_owners.sort_unstable();
        for uid in deleted_owners {
            self.forget(&uid);
        }
        for object in objects {
            self.observe(object);
        }
    }

    /// Records a change of the served kinds. Objects with unserved owners are checked again.
    pub(crate) fn kinds_changed(&mut self) {
        while let Some(uid) = self.unserved.pop_first() {
            self.queue.add(GraphTask::Check(uid));
        }
    }

    /// Starts the next task that is due at `now`. Returns none if no task is due.
    pub(crate) fn step(&mut self, now: Duration, live: &impl LiveReads) -> Option<StartedTask> {
        let task = self.queue.pop(now)?;
        let action = match &task {
            GraphTask::Check(uid) => self.check(uid, live),
            GraphTask::Orphan(uid) => self.orphan(uid, live),
        };
        if action.is_none() {
            self.queue.forget(&task);
        }
        Some(StartedTask { task, action })
    }

    /// Records the outcome of the action of a step.
    pub(crate) fn report(
        &mut self,
        task: GraphTask,
        operation: &ObjectOperation,
        outcome: ActionResult,
        now: Duration,
    ) {
        if outcome == ActionResult::Failed {
            self.queue.retry(task, now);
            return;
        }
        self.queue.forget(&task);
        let has_more = match (&task, operation) {
            (GraphTask::Orphan(_), ObjectOperation::RemoveOwners(_)) => true,
            (_, ObjectOperation::UnblockOwners) => outcome == ActionResult::Done,
            _ => false,
        };
        if has_more {
            self.queue.add(task);
        }
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    /// Returns whether the reference is new and its owner is not an existing, observed object with exactly these names.
    fn may_be_missing(&self, owner: &Owner, dependent: &Meta) -> bool {
        self.nodes.get(&owner.uid).is_none_or(|known| {
            !known.is_named_by(owner, &dependent.object_ref.namespace)
                || known.waits_for() == DependentWait::DependentsDeleted
        })
    }

    fn replace_owners(&mut self, uid: &Uid, old: &[Owner], new: &[Owner]) {
        for owner in self.edges.replace(uid, old, new) {
            if self
                .nodes
                .get(&owner)
                .is_some_and(|owner| owner.waits_for() == DependentWait::DependentsDeleted)
            {
                self.queue.add(GraphTask::Check(owner));
            }
        }
        for owner in old {
            if self.edges.dependents(&owner.uid).is_none() {
                self.deleted_owners.remove(&owner.uid);
            }
        }
    }

    fn check_dependents(&mut self, owner: &Uid, predicate: impl Fn(&Meta) -> bool) {
        for dependent in self.edges.all_dependents(owner) {
            if self.nodes.get(&dependent).is_some_and(&predicate) {
                self.queue.add(GraphTask::Check(dependent));
            }
        }
    }

    fn check(&mut self, uid: &Uid, live: &impl LiveReads) -> Option<Action> {
        let known = self.nodes.get(uid)?;
        if known.is_being_deleted() && known.waits_for() != DependentWait::DependentsDeleted {
            return None;
        }
        // If the object is missing, its deletion event is still to be delivered.
        let object = live.object(&known.object_ref).filter(|object| object.uid == *uid)?;
        match (object.is_being_deleted(), object.waits_for()) {
            (true, DependentWait::DependentsDeleted) => {
                let is_blocked =
                    self.edges.dependents(uid).is_some_and(|dependents| !dependents.blocking.is_empty());
                (!is_blocked).then(|| object.action(ObjectOperation::RemoveFinalizer(FOREGROUND)))
            }
            (true, _) => None,
            (false, _) => self.decide(&object, live),
        }
    }

    /// Decides about an object that is not being deleted.
    fn decide(&mut self, object: &Meta, live: &impl LiveReads) -> Option<Action> {
        let mut solid = HashSet::new();
        let mut waiting = Vec::new();
        let mut dangling = Vec::new();
        for owner in &object.owners {
            if self.deleted_owners.contains(&owner.uid) {
                dangling.push(owner.uid.clone());
                continue;
            }
            match live.owner(owner, &object.object_ref.namespace) {
                OwnerLookup::NotServed => {
                    self.unserved.insert(object.uid.clone());
                    return None;
                }
                OwnerLookup::InvalidScope => return None,
                OwnerLookup::Found(found) if found.uid == owner.uid => {
                    if found.is_being_deleted() && found.has_finalizer(FOREGROUND) {
                        waiting.push(owner.uid.clone());
                    } else {
                        solid.insert(&owner.uid);
                    }
                }
                OwnerLookup::Absent | OwnerLookup::Found(_) => dangling.push(owner.uid.clone()),
            }
        }
        if object.owners.is_empty() {
            return None;
        }
        if !solid.is_empty() {
            // A waiting owner would never be deleted while a dependent that stays refers to it.
            dangling.append(&mut waiting);
            // An owner can be named twice, once correctly and once incorrectly; references are removed by uid.
            dangling.retain(|uid| !solid.contains(uid));
            return (!dangling.is_empty()).then(|| object.action(ObjectOperation::RemoveOwners(dangling)));
        }
        let dependents = self.edges.dependents(&object.uid);
        if let (false, Some(dependents)) = (waiting.is_empty(), dependents) {
            let is_perhaps_in_a_circle = dependents.all.iter().any(|uid| {
                self.nodes
                    .get(uid)
                    .is_some_and(|dependent| dependent.waits_for() == DependentWait::DependentsDeleted)
            });
            if is_perhaps_in_a_circle && object.owners.iter().any(|owner| owner.blocks) {
                return Some(object.action(ObjectOperation::UnblockOwners));
            }
            return Some(object.action(ObjectOperation::Delete(Propagation::Foreground)));
        }
        let propagation = if object.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else if object.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        Some(object.action(ObjectOperation::Delete(propagation)))
    }

    /// Continues with the next dependent to orphan. When a whole pass finds none, the owner's finalizer is removed.
    fn orphan(&mut self, uid: &Uid, live: &impl LiveReads) -> Option<Action> {
        let known = self.nodes.get(uid)?;
        let owner = live
            .object(&known.object_ref)
            .filter(|owner| owner.uid == *uid && owner.waits_for() == DependentWait::DependentsOrphaned);
        let Some(owner) = owner else {
            self.passes.remove(uid);
            return None;
        };
        let pass = self.passes.entry(uid.clone()).or_default();
        let Some(next) = self.edges.dependent_after(uid, pass.after.as_ref()) else {
            if std::mem::take(pass).has_acted {
                self.queue.add(GraphTask::Orphan(uid.clone()));
                return None;
            }
            self.passes.remove(uid);
            return Some(owner.action(ObjectOperation::RemoveFinalizer(ORPHAN)));
        };
        pass.after = Some(next.clone());
        let dependent = self
            .nodes
            .get(next)
            .and_then(|known| live.object(&known.object_ref))
            .filter(|found| found.uid == *next && found.owners.iter().any(|owner| owner.uid == *uid));
        if let Some(dependent) = dependent {
            pass.has_acted = true;
            return Some(dependent.action(ObjectOperation::RemoveOwners(vec![uid.clone()])));
        }
        self.queue.add(GraphTask::Orphan(uid.clone()));
        None
    }
}

impl Meta {
    fn action(&self, operation: ObjectOperation) -> Action {
        Action {
            object_ref: self.object_ref.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            operation,
        }
    }
}
