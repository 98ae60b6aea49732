//! All controllers together, on an in-memory server and on the driver.

use std::{
    cell::Cell,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    ControllerOptions, Controllers,
    driver::{self, Feed},
    garbage::{Live, Propagation},
    memory::{World, config_map, reference},
    object::Place,
    objects::{Change, Objects},
};
use crate::{Clock, TokioClock};

fn all_controllers() -> Controllers {
    Controllers::new(ControllerOptions { has_cluster_controllers: true })
}

/// Delivers every change and runs every step. The date advances to the next due time, as long as that is near.
fn settle(controllers: &mut Controllers, world: &World) {
    const PATIENCE: Duration = Duration::from_mins(5);
    let mut now = Duration::ZERO;
    for _ in 0..20_000 {
        world.take_changes().iter().for_each(|change| controllers.take(change));
        if !controllers.step(now, world) {
            match controllers.next_due() {
                Some(due) if due < PATIENCE => {
                    world.advance(due.saturating_sub(now));
                    now = now.max(due);
                }
                _ => return,
            }
        }
    }
    panic!("they do not come to rest: {controllers:#?}");
}

fn namespace(name: &str) -> Place {
    Place::new("", "v1", "Namespace", "", name)
}

fn exists(world: &World, place: &Place) -> bool {
    world.object(place).is_some()
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    object["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|condition| condition["type"] == kind)
        .unwrap()
}

#[test]
fn system_namespaces_are_created_and_recreated_after_deletion() {
    let (mut controllers, world) = (all_controllers(), World::new());
    settle(&mut controllers, &world);
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        assert!(exists(&world, &namespace(name)), "{name}");
        assert!(exists(&world, &Place::new("", "v1", "ServiceAccount", name, "default")), "{name}");
    }
    let first = world.object(&namespace("kube-node-lease")).unwrap().uid;
    world.user_deletes(&namespace("kube-node-lease"), Propagation::Background);
    settle(&mut controllers, &world);
    assert_ne!(world.object(&namespace("kube-node-lease")).unwrap().uid, first);
}

#[test]
fn a_deleted_default_service_account_is_recreated() {
    let (mut controllers, world) = (all_controllers(), World::new());
    let account = Place::new("", "v1", "ServiceAccount", "ns", "default");
    world.put(&namespace("ns"), json!({}));
    settle(&mut controllers, &world);
    let first = world.object(&account).unwrap().uid;
    world.user_deletes(&account, Propagation::Background);
    settle(&mut controllers, &world);
    assert_ne!(world.object(&account).unwrap().uid, first);

    world.user_deletes(&account, Propagation::Background);
    world.take_changes();
    controllers.take(&Change::Relisted(account.kind.clone(), world.list(&account.kind, None)));
    settle(&mut controllers, &world);
    assert!(exists(&world, &account), "also when its deletion event was missed");
}

#[test]
fn the_root_certificate_is_published_to_every_namespace_and_edits_are_reverted() {
    let (mut controllers, world) = (all_controllers(), World::new());
    controllers.take(&Change::Trusted("certificate".into()));
    let place = Place::new("", "v1", "ConfigMap", "kube-system", "kube-root-ca.crt");
    settle(&mut controllers, &world);
    world.user_edits(&place, |object| object["data"] = json!({"ca.crt": "forged"}));
    settle(&mut controllers, &world);
    assert_eq!(world.read(&place).unwrap()["data"], json!({"ca.crt": "certificate"}));
}

#[test]
fn without_cluster_controllers_system_namespaces_exist_and_deletions_do_not_finish() {
    let options = ControllerOptions { has_cluster_controllers: false };
    let (mut controllers, world) = (Controllers::new(options), World::new());
    controllers.take(&Change::Trusted("certificate".into()));
    settle(&mut controllers, &world);
    assert_eq!(world.all().len(), 4, "four namespaces and nothing in them");
    world.put(&namespace("ns"), json!({}));
    world.user_deletes(&namespace("ns"), Propagation::Background);
    let stray = json!({"metadata": {"ownerReferences": [reference(&config_map("nobody"), "no-uid", false)]}});
    world.put(&config_map("stray"), stray);
    settle(&mut controllers, &world);
    assert!(exists(&world, &namespace("ns")) && exists(&world, &config_map("stray")));
}

#[test]
fn deleting_a_namespace_deletes_its_contents() {
    let (mut controllers, world) = (all_controllers(), World::new());
    world.serve("example.com", "v1", "Foo", "foos", true);
    world.put(&namespace("ns"), json!({}));
    world.put(&Place::new("", "v1", "ConfigMap", "other", "stays"), json!({}));
    for name in 0..200 {
        world.put(&config_map(&format!("c{name}")), json!({}));
    }
    world.put(&Place::new("example.com", "v1", "Foo", "ns", "foo"), json!({}));
    world.put(&Place::new("", "v1", "Pod", "ns", "pending"), json!({}));
    settle(&mut controllers, &world);
    world.user_deletes(&namespace("ns"), Propagation::Background);
    settle(&mut controllers, &world);
    assert!(!exists(&world, &namespace("ns")));
    assert!(world.all().iter().all(|object| &*object.place.namespace != "ns"));
    assert!(exists(&world, &Place::new("", "v1", "ConfigMap", "other", "stays")));
}

#[test]
fn objects_created_while_a_namespace_terminates_are_deleted() {
    let (mut controllers, world) = (all_controllers(), World::new());
    world.put(&namespace("ns"), json!({}));
    world.user_deletes(&namespace("ns"), Propagation::Background);
    settle(&mut controllers, &world);
    world.put(&config_map("late"), json!({}));
    settle(&mut controllers, &world);
    assert!(!exists(&world, &config_map("late")));
    world.put(&namespace("ns"), json!({}));
    world.put(&config_map("in-time"), json!({}));
    settle(&mut controllers, &world);
    assert!(exists(&world, &config_map("in-time")));
}

#[test]
fn a_terminating_namespace_reports_remaining_content_in_its_conditions() {
    let (mut controllers, world) = (all_controllers(), World::new());
    world.put(&namespace("ns"), json!({}));
    world.put(&config_map("kept"), json!({"metadata": {"finalizers": ["example.com/keep"]}}));
    world.put(&config_map("free"), json!({}));
    world.user_deletes(&namespace("ns"), Propagation::Background);
    settle(&mut controllers, &world);
    assert!(!exists(&world, &config_map("free")));
    assert!(
        !exists(&world, &Place::new("", "v1", "ServiceAccount", "ns", "default")),
        "it does not come back"
    );
    let object = world.read(&namespace("ns")).unwrap();
    assert_eq!(object["status"]["phase"], "Terminating");
    assert_eq!(
        condition(&object, "NamespaceContentRemaining")["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        condition(&object, "NamespaceFinalizersRemaining")["message"],
        "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
    );
    world.user_edits(&config_map("kept"), |object| object["metadata"]["finalizers"] = json!([]));
    settle(&mut controllers, &world);
    assert!(!exists(&world, &namespace("ns")));
}

#[test]
fn pods_are_deleted_first_and_after_their_grace_period_if_their_node_is_missing() {
    let (mut controllers, world) = (all_controllers(), World::new());
    let node = Place::new("", "v1", "Node", "", "node");
    world.put(&node, json!({}));
    world.put(&namespace("ns"), json!({}));
    world.put(&config_map("needed"), json!({}));
    let pod = |name: &str| Place::new("", "v1", "Pod", "ns", name);
    world.put(&pod("running"), json!({"spec": {"nodeName": "node"}}));
    world.put(&pod("lost"), json!({"spec": {"nodeName": "nowhere"}}));
    world.put(&pod("pending"), json!({}));
    world.user_deletes(&namespace("ns"), Propagation::Background);
    let before = world.now();
    settle(&mut controllers, &world);
    assert!(world.now() >= before + Duration::from_secs(30), "the grace period is given");
    assert!(exists(&world, &pod("running")) && exists(&world, &config_map("needed")));
    assert!(!exists(&world, &pod("lost")) && !exists(&world, &pod("pending")));

    world.user_deletes(&node, Propagation::Background);
    settle(&mut controllers, &world);
    assert!(!exists(&world, &namespace("ns")), "with its node, the last pod has nobody to wait for");
}

#[test]
fn a_rejected_deletion_is_reported_and_retried() {
    let (mut controllers, world) = (all_controllers(), World::new());
    world.put(&namespace("ns"), json!({}));
    world.put(&config_map("refused"), json!({}));
    world.refused.set(Some("refused"));
    world.user_deletes(&namespace("ns"), Propagation::Background);
    for _ in 0..100 {
        world.take_changes().iter().for_each(|change| controllers.take(change));
        controllers.step(Duration::ZERO, &world);
    }
    let object = world.read(&namespace("ns")).unwrap();
    assert_eq!(condition(&object, "NamespaceDeletionContentFailure")["reason"], "ContentDeletionFailed");
    assert!(controllers.next_due().is_some_and(|due| due > Duration::ZERO), "later, not at once");
    world.refused.set(None);
    settle(&mut controllers, &world);
    assert!(!exists(&world, &namespace("ns")));
}

fn definition(status: &str) -> Value {
    json!({
        "metadata": {"finalizers": ["customresourcecleanup.apiextensions.k8s.io"]},
        "spec": {"group": "example.com", "names": {"kind": "Foo", "plural": "foos"}},
        "status": {"conditions": [{"type": "Established", "status": status}]},
    })
}

fn definition_place() -> Place {
    Place::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "foos.example.com")
}

#[test]
fn a_definition_is_removed_after_its_custom_objects() {
    // The clean-up of definitions is part of the API server, not of the controller manager.
    for has_cluster_controllers in [true, false] {
        let options = ControllerOptions { has_cluster_controllers };
        let (mut controllers, world) = (Controllers::new(options), World::new());
        world.serve("example.com", "v1", "Foo", "foos", true);
        let foo = |name: &str| Place::new("example.com", "v1", "Foo", "ns", name);
        world.put(&definition_place(), definition("True"));
        for name in 0..100 {
            world.put(&foo(&format!("f{name}")), json!({}));
        }
        world.put(&foo("kept"), json!({"metadata": {"finalizers": ["example.com/keep"]}}));
        world.user_deletes(&definition_place(), Propagation::Background);
        settle(&mut controllers, &world);
        assert_eq!(world.list(&foo("").kind, None).len(), 1);
        let object = world.read(&definition_place()).unwrap();
        let terminating = condition(&object, "Terminating");
        assert_eq!(
            (&terminating["status"], &terminating["reason"]),
            (&json!("True"), &json!("InstanceDeletionInProgress"))
        );

        world.user_edits(&foo("kept"), |object| object["metadata"]["finalizers"] = json!([]));
        settle(&mut controllers, &world);
        assert!(!exists(&world, &definition_place()));
    }
}

#[test]
fn a_definition_that_was_never_established_is_removed_immediately() {
    let (mut controllers, world) = (all_controllers(), World::new());
    world.put(&definition_place(), definition("False"));
    world.user_deletes(&definition_place(), Propagation::Background);
    settle(&mut controllers, &world);
    assert!(!exists(&world, &definition_place()));
}

#[test]
fn conflicts_are_retried_until_the_deletion_completes() {
    let (mut controllers, world) = (all_controllers(), World::new());
    world.put(&namespace("ns"), json!({}));
    world.put(&config_map("a"), json!({}));
    settle(&mut controllers, &world);
    world.user_deletes(&namespace("ns"), Propagation::Background);
    world.conflicts.set(10);
    settle(&mut controllers, &world);
    assert_eq!(world.conflicts.get(), 0);
    assert!(!exists(&world, &namespace("ns")));
}

/// The changes of an in-memory server, and the number of times they were taken.
struct WorldFeed<'a> {
    world: &'a World,
    asked: &'a Cell<usize>,
}

impl Feed for WorldFeed<'_> {
    async fn wait(&mut self) -> bool {
        self.world.changed.notified().await;
        true
    }

    fn take(&mut self, changes: &mut Vec<Change>) {
        self.asked.set(self.asked.get() + 1);
        changes.extend(self.world.take_changes());
    }
}

/// Runs the controllers on the driver beside `test`, and stops them afterwards.
async fn beside_driver(world: &World, asked: &Cell<usize>, test: impl AsyncFnOnce()) {
    let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
    let (stop, is_stopped) = watch::channel(false);
    let driven = driver::run(all_controllers(), world, WorldFeed { world, asked }, &clock, is_stopped);
    let test = async {
        test().await;
        stop.send_replace(true);
    };
    tokio::join!(driven, test);
}

#[tokio::test(start_paused = true)]
async fn the_driver_reacts_to_events_and_stops_on_shutdown() {
    let (world, asked) = (World::new(), Cell::default());
    beside_driver(&world, &asked, async || {
        let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
        let mut is_gone = false;
        world.put(&namespace("ns"), json!({}));
        world.put(&config_map("a"), json!({}));
        world.user_deletes(&namespace("ns"), Propagation::Background);
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
            is_gone |= !exists(&world, &namespace("ns"));
        }
        assert!(is_gone);
        assert_eq!(clock.wall_time(), SystemTime::UNIX_EPOCH, "it took no time");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_driver_sleeps_while_no_work_is_due() {
    let (world, asked) = (World::new(), Cell::default());
    world.put(&namespace("ns"), json!({}));
    world.put(&config_map("kept"), json!({"metadata": {"finalizers": ["example.com/keep"]}}));
    world.put(&config_map("refused"), json!({}));
    world.refused.set(Some("refused"));
    world.user_deletes(&namespace("ns"), Propagation::Background);
    beside_driver(&world, &asked, async || {
        tokio::time::sleep(Duration::from_mins(1)).await;
        let before = asked.get();
        tokio::time::sleep(Duration::from_hours(1)).await;
        let retries = asked.get() - before;
        assert!((50..500).contains(&retries), "about once a minute, not {retries} times in an hour");
        world.refused.set(None);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert!(!exists(&world, &config_map("refused")));
        let before = asked.get();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(asked.get(), before, "a finalizer is waited for without looking");
        world.user_edits(&config_map("kept"), |object| object["metadata"]["finalizers"] = json!([]));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!exists(&world, &namespace("ns")));
    })
    .await;
}

#[test]
fn aggregated_cluster_roles_converge_to_the_rules_of_selected_roles() {
    let (mut controllers, world) = (all_controllers(), World::new());
    let role = |name: &str| Place::new("rbac.authorization.k8s.io", "v1", "ClusterRole", "", name);
    let selecting = |label: &str| json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    world.put(&role("reader"), json!({"metadata": {"labels": {"to-a": "true"}}, "rules": rules}));
    for (name, own, other) in [("a", "to-b", "to-a"), ("b", "to-c", "to-b"), ("c", "to-a", "to-c")] {
        let labels = json!({ own: "true" });
        world.put(&role(name), json!({"metadata": {"labels": labels}, "aggregationRule": selecting(other)}));
    }
    settle(&mut controllers, &world);
    for name in ["a", "b", "c"] {
        assert_eq!(world.read(&role(name)).unwrap()["rules"], rules, "{name}");
    }
    world.user_edits(&role("reader"), |reader| reader["metadata"]["labels"] = json!({}));
    settle(&mut controllers, &world);
    for name in ["a", "b", "c"] {
        assert_eq!(world.read(&role(name)).unwrap()["rules"], json!([]), "{name}");
    }
}
