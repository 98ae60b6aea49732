//! The collector on an in-memory server: rules by example, then guarantees by property tests.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Collector;
use crate::{
    controllers::{
        in_memory_server::{InMemoryServer, config_map, reference},
        object::{DependentWait, Meta, ObjectRef, Owner, Uid},
        objects::{Objects, ServerEvent},
    },
    rest::{FOREGROUND, Propagation},
};

/// Delivers every change and runs every step until no work is left. Time advances to the next due time.
fn settle(collector: &mut Collector, server: &InMemoryServer) {
    let mut now = Duration::ZERO;
    for _ in 0..10_000 {
        server.drain_events().iter().for_each(|change| collector.handle(change));
        if !collector.step(now, server) {
            match collector.next_due() {
                Some(due) => now = due,
                None => return,
            }
        }
    }
    panic!("the collector does not converge: {collector:#?}");
}

fn names(server: &InMemoryServer) -> Vec<String> {
    server.all().iter().map(|object| object.object_ref.name.to_string()).collect()
}

fn owned_by(owners: &[Value]) -> Value {
    json!({ "metadata": { "ownerReferences": owners } })
}

#[test]
fn dependents_are_deleted_transitively_after_their_owner() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    let child = server.put(&config_map("child"), owned_by(&[reference(&config_map("owner"), &owner, false)]));
    server.put(&config_map("grandchild"), owned_by(&[reference(&config_map("child"), &child, true)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["child", "grandchild", "owner"]);
    server.user_deletes(&config_map("owner"), Propagation::Background);
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn an_object_with_the_same_name_and_another_uid_is_not_an_owner() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    server.user_deletes(&config_map("owner"), Propagation::Background);
    server.put(&config_map("owner"), json!({}));
    server.put(&config_map("child"), owned_by(&[reference(&config_map("owner"), &owner, false)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["owner"]);
}

#[test]
fn an_unobserved_owner_is_looked_up_before_its_dependents_are_deleted() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    server.drain_events();
    server.put(&config_map("child"), owned_by(&[reference(&config_map("owner"), &owner, false)]));
    server.put(&config_map("stray"), owned_by(&[reference(&config_map("nobody"), "no-uid", false)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["child", "owner"]);
}

#[test]
fn references_to_deleted_owners_are_removed_while_one_owner_lives() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owners = ["a", "b", "c"].map(|name| (name, server.put(&config_map(name), json!({}))));
    let references = owners.each_ref().map(|(name, uid)| reference(&config_map(name), uid, true));
    server.put(&config_map("child"), owned_by(&references));
    settle(&mut collector, &server);
    server.user_deletes(&config_map("a"), Propagation::Background);
    server.user_deletes(&config_map("b"), Propagation::Foreground);
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["c", "child"]);
    let child = server.read(&config_map("child")).unwrap();
    assert_eq!(child["metadata"]["ownerReferences"], json!([references[2]]));
    server.user_deletes(&config_map("c"), Propagation::Background);
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn foreground_deletion_waits_for_blocking_dependents() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    let mut blocking = owned_by(&[reference(&config_map("owner"), &owner, true)]);
    blocking["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let blocking = server.put(&config_map("blocking"), blocking);
    server
        .put(&config_map("blocking-child"), owned_by(&[reference(&config_map("blocking"), &blocking, true)]));
    let mut free = owned_by(&[reference(&config_map("owner"), &owner, false)]);
    free["metadata"]["finalizers"] = json!(["example.com/keep"]);
    server.put(&config_map("free"), free);
    server.user_deletes(&config_map("owner"), Propagation::Foreground);
    settle(&mut collector, &server);

    // The blocking dependent has a dependent too, so it was deleted in the foreground as well.
    assert_eq!(names(&server), ["blocking", "free", "owner"]);
    server.user_edits(&config_map("blocking"), |object| object["metadata"]["finalizers"] = json!([]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["free"], "one that does not block may outlive its owner");
    assert!(server.all()[0].is_being_deleted());
}

#[test]
fn dependents_with_dependents_are_deleted_in_the_foreground() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    let child = server.put(&config_map("child"), owned_by(&[reference(&config_map("owner"), &owner, true)]));
    let mut grandchild = owned_by(&[reference(&config_map("child"), &child, true)]);
    grandchild["metadata"]["finalizers"] = json!(["example.com/keep"]);
    server.put(&config_map("grandchild"), grandchild);
    server.user_deletes(&config_map("owner"), Propagation::Foreground);
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["child", "grandchild", "owner"]);
    assert!(server.all()[0].has_finalizer(FOREGROUND));
    server.user_edits(&config_map("grandchild"), |object| object["metadata"]["finalizers"] = json!([]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn foreground_deletion_proceeds_when_a_dependent_no_longer_blocks() {
    for edit in [
        (|object: &mut Value| object["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into())
            as fn(&mut _),
        |object| object["metadata"]["ownerReferences"] = json!([]),
    ] {
        let (mut collector, server) = (Collector::default(), InMemoryServer::new());
        let owner = server.put(&config_map("owner"), json!({}));
        let mut child = owned_by(&[reference(&config_map("owner"), &owner, true)]);
        child["metadata"]["finalizers"] = json!(["example.com/keep"]);
        server.put(&config_map("child"), child);
        server.user_deletes(&config_map("owner"), Propagation::Foreground);
        settle(&mut collector, &server);
        assert_eq!(names(&server), ["child", "owner"]);
        server.user_edits(&config_map("child"), edit);
        settle(&mut collector, &server);
        assert_eq!(names(&server), ["child"]);
    }
}

#[test]
fn orphaned_dependents_survive_without_their_owner_reference() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    for name in ["a", "b", "c"] {
        server.put(&config_map(name), owned_by(&[reference(&config_map("owner"), &owner, true)]));
    }
    settle(&mut collector, &server);
    server.user_deletes(&config_map("owner"), Propagation::Orphan);
    server.conflicts.set(3);
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["a", "b", "c"]);
    assert!(server.all().iter().all(|object| object.owners.is_empty() && !object.is_being_deleted()));
}

#[test]
fn ownership_cycles_are_deleted() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        let (mut collector, server) = (Collector::default(), InMemoryServer::new());
        let a = server.put(&config_map("a"), json!({}));
        let b = server.put(&config_map("b"), owned_by(&[reference(&config_map("a"), &a, true)]));
        server.user_edits(&config_map("a"), |object| {
            object["metadata"]["ownerReferences"] = json!([reference(&config_map("b"), &b, true)]);
        });
        settle(&mut collector, &server);
        assert_eq!(names(&server), ["a", "b"], "each has a living owner");
        server.user_deletes(&config_map("a"), propagation);
        settle(&mut collector, &server);
        assert_eq!(names(&server), [""; 0], "{propagation:?}");
    }
}

#[test]
fn an_object_that_owns_itself_is_not_collected() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let narcissus = server.put(&config_map("a"), json!({}));
    server.user_edits(&config_map("a"), |object| {
        object["metadata"]["ownerReferences"] = json!([reference(&config_map("a"), &narcissus, true)]);
    });
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["a"]);
    server.user_deletes(&config_map("a"), Propagation::Foreground);
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn an_owner_in_another_namespace_does_not_count() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    let elsewhere = ObjectRef::new("", "v1", "ConfigMap", "elsewhere", "child");
    server.put(&elsewhere, owned_by(&[reference(&config_map("owner"), &owner, false)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["owner"]);
}

#[test]
fn a_dependent_observed_before_its_owner_in_another_namespace_is_deleted() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    let changes = server.drain_events();
    let elsewhere = ObjectRef::new("", "v1", "ConfigMap", "elsewhere", "child");
    server.put(&elsewhere, owned_by(&[reference(&config_map("owner"), &owner, false)]));
    for change in server.drain_events().iter().chain(&changes) {
        collector.handle(change);
    }
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["owner"]);
}

#[test]
fn cluster_scoped_objects_own_across_namespaces_and_have_no_namespaced_owners() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let node = ObjectRef::new("", "v1", "Node", "", "node");
    let uid = server.put(&node, json!({}));
    server.put(&config_map("of-node"), owned_by(&[reference(&node, &uid, false)]));
    let owner = server.put(&config_map("owner"), json!({}));
    let invalid = ObjectRef::new("", "v1", "Node", "", "owned");
    server.put(&invalid, owned_by(&[reference(&config_map("owner"), &owner, false)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["of-node", "owner", "node", "owned"]);
    server.user_deletes(&node, Propagation::Background);
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["owner", "owned"], "an invalid owner is ignored");
}

#[test]
fn dependents_of_unserved_kinds_are_kept_until_the_kind_is_served() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let unknown = ObjectRef::new("example.com", "v1", "Foo", "ns", "nobody");
    server.put(&config_map("child"), owned_by(&[reference(&unknown, "no-uid", false)]));
    settle(&mut collector, &server);
    assert_eq!((names(&server).len(), collector.next_due()), (1, None), "waiting does not retry");
    server.serve("example.com", "v1", "Foo", "foos", true);
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn dependents_are_deleted_when_their_owner_is_removed_with_its_kind() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    server.serve("example.com", "v1", "Foo", "foos", true);
    let foo = ObjectRef::new("example.com", "v1", "Foo", "ns", "foo");
    let uid = server.put(&foo, json!({}));
    server.put(&config_map("child"), owned_by(&[reference(&foo, &uid, false)]));
    settle(&mut collector, &server);
    server.user_deletes(&foo, Propagation::Background);
    server.stop_serving("Foo");
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn finalizers_determine_the_propagation_policy_of_a_collected_object() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let mut child = owned_by(&[reference(&config_map("nobody"), "no-uid", false)]);
    child["metadata"]["finalizers"] = json!(["orphan"]);
    let child = server.put(&config_map("child"), child);
    server.put(&config_map("grandchild"), owned_by(&[reference(&config_map("child"), &child, false)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["grandchild"]);
}

#[test]
fn a_valid_and_an_invalid_reference_to_one_owner_keep_the_dependent() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    let references = ["owner", "other"].map(|name| reference(&config_map(name), &owner, false));
    server.put(&config_map("child"), owned_by(&references));
    settle(&mut collector, &server);
    assert_eq!(server.object_owners("child"), 2);
}

#[test]
fn an_object_that_changes_before_its_deletion_is_evaluated_again() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    server.put(&config_map("child"), owned_by(&[reference(&config_map("nobody"), "no-uid", false)]));
    server.drain_events().iter().for_each(|change| collector.handle(change));
    server.conflicts.set(1);
    assert!(collector.step(Duration::ZERO, &server), "the deletion meets a conflict");
    server.user_edits(&config_map("child"), |object| {
        object["metadata"]["ownerReferences"] = json!([reference(&config_map("owner"), &owner, false)]);
    });
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["child", "owner"]);
}

#[test]
fn relisting_a_kind_detects_deletions_missed_by_the_watch() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    let owner = server.put(&config_map("owner"), json!({}));
    server.put(&config_map("child"), owned_by(&[reference(&config_map("owner"), &owner, false)]));
    settle(&mut collector, &server);
    server.user_deletes(&config_map("owner"), Propagation::Background);
    server.drain_events();
    let kind = config_map("child").kind;
    collector.handle(&ServerEvent::Relisted(kind.clone(), server.list(&kind, None)));
    settle(&mut collector, &server);
    assert_eq!(names(&server), [""; 0]);
}

#[test]
fn events_are_not_collected() {
    let (mut collector, server) = (Collector::default(), InMemoryServer::new());
    server.serve("", "v1", "Event", "events", true);
    let event = ObjectRef::new("", "v1", "Event", "ns", "event");
    server.put(&event, owned_by(&[reference(&config_map("nobody"), "no-uid", false)]));
    settle(&mut collector, &server);
    assert_eq!(names(&server), ["event"]);
}

impl InMemoryServer {
    fn object_owners(&self, name: &str) -> usize {
        self.list(&config_map(name).kind, None)
            .iter()
            .find(|meta| *meta.object_ref.name == *name)
            .unwrap()
            .owners
            .len()
    }
}

/// A user action, or some progress of the collector.
#[derive(Debug, Clone)]
enum Operation {
    /// Creates an object with references to objects created before, given as distances back from the newest.
    Create { owners: Vec<(usize, bool)>, is_kept: bool },
    /// Deletes one of the objects created before.
    Delete { which: usize, how: u8 },
    /// Removes the user's finalizer from an object.
    Release(usize),
    /// Removes the owner references from an object.
    Adopt(usize),
    /// Delivers this many of the oldest changes to the collector.
    Deliver(usize),
    /// Runs this many steps of the collector.
    Step(usize),
    /// Makes the next writes of the collector fail with a conflict.
    Conflict(u32),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (prop::collection::vec((0..6_usize, any::<bool>()), 0..3), prop::bool::weighted(0.2))
            .prop_map(|(owners, is_kept)| Operation::Create { owners, is_kept }),
        3 => (0..12_usize, 0..3_u8).prop_map(|(which, how)| Operation::Delete { which, how }),
        1 => (0..12_usize).prop_map(Operation::Release),
        1 => (0..12_usize).prop_map(Operation::Adopt),
        3 => (1..6_usize).prop_map(Operation::Deliver),
        3 => (1..8_usize).prop_map(Operation::Step),
        1 => (1..3_u32).prop_map(Operation::Conflict),
    ]
}

/// The state on which the guarantees are checked while actions are executed.
#[derive(Default)]
struct Simulation {
    collector: Collector,
    server: InMemoryServer,
    /// Changes that are not yet delivered to the collector.
    undelivered: std::collections::VecDeque<ServerEvent>,
    created: Vec<(ObjectRef, Uid)>,
    /// Objects that must not be deleted: orphaned while they had no other owner, and never deleted or released by a user.
    orphaned: Vec<Uid>,
    /// The number of next writes of the collector that fail with a conflict.
    conflicts: u32,
    now: Duration,
}

impl Default for InMemoryServer {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulation {
    fn execute(&mut self, operation: &Operation) {
        let server = &self.server;
        match operation {
            Operation::Create { owners, is_kept } => {
                let object_ref = config_map(&format!("o{}", self.created.len()));
                let references: Vec<Value> = owners
                    .iter()
                    .filter_map(|(back, blocks)| {
                        let (object_ref, uid) = self.created.iter().rev().nth(*back)?;
                        // Whether a reference is orphaned is undefined if it was created while its owner was orphaning
                        // dependents.
                        let is_certain = server.find(uid).is_none_or(|owner| !owner.is_being_deleted());
                        is_certain.then(|| reference(object_ref, uid, *blocks))
                    })
                    .collect();
                let mut object = owned_by(&references);
                if *is_kept {
                    object["metadata"]["finalizers"] = json!(["example.com/keep"]);
                }
                let uid = server.put(&object_ref, object);
                self.created.push((object_ref, uid));
            }
            Operation::Delete { which, how } => {
                let Some((object_ref, uid)) = self.created.iter().rev().nth(*which) else { return };
                let propagation = [Propagation::Background, Propagation::Foreground, Propagation::Orphan]
                    [usize::from(*how)];
                let is_first = server.find(uid).is_some_and(|object| !object.is_being_deleted());
                if !is_first {
                    return;
                }
                self.orphaned.retain(|orphan| orphan != uid);
                server.user_deletes(object_ref, propagation);
                if propagation == Propagation::Orphan {
                    let dependents = server.all().into_iter().filter(|object| {
                        !object.is_being_deleted() && object.owners.iter().all(|owner| owner.uid == *uid)
                    });
                    self.orphaned.extend(
                        dependents.filter(|object| !object.owners.is_empty()).map(|object| object.uid),
                    );
                }
            }
            Operation::Release(which) => {
                if let Some((object_ref, _)) = self.created.iter().rev().nth(*which) {
                    server.user_edits(object_ref, |object| {
                        super::remove_finalizer(&mut object["metadata"], "example.com/keep");
                    });
                }
            }
            Operation::Adopt(which) => {
                if let Some((object_ref, _)) = self.created.iter().rev().nth(*which) {
                    server.user_edits(object_ref, |object| object["metadata"]["ownerReferences"] = json!([]));
                }
            }
            Operation::Deliver(count) => self.deliver(*count),
            Operation::Step(count) => (0..*count).for_each(|_| {
                self.step();
            }),
            Operation::Conflict(count) => self.conflicts = *count,
        }
    }

    fn deliver(&mut self, count: usize) {
        self.undelivered.extend(self.server.drain_events());
        for change in self.undelivered.drain(..count.min(self.undelivered.len())) {
            self.collector.handle(&change);
        }
    }

    /// Runs a step and checks that it deleted no object with an existing owner.
    fn step(&mut self) -> bool {
        let before: Vec<Meta> = self.server.all();
        self.server.conflicts.set(self.conflicts);
        let has_worked = self.collector.step(self.now, &self.server);
        self.conflicts = self.server.conflicts.take();
        for object in before.iter().filter(|object| !object.is_being_deleted()) {
            let is_deleted = self.server.find(&object.uid).is_none_or(|object| object.is_being_deleted());
            let is_solid = |owner: &Owner| {
                let found = before.iter().find(|other| other.uid == owner.uid);
                found.is_some_and(|found| found.waits_for() != DependentWait::DependentsDeleted)
            };
            assert!(
                !is_deleted || (!object.owners.is_empty() && !object.owners.iter().any(is_solid)),
                "{} was deleted although it has an existing owner or no owner",
                object.object_ref.name
            );
        }
        has_worked
    }

    fn settle(&mut self) {
        for _ in 0..20_000 {
            self.deliver(usize::MAX);
            if !self.step() {
                match self.collector.next_due() {
                    Some(due) => self.now = self.now.max(due),
                    None => return,
                }
            }
        }
        panic!("the collector does not converge");
    }

    fn check(&self) {
        for object in self.server.all() {
            let name = &object.object_ref.name;
            let has_living_owner = object.owners.iter().any(|owner| self.server.find(&owner.uid).is_some());
            let is_garbage = !object.owners.is_empty() && !has_living_owner;
            assert!(object.is_being_deleted() || !is_garbage, "{name} has outlived all its owners");
            assert_ne!(
                object.waits_for(),
                DependentWait::DependentsOrphaned,
                "{name} waits for dependents to let go"
            );
            if object.waits_for() == DependentWait::DependentsDeleted {
                let is_blocked = self.server.all().iter().any(|dependent| {
                    dependent.owners.iter().any(|owner| owner.uid == object.uid && owner.blocks)
                });
                assert!(is_blocked, "{name} waits without dependents");
            }
        }
        for uid in &self.orphaned {
            assert!(self.server.find(uid).is_some(), "an orphaned object was deleted");
        }
    }
}

impl InMemoryServer {
    fn find(&self, uid: &Uid) -> Option<Meta> {
        self.all().into_iter().find(|object| object.uid == *uid)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn exactly_the_garbage_is_deleted(operations in prop::collection::vec(operation(), 1..60)) {
        let mut simulation = Simulation::default();
        for operation in &operations {
            simulation.execute(operation);
        }
        simulation.settle();
        simulation.check();
    }
}
