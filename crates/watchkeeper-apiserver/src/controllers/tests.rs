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
    garbage::LiveReads,
    in_memory_server::{InMemoryServer, config_map, reference},
    object::ObjectRef,
    objects::{Objects, ServerEvent},
};
use crate::{Clock, TokioClock, rest::Propagation};

fn all_controllers() -> Controllers {
    Controllers::new(ControllerOptions { has_cluster_controllers: true })
}

/// Delivers every change and runs every step. The date advances to the next due time, as long as that is near.
fn settle(controllers: &mut Controllers, server: &InMemoryServer) {
    const PATIENCE: Duration = Duration::from_mins(5);
    let mut now = Duration::ZERO;
    for _ in 0..20_000 {
        server.drain_events().iter().for_each(|change| controllers.handle(change));
        if !controllers.step(now, server) {
            match controllers.next_due() {
                Some(due) if due < PATIENCE => {
                    server.advance(due.saturating_sub(now));
                    now = now.max(due);
                }
                _ => return,
            }
        }
    }
    panic!("the controllers do not converge: {controllers:#?}");
}

fn namespace(name: &str) -> ObjectRef {
    ObjectRef::new("", "v1", "Namespace", "", name)
}

fn exists(server: &InMemoryServer, object_ref: &ObjectRef) -> bool {
    server.object(object_ref).is_some()
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
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    settle(&mut controllers, &server);
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        assert!(exists(&server, &namespace(name)), "{name}");
        assert!(exists(&server, &ObjectRef::new("", "v1", "ServiceAccount", name, "default")), "{name}");
    }
    let first = server.object(&namespace("kube-node-lease")).unwrap().uid;
    server.user_deletes(&namespace("kube-node-lease"), Propagation::Background);
    settle(&mut controllers, &server);
    assert_ne!(server.object(&namespace("kube-node-lease")).unwrap().uid, first);
}

#[test]
fn a_deleted_default_service_account_is_recreated() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    let account = ObjectRef::new("", "v1", "ServiceAccount", "ns", "default");
    server.put(&namespace("ns"), json!({}));
    settle(&mut controllers, &server);
    let first = server.object(&account).unwrap().uid;
    server.user_deletes(&account, Propagation::Background);
    settle(&mut controllers, &server);
    assert_ne!(server.object(&account).unwrap().uid, first);

    server.user_deletes(&account, Propagation::Background);
    server.drain_events();
    controllers.handle(&ServerEvent::Relisted(account.kind.clone(), server.list(&account.kind, None)));
    settle(&mut controllers, &server);
    assert!(exists(&server, &account), "also when its deletion event was missed");
}

#[test]
fn the_root_certificate_is_published_to_every_namespace_and_edits_are_reverted() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    controllers.handle(&ServerEvent::CertificateAuthority("certificate".into()));
    let object_ref = ObjectRef::new("", "v1", "ConfigMap", "kube-system", "kube-root-ca.crt");
    settle(&mut controllers, &server);
    server.user_edits(&object_ref, |object| object["data"] = json!({"ca.crt": "forged"}));
    settle(&mut controllers, &server);
    assert_eq!(server.read(&object_ref).unwrap()["data"], json!({"ca.crt": "certificate"}));
}

#[test]
fn without_cluster_controllers_system_namespaces_exist_and_deletions_do_not_finish() {
    let options = ControllerOptions { has_cluster_controllers: false };
    let (mut controllers, server) = (Controllers::new(options), InMemoryServer::new());
    controllers.handle(&ServerEvent::CertificateAuthority("certificate".into()));
    settle(&mut controllers, &server);
    assert_eq!(server.all().len(), 4, "four namespaces and nothing in them");
    server.put(&namespace("ns"), json!({}));
    server.user_deletes(&namespace("ns"), Propagation::Background);
    let stray = json!({"metadata": {"ownerReferences": [reference(&config_map("nobody"), "no-uid", false)]}});
    server.put(&config_map("stray"), stray);
    settle(&mut controllers, &server);
    assert!(exists(&server, &namespace("ns")) && exists(&server, &config_map("stray")));
}

#[test]
fn deleting_a_namespace_deletes_its_contents() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    server.serve("example.com", "v1", "Foo", "foos", true);
    server.put(&namespace("ns"), json!({}));
    server.put(&ObjectRef::new("", "v1", "ConfigMap", "other", "stays"), json!({}));
    for name in 0..200 {
        server.put(&config_map(&format!("c{name}")), json!({}));
    }
    server.put(&ObjectRef::new("example.com", "v1", "Foo", "ns", "foo"), json!({}));
    server.put(&ObjectRef::new("", "v1", "Pod", "ns", "pending"), json!({}));
    settle(&mut controllers, &server);
    server.user_deletes(&namespace("ns"), Propagation::Background);
    settle(&mut controllers, &server);
    assert!(!exists(&server, &namespace("ns")));
    assert!(server.all().iter().all(|object| &*object.object_ref.namespace != "ns"));
    assert!(exists(&server, &ObjectRef::new("", "v1", "ConfigMap", "other", "stays")));
}

#[test]
fn objects_created_while_a_namespace_terminates_are_deleted() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    server.put(&namespace("ns"), json!({}));
    server.user_deletes(&namespace("ns"), Propagation::Background);
    settle(&mut controllers, &server);
    server.put(&config_map("late"), json!({}));
    settle(&mut controllers, &server);
    assert!(!exists(&server, &config_map("late")));
    server.put(&namespace("ns"), json!({}));
    server.put(&config_map("in-time"), json!({}));
    settle(&mut controllers, &server);
    assert!(exists(&server, &config_map("in-time")));
}

#[test]
fn a_terminating_namespace_reports_remaining_content_in_its_conditions() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    server.put(&namespace("ns"), json!({}));
    server.put(&config_map("kept"), json!({"metadata": {"finalizers": ["example.com/keep"]}}));
    server.put(&config_map("free"), json!({}));
    server.user_deletes(&namespace("ns"), Propagation::Background);
    settle(&mut controllers, &server);
    assert!(!exists(&server, &config_map("free")));
    assert!(
        !exists(&server, &ObjectRef::new("", "v1", "ServiceAccount", "ns", "default")),
        "the object is not recreated"
    );
    let object = server.read(&namespace("ns")).unwrap();
    assert_eq!(object["status"]["phase"], "Terminating");
    assert_eq!(
        condition(&object, "NamespaceContentRemaining")["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        condition(&object, "NamespaceFinalizersRemaining")["message"],
        "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
    );
    server.user_edits(&config_map("kept"), |object| object["metadata"]["finalizers"] = json!([]));
    settle(&mut controllers, &server);
    assert!(!exists(&server, &namespace("ns")));
}

#[test]
fn pods_are_deleted_first_and_after_their_grace_period_if_their_node_is_missing() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    let node = ObjectRef::new("", "v1", "Node", "", "node");
    server.put(&node, json!({}));
    server.put(&namespace("ns"), json!({}));
    server.put(&config_map("needed"), json!({}));
    let pod = |name: &str| ObjectRef::new("", "v1", "Pod", "ns", name);
    server.put(&pod("running"), json!({"spec": {"nodeName": "node"}}));
    server.put(&pod("lost"), json!({"spec": {"nodeName": "nowhere"}}));
    server.put(&pod("pending"), json!({}));
    server.user_deletes(&namespace("ns"), Propagation::Background);
    let before = server.now();
    settle(&mut controllers, &server);
    assert!(server.now() >= before + Duration::from_secs(30), "the grace period is given");
    assert!(exists(&server, &pod("running")) && exists(&server, &config_map("needed")));
    assert!(!exists(&server, &pod("lost")) && !exists(&server, &pod("pending")));

    server.user_deletes(&node, Propagation::Background);
    settle(&mut controllers, &server);
    assert!(!exists(&server, &namespace("ns")), "the last pod is deleted once its node is deleted");
}

#[test]
fn a_rejected_deletion_is_reported_and_retried() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    server.put(&namespace("ns"), json!({}));
    server.put(&config_map("refused"), json!({}));
    server.refused.set(Some("refused"));
    server.user_deletes(&namespace("ns"), Propagation::Background);
    for _ in 0..100 {
        server.drain_events().iter().for_each(|change| controllers.handle(change));
        controllers.step(Duration::ZERO, &server);
    }
    let object = server.read(&namespace("ns")).unwrap();
    assert_eq!(condition(&object, "NamespaceDeletionContentFailure")["reason"], "ContentDeletionFailed");
    assert!(controllers.next_due().is_some_and(|due| due > Duration::ZERO), "later, not at once");
    server.refused.set(None);
    settle(&mut controllers, &server);
    assert!(!exists(&server, &namespace("ns")));
}

fn definition(status: &str) -> Value {
    json!({
        "metadata": {"finalizers": ["customresourcecleanup.apiextensions.k8s.io"]},
        "spec": {"group": "example.com", "names": {"kind": "Foo", "plural": "foos"}},
        "status": {"conditions": [{"type": "Established", "status": status}]},
    })
}

fn definition_place() -> ObjectRef {
    ObjectRef::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "foos.example.com")
}

#[test]
fn a_definition_is_removed_after_its_custom_objects() {
    // The clean-up of definitions is part of the API server, not of the controller manager.
    for has_cluster_controllers in [true, false] {
        let options = ControllerOptions { has_cluster_controllers };
        let (mut controllers, server) = (Controllers::new(options), InMemoryServer::new());
        server.serve("example.com", "v1", "Foo", "foos", true);
        let foo = |name: &str| ObjectRef::new("example.com", "v1", "Foo", "ns", name);
        server.put(&definition_place(), definition("True"));
        for name in 0..100 {
            server.put(&foo(&format!("f{name}")), json!({}));
        }
        server.put(&foo("kept"), json!({"metadata": {"finalizers": ["example.com/keep"]}}));
        server.user_deletes(&definition_place(), Propagation::Background);
        settle(&mut controllers, &server);
        assert_eq!(server.list(&foo("").kind, None).len(), 1);
        let object = server.read(&definition_place()).unwrap();
        let terminating = condition(&object, "Terminating");
        assert_eq!(
            (&terminating["status"], &terminating["reason"]),
            (&json!("True"), &json!("InstanceDeletionInProgress"))
        );

        server.user_edits(&foo("kept"), |object| object["metadata"]["finalizers"] = json!([]));
        settle(&mut controllers, &server);
        assert!(!exists(&server, &definition_place()));
    }
}

#[test]
fn a_definition_that_was_never_established_is_removed_immediately() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    server.put(&definition_place(), definition("False"));
    server.user_deletes(&definition_place(), Propagation::Background);
    settle(&mut controllers, &server);
    assert!(!exists(&server, &definition_place()));
}

#[test]
fn conflicts_are_retried_until_the_deletion_completes() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    server.put(&namespace("ns"), json!({}));
    server.put(&config_map("a"), json!({}));
    settle(&mut controllers, &server);
    server.user_deletes(&namespace("ns"), Propagation::Background);
    server.conflicts.set(10);
    settle(&mut controllers, &server);
    assert_eq!(server.conflicts.get(), 0);
    assert!(!exists(&server, &namespace("ns")));
}

/// The changes of an in-memory server, and the number of times they were taken.
struct InMemoryFeed<'a> {
    server: &'a InMemoryServer,
    calls: &'a Cell<usize>,
}

impl Feed for InMemoryFeed<'_> {
    async fn wait(&mut self) -> bool {
        self.server.changed.notified().await;
        true
    }

    fn drain_into(&mut self, changes: &mut Vec<ServerEvent>) {
        self.calls.set(self.calls.get() + 1);
        changes.extend(self.server.drain_events());
    }
}

/// Runs the controllers on the driver beside `test`, and stops them afterwards.
async fn with_driver(server: &InMemoryServer, calls: &Cell<usize>, test: impl AsyncFnOnce()) {
    let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
    let (stop, is_stopped) = watch::channel(false);
    let driven = driver::run(all_controllers(), server, InMemoryFeed { server, calls }, &clock, is_stopped);
    let test = async {
        test().await;
        stop.send_replace(true);
    };
    tokio::join!(driven, test);
}

#[tokio::test(start_paused = true)]
async fn the_driver_reacts_to_events_and_stops_on_shutdown() {
    let (server, calls) = (InMemoryServer::new(), Cell::default());
    with_driver(&server, &calls, async || {
        let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
        let mut is_deleted = false;
        server.put(&namespace("ns"), json!({}));
        server.put(&config_map("a"), json!({}));
        server.user_deletes(&namespace("ns"), Propagation::Background);
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
            is_deleted |= !exists(&server, &namespace("ns"));
        }
        assert!(is_deleted);
        assert_eq!(clock.wall_time(), SystemTime::UNIX_EPOCH, "no time passed");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_driver_sleeps_while_no_work_is_due() {
    let (server, calls) = (InMemoryServer::new(), Cell::default());
    server.put(&namespace("ns"), json!({}));
    server.put(&config_map("kept"), json!({"metadata": {"finalizers": ["example.com/keep"]}}));
    server.put(&config_map("refused"), json!({}));
    server.refused.set(Some("refused"));
    server.user_deletes(&namespace("ns"), Propagation::Background);
    with_driver(&server, &calls, async || {
        tokio::time::sleep(Duration::from_mins(1)).await;
        let before = calls.get();
        tokio::time::sleep(Duration::from_hours(1)).await;
        let retries = calls.get() - before;
        assert!((50..500).contains(&retries), "about once a minute, not {retries} times in an hour");
        server.refused.set(None);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert!(!exists(&server, &config_map("refused")));
        let before = calls.get();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(calls.get(), before, "waiting for a finalizer does not poll");
        server.user_edits(&config_map("kept"), |object| object["metadata"]["finalizers"] = json!([]));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!exists(&server, &namespace("ns")));
    })
    .await;
}

#[test]
fn aggregated_cluster_roles_converge_to_the_rules_of_selected_roles() {
    let (mut controllers, server) = (all_controllers(), InMemoryServer::new());
    let role = |name: &str| ObjectRef::new("rbac.authorization.k8s.io", "v1", "ClusterRole", "", name);
    let selecting = |label: &str| json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    server.put(&role("reader"), json!({"metadata": {"labels": {"to-a": "true"}}, "rules": rules}));
    for (name, own, other) in [("a", "to-b", "to-a"), ("b", "to-c", "to-b"), ("c", "to-a", "to-c")] {
        let labels = json!({ own: "true" });
        server.put(&role(name), json!({"metadata": {"labels": labels}, "aggregationRule": selecting(other)}));
    }
    settle(&mut controllers, &server);
    for name in ["a", "b", "c"] {
        assert_eq!(server.read(&role(name)).unwrap()["rules"], rules, "{name}");
    }
    server.user_edits(&role("reader"), |reader| reader["metadata"]["labels"] = json!({}));
    settle(&mut controllers, &server);
    for name in ["a", "b", "c"] {
        assert_eq!(server.read(&role(name)).unwrap()["rules"], json!([]), "{name}");
    }
}
