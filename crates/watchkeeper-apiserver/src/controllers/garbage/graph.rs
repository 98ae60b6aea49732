//! Which object is to be deleted because its owners are gone.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use super::edges::Edges;
use crate::{
    controllers::{
        object::{FOREGROUND, Meta, ORPHAN, Owner, Place, Uid, Wait, is_same_kind},
        queue::Queue,
    },
    kinds::GroupVersionKind,
};

/// What is stored right now, as opposed to what has been heard of.
pub(crate) trait Live {
    /// The object at `place`.
    fn object(&self, place: &Place) -> Option<Meta>;
    /// What `owner` names, seen from an object in `namespace`. Its uid may be another.
    fn owner(&self, owner: &Owner, namespace: &str) -> Look;
}

/// What a look at an owner finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Look {
    /// No kind of that name is served, so nobody can say.
    NotServed,
    /// Objects of the kind live in namespaces and the one that asks in none, so it cannot be an owner.
    OutOfReach,
    /// There is no object of that name.
    Absent,
    /// There is one.
    Found(Meta),
}

/// How the dependents of a deleted object fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Deleted once it is gone.
    Background,
    /// Deleted before it goes.
    Foreground,
    /// Left alone.
    Orphan,
}

/// What is to be done to one object, in exactly the state that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// Where it is.
    pub(crate) place: Place,
    /// It must be this one.
    pub(crate) uid: Uid,
    /// It must not have changed.
    pub(crate) resource_version: Box<str>,
    /// What to do.
    pub(crate) operation: Operation,
}

/// What can be done to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Delete it.
    Delete(Propagation),
    /// Take the references to these out of its owners.
    RemoveOwners(Vec<Uid>),
    /// Have none of its references block an owner.
    UnblockOwners,
    /// Take this finalizer off it.
    RemoveFinalizer(&'static str),
}

/// How an action went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is done.
    Done,
    /// The object was no longer there.
    Absent,
    /// The object had changed, or the server refused.
    Failed,
}

/// A question about one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Task {
    /// Should it be deleted, or if it is waiting for dependents, may it go?
    Check(Uid),
    /// Which dependent has to let go of it next?
    Orphan(Uid),
}

/// A task that was taken up, and what follows from it. The action's outcome is to be [reported](Graph::report).
#[derive(Debug)]
pub(crate) struct Step {
    /// The task.
    pub(crate) task: Task,
    /// What is to be done, if anything.
    pub(crate) action: Option<Action>,
}

/// A way through the dependents of an object that lets them go.
#[derive(Debug, Default)]
struct Pass {
    after: Option<Uid>,
    has_acted: bool,
}

/// The garbage collector without its hands: objects seen and gone, and the time, go in; one action at a time comes out.
///
/// It promises that an object is deleted only if its references, all of them and as stored at that moment, name owners
/// that do not exist or that wait for their dependents to be gone; and that an object for which that holds is deleted
/// in the end. An owner exists if an object of that kind and name and of exactly that uid is stored. What is heard may
/// lag behind what is stored: it decides what is looked at, never what is done.
///
/// References to kinds that are not served are left alone until the kinds change. Two objects that block each other and
/// are both deleted in the foreground by their users wait for each other for ever, as they do in a cluster.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<Uid, Meta>,
    edges: Edges,
    /// Owners that were seen and are gone, while there are references to them. Their kinds may be gone as well.
    gone: HashSet<Uid>,
    /// Objects with an owner of a kind that is not served.
    unserved: BTreeSet<Uid>,
    passes: HashMap<Uid, Pass>,
    queue: Queue<Task>,
}

impl Graph {
    /// Takes note of an object that is new or has changed.
    pub(crate) fn observe(&mut self, object: Meta) {
        let uid = object.uid.clone();
        let old = self.nodes.remove(&uid);
        let (old_owners, old_wait) =
            old.as_ref().map_or((&[][..], Wait::Nothing), |old| (&old.owners, old.waits_for()));

        self.replace_owners(&uid, old_owners, &object.owners);
        let known: HashSet<&Owner> = old_owners.iter().collect();
        let is_new_owner = |owner: &&Owner| !known.contains(owner);
        if object.owners.iter().filter(is_new_owner).any(|owner| self.is_doubtful(owner, &object)) {
            self.queue.add(Task::Check(uid.clone()));
        }
        if old.is_none() {
            self.gone.remove(&uid);
            self.check_dependents(&uid, |dependent| {
                let namespace = &dependent.place.namespace;
                dependent.owners.iter().any(|owner| owner.uid == uid && !object.is_named_by(owner, namespace))
            });
        }
        let wait = object.waits_for();
        self.nodes.insert(uid.clone(), object);
        if wait != old_wait {
            match wait {
                Wait::Nothing => {}
                Wait::DependentsOrphaned => self.queue.add(Task::Orphan(uid)),
                Wait::DependentsGone => {
                    self.check_dependents(&uid, |_| true);
                    self.queue.add(Task::Check(uid));
                }
            }
        }
    }

    /// Takes note that the object with this uid is gone.
    pub(crate) fn forget(&mut self, uid: &Uid) {
        let Some(object) = self.nodes.remove(uid) else { return };
        self.unserved.remove(uid);
        self.passes.remove(uid);
        self.replace_owners(uid, &object.owners, &[]);
        if self.edges.dependents(uid).is_some() {
            self.gone.insert(uid.clone());
            self.check_dependents(uid, |_| true);
        }
    }

    /// Takes note that these are the objects of `kind`, and that others of it are gone.
    pub(crate) fn relist(&mut self, kind: &GroupVersionKind, objects: Vec<Meta>) {
        let present: HashSet<&Uid> = objects.iter().map(|object| &object.uid).collect();
        let mut gone: Vec<Uid> = self
            .nodes
            .values()
            .filter(|node| is_same_kind(&node.place.kind, kind) && !present.contains(&node.uid))
            .map(|node| node.uid.clone())
            .collect();
        gone.sort_unstable();
        for uid in gone {
            self.forget(&uid);
        }
        for object in objects {
            self.observe(object);
        }
    }

    /// Takes note that other kinds are served than before: what could not be judged may be judged now.
    pub(crate) fn kinds_changed(&mut self) {
        while let Some(uid) = self.unserved.pop_first() {
            self.queue.add(Task::Check(uid));
        }
    }

    /// Takes up the next task that is due at `now`; none if nothing is.
    pub(crate) fn step(&mut self, now: Duration, live: &impl Live) -> Option<Step> {
        let task = self.queue.pop(now)?;
        let action = match &task {
            Task::Check(uid) => self.check(uid, live),
            Task::Orphan(uid) => self.orphan(uid, live),
        };
        if action.is_none() {
            self.queue.forget(&task);
        }
        Some(Step { task, action })
    }

    /// Takes note how the action of a step went.
    pub(crate) fn report(&mut self, task: Task, operation: &Operation, outcome: Outcome, now: Duration) {
        if outcome == Outcome::Failed {
            self.queue.retry(task, now);
            return;
        }
        self.queue.forget(&task);
        let has_more = match (&task, operation) {
            (Task::Orphan(_), Operation::RemoveOwners(_)) => true,
            (_, Operation::UnblockOwners) => outcome == Outcome::Done,
            _ => false,
        };
        if has_more {
            self.queue.add(task);
        }
    }

    /// When there is something to do: at once (zero), at a time, or not before something is heard.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    /// The reference is new and its owner is not a living object we know under exactly these names.
    fn is_doubtful(&self, owner: &Owner, dependent: &Meta) -> bool {
        self.nodes.get(&owner.uid).is_none_or(|known| {
            !known.is_named_by(owner, &dependent.place.namespace) || known.waits_for() == Wait::DependentsGone
        })
    }

    fn replace_owners(&mut self, uid: &Uid, old: &[Owner], new: &[Owner]) {
        for owner in self.edges.replace(uid, old, new) {
            if self.nodes.get(&owner).is_some_and(|owner| owner.waits_for() == Wait::DependentsGone) {
                self.queue.add(Task::Check(owner));
            }
        }
        for owner in old {
            if self.edges.dependents(&owner.uid).is_none() {
                self.gone.remove(&owner.uid);
            }
        }
    }

    fn check_dependents(&mut self, owner: &Uid, is_wanted: impl Fn(&Meta) -> bool) {
        for dependent in self.edges.all_dependents(owner) {
            if self.nodes.get(&dependent).is_some_and(&is_wanted) {
                self.queue.add(Task::Check(dependent));
            }
        }
    }

    fn check(&mut self, uid: &Uid, live: &impl Live) -> Option<Action> {
        let known = self.nodes.get(uid)?;
        if known.is_being_deleted() && known.waits_for() != Wait::DependentsGone {
            return None;
        }
        // If it is not there, its end is on its way to us.
        let object = live.object(&known.place).filter(|object| object.uid == *uid)?;
        match (object.is_being_deleted(), object.waits_for()) {
            (true, Wait::DependentsGone) => {
                let is_blocked =
                    self.edges.dependents(uid).is_some_and(|dependents| !dependents.blocking.is_empty());
                (!is_blocked).then(|| object.action(Operation::RemoveFinalizer(FOREGROUND)))
            }
            (true, _) => None,
            (false, _) => self.judge(&object, live),
        }
    }

    /// Decides about an object that nobody has deleted.
    fn judge(&mut self, object: &Meta, live: &impl Live) -> Option<Action> {
        let mut solid = HashSet::new();
        let mut waiting = Vec::new();
        let mut dangling = Vec::new();
        for owner in &object.owners {
            if self.gone.contains(&owner.uid) {
                dangling.push(owner.uid.clone());
                continue;
            }
            match live.owner(owner, &object.place.namespace) {
                Look::NotServed => {
                    self.unserved.insert(object.uid.clone());
                    return None;
                }
                Look::OutOfReach => return None,
                Look::Found(found) if found.uid == owner.uid => {
                    if found.is_being_deleted() && found.has_finalizer(FOREGROUND) {
                        waiting.push(owner.uid.clone());
                    } else {
                        solid.insert(&owner.uid);
                    }
                }
                Look::Absent | Look::Found(_) => dangling.push(owner.uid.clone()),
            }
        }
        if object.owners.is_empty() {
            return None;
        }
        if !solid.is_empty() {
            // A waiting owner would never go while a dependent that stays refers to it.
            dangling.append(&mut waiting);
            // One owner can be named twice, once right and once wrong; references are removed by uid.
            dangling.retain(|uid| !solid.contains(uid));
            return (!dangling.is_empty()).then(|| object.action(Operation::RemoveOwners(dangling)));
        }
        let dependents = self.edges.dependents(&object.uid);
        if let (false, Some(dependents)) = (waiting.is_empty(), dependents) {
            let is_perhaps_in_a_circle = dependents.all.iter().any(|uid| {
                self.nodes.get(uid).is_some_and(|dependent| dependent.waits_for() == Wait::DependentsGone)
            });
            if is_perhaps_in_a_circle && object.owners.iter().any(|owner| owner.blocks) {
                return Some(object.action(Operation::UnblockOwners));
            }
            return Some(object.action(Operation::Delete(Propagation::Foreground)));
        }
        let propagation = if object.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else if object.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        Some(object.action(Operation::Delete(propagation)))
    }

    /// Goes on to the next dependent that has to let go. When a whole pass finds none, the owner may go.
    fn orphan(&mut self, uid: &Uid, live: &impl Live) -> Option<Action> {
        let known = self.nodes.get(uid)?;
        let owner = live
            .object(&known.place)
            .filter(|owner| owner.uid == *uid && owner.waits_for() == Wait::DependentsOrphaned);
        let Some(owner) = owner else {
            self.passes.remove(uid);
            return None;
        };
        let pass = self.passes.entry(uid.clone()).or_default();
        let Some(next) = self.edges.dependent_after(uid, pass.after.as_ref()) else {
            if std::mem::take(pass).has_acted {
                self.queue.add(Task::Orphan(uid.clone()));
                return None;
            }
            self.passes.remove(uid);
            return Some(owner.action(Operation::RemoveFinalizer(ORPHAN)));
        };
        pass.after = Some(next.clone());
        let dependent = self
            .nodes
            .get(next)
            .and_then(|known| live.object(&known.place))
            .filter(|found| found.uid == *next && found.owners.iter().any(|owner| owner.uid == *uid));
        if let Some(dependent) = dependent {
            pass.has_acted = true;
            return Some(dependent.action(Operation::RemoveOwners(vec![uid.clone()])));
        }
        self.queue.add(Task::Orphan(uid.clone()));
        None
    }
}

impl Meta {
    fn action(&self, operation: Operation) -> Action {
        Action {
            place: self.place.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            operation,
        }
    }
}
