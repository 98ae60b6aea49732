//! Mappings from changes to keys.

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace},
};
use kube_core::{Expression, ObjectMeta};
use serde_json::json;
use watchkeeper_controller::{
    Change, ChangeKind, Controller, Triggers, Watch, each_metadata, each_state,
    predicate::{
        Predicate, annotations_changed, finalizers_changed, generation_changed, labels_changed, labels_match,
        not, resource_version_changed,
    },
};
use watchkeeper_informer::{
    Cached, MetadataRef, ObjectKey, SharedInformerFactory,
    event::{Deleted, Event},
    factory::Scope,
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_object_enqueues_its_controller_and_both_when_the_controller_changes() {
    let server = server();
    let client = server.client();
    let api = deployments(&client);
    let log = Log::new();
    let controller = Controller::<ConfigMap>::new(client).owns::<Deployment>();
    let running = started(controller.reconcile_with(log.noting())).await;
    log.take();

    let cases = [
        ("by-one", vec![owner("ConfigMap", "a", true)], vec!["default/a"]),
        ("not-controlled", vec![owner("ConfigMap", "a", false)], vec![]),
        ("other-kind", vec![owner("ReplicaSet", "a", true)], vec![]),
        ("by-two", vec![owner("ConfigMap", "a", false), owner("ConfigMap", "b", true)], vec!["default/b"]),
        ("by-nobody", vec![], vec![]),
    ];
    for (name, owners, expected) in cases {
        create(&api, &owned(deployment(name), &owners)).await;
        settle().await;
        let logged = log.take();
        assert!(logged.iter().all(|logged| logged.causes == format!("event of Deployment default/{name}")));
        assert_eq!(logged.into_iter().map(|logged| logged.key).collect::<Vec<_>>(), expected, "{name}");
    }

    let handed_over = json!({"metadata": {"ownerReferences": [owner("ConfigMap", "c", true)]}});
    patch(&api, "by-one", handed_over).await;
    settle().await;
    assert_eq!(log.take_keys(), ["default/a", "default/c"]);
    delete(&api, "by-one").await;
    settle().await;
    assert_eq!(log.take_keys(), ["default/c"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn owners_are_distinguished_by_group_and_scope() {
    let server = server();
    let client = server.client();
    install_foos(&client).await;
    settle().await;
    let log = Log::new();
    let of_foos = Controller::<Foo>::new(client.clone()).owns::<ConfigMap>();
    let of_foos = started(of_foos.reconcile_with(log.noting())).await;
    let namespaces = Log::new();
    let of_namespaces = Controller::<Namespace>::new(client.clone()).owns::<ConfigMap>();
    let of_namespaces = started(of_namespaces.reconcile_with(namespaces.noting())).await;
    log.take();
    namespaces.take();

    let reference = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u", "controller": true});
    let cases = [
        ("same-group-other-version", reference("example.com/v9", "Foo"), vec!["default/x"], vec![]),
        ("other-group", reference("example.org/v1", "Foo"), vec![], vec![]),
        ("core", reference("v1", "Foo"), vec![], vec![]),
        ("namespace", reference("v1", "Namespace"), vec![], vec!["x"]),
    ];
    for (name, owner, foos, of_cluster) in cases {
        let mut map = map(name);
        map.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
        create(&maps(&client), &map).await;
        settle().await;
        assert_eq!(
            (log.take_keys(), namespaces.take_keys()),
            (
                foos.into_iter().map(String::from).collect(),
                of_cluster.into_iter().map(String::from).collect(),
            ),
            "{name}"
        );
    }
    of_foos.stop().await;
    of_namespaces.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_receives_the_old_and_the_new_state() {
    let server = server();
    let client = server.client();
    let api = deployments(&client);
    let log = Log::new();
    let uses = |deployment: &Deployment| {
        let uses = deployment.metadata.annotations.as_ref()?.get("uses")?;
        ObjectKey::new(Some("default"), uses).ok()
    };
    let named_by_label =
        |metadata: MetadataRef<'_>| ObjectKey::new(metadata.namespace(), metadata.label("instance")?).ok();
    let by_hand = |change: Change<'_, Deployment>| match (change.kind(), change.before(), change.after()) {
        (ChangeKind::Updated, Some(before), Some(after)) => {
            assert_ne!(before.resource_version(), after.resource_version());
            vec![key("default/updated")]
        }
        (ChangeKind::Deleted, Some(_), None) => vec![key("default/deleted")],
        _ => vec![],
    };
    let factory = SharedInformerFactory::new(client);
    let controller = Controller::<ConfigMap>::on(&factory)
        .watches::<Deployment, _>(each_state(uses))
        .watches::<Deployment, _>(each_metadata(named_by_label))
        .watches_informer(&factory.informer::<Deployment>(), by_hand);
    let running = started(controller.reconcile_with(log.noting())).await;
    log.take();

    let uses = |name: &str| {
        let instance = format!("instance-{name}");
        json!({"metadata": {"annotations": {"uses": name}, "labels": {"instance": instance}}})
    };
    create(&api, &deployment("web")).await;
    patch(&api, "web", uses("a")).await;
    settle().await;
    log.take();
    patch(&api, "web", uses("b")).await;
    settle().await;
    let mut keys = log.take_keys();
    keys.sort();
    assert_eq!(
        keys,
        ["default/a", "default/b", "default/instance-a", "default/instance-b", "default/updated"]
    );
    delete(&api, "web").await;
    settle().await;
    let mut keys = log.take_keys();
    keys.sort();
    assert_eq!(keys, ["default/b", "default/deleted", "default/instance-b"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_that_panics_loses_its_event_only() {
    let server = server();
    let client = server.client();
    let log = Log::new();
    let map_all = |change: Change<'_, Deployment>| {
        assert_ne!(change.object().metadata().name(), "bad", "panics on purpose");
        vec![key("default/mapped")]
    };
    let controller = Controller::<ConfigMap>::new(client.clone()).watches::<Deployment, _>(map_all);
    let running = started(controller.reconcile_with(log.noting())).await;
    log.take();
    create(&deployments(&client), &deployment("bad")).await;
    create(&deployments(&client), &deployment("good")).await;
    settle().await;
    assert_eq!(log.take_keys(), ["default/mapped"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn triggers_wait_for_a_controller_and_are_sent_to_every_connected_one() {
    let server = server();
    let triggers = Triggers::new();
    triggers.send(key("default/early"), because("first"));
    triggers.send(key("default/early"), because("second"));
    let (one, two) = (Log::new(), Log::new());
    let make = |log: &Log| {
        Controller::<ConfigMap>::new(server.client()).channel(&triggers).reconcile_with(log.noting())
    };
    let first = started(make(&one)).await;
    assert_eq!(
        one.take().last().map(|logged| (logged.key.clone(), logged.causes.clone())),
        Some(("default/early".to_owned(), "first".to_owned()))
    );
    let second = Arc::new(make(&two));
    let running = Running::start(&second);
    settle().await;
    two.take();
    triggers.send(key("default/late"), because("test"));
    settle().await;
    assert_eq!(
        (one.take_keys(), two.take_keys()),
        (vec!["default/late".into()], vec!["default/late".to_owned()])
    );
    running.stop().await;
    drop(second);
    first.stop().await;
    assert_eq!(format!("{triggers:?}"), "Triggers { controllers: 0, waiting: 0 }");
}

#[tokio::test(start_paused = true)]
async fn only_changes_that_a_filter_admits_are_reconciled() {
    let server = server();
    let client = server.client();
    let api = deployments(&client);
    create(&api, &deployment("web")).await;
    let log = Log::new();
    let controller = Controller::<Deployment>::new(client.clone())
        .filter(generation_changed())
        .filter(|change: Change<'_, Deployment>| change.object().metadata().name() != "hidden");
    let running = started(controller.reconcile_with(log.noting())).await;
    assert_eq!(log.take_keys(), ["default/web"]);
    create(&api, &deployment("hidden")).await;
    patch(&api, "web", json!({"metadata": {"labels": {"a": "b"}}})).await;
    settle().await;
    assert_eq!(log.take_keys(), [""; 0]);
    patch(&api, "web", json!({"spec": {"replicas": 3}})).await;
    settle().await;
    assert_eq!(log.take_keys(), ["default/web"]);

    let owned_log = Log::new();
    let watching = Watch::<Deployment>::within(Scope::namespace("default")).filter(generation_changed());
    let controller = Controller::<ConfigMap>::new(client.clone()).owns_with(watching);
    let owning = started(controller.reconcile_with(owned_log.noting())).await;
    create(&api, &owned(deployment("child"), &[owner("ConfigMap", "a", true)])).await;
    settle().await;
    owned_log.take();
    patch(&api, "child", json!({"metadata": {"labels": {"a": "b"}}})).await;
    settle().await;
    assert_eq!(owned_log.take_keys(), [""; 0]);
    patch(&api, "child", json!({"spec": {"replicas": 3}})).await;
    settle().await;
    assert_eq!(owned_log.take_keys(), ["default/a"]);
    running.stop().await;
    owning.stop().await;
}

type Admits = Box<dyn Fn(Change<'_, ConfigMap>) -> bool>;

/// Returns an object with this metadata.
fn with(metadata: serde_json::Value) -> Cached<ConfigMap> {
    let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
    Cached::from(ConfigMap { metadata, ..ConfigMap::default() })
}

#[test]
fn each_predicate_admits_the_documented_changes() {
    let base =
        || with(json!({"name": "a", "generation": 1, "resourceVersion": "1", "labels": {"app": "web"}}));
    let update = |new: serde_json::Value| Event::Updated { old: base(), new: with(new) };
    let deleted = Deleted { object: base(), last_seen: base(), final_state_unknown: false };
    let label = |value: &str| labels_match(Expression::Equal("app".into(), value.into()).into());
    let is = |predicate: Admits| predicate;
    let predicates = [
        ("generation", is(Box::new(|change| generation_changed().admits(change)))),
        ("version", is(Box::new(|change| resource_version_changed().admits(change)))),
        ("labels", is(Box::new(|change| labels_changed().admits(change)))),
        ("annotations", is(Box::new(|change| annotations_changed().admits(change)))),
        ("finalizers", is(Box::new(|change| finalizers_changed().admits(change)))),
        ("app=web", is(Box::new(move |change| label("web").admits(change)))),
        ("app=db", is(Box::new(move |change| label("db").admits(change)))),
        ("not labels", is(Box::new(|change| not(labels_changed()).admits(change)))),
        (
            "labels and annotations",
            is(Box::new(|change| labels_changed().and(annotations_changed()).admits(change))),
        ),
        (
            "labels or annotations",
            is(Box::new(|change| labels_changed().or(annotations_changed()).admits(change))),
        ),
    ];
    let cases = [
        (
            Event::Added { object: base(), is_initial: true },
            "generation version labels annotations finalizers app=web labels-and-annotations labels-or-annotations",
        ),
        (
            Event::Added { object: base(), is_initial: false },
            "generation version labels annotations finalizers app=web labels-and-annotations labels-or-annotations",
        ),
        (
            Event::Deleted(deleted),
            "generation version labels annotations finalizers app=web labels-and-annotations labels-or-annotations",
        ),
        (Event::Synced(base()), "app=web not-labels"),
        (
            update(json!({"generation": 2, "resourceVersion": "2", "labels": {"app": "web"}})),
            "generation version app=web not-labels",
        ),
        (
            update(json!({"generation": 1, "resourceVersion": "2", "labels": {"app": "web"}})),
            "version app=web not-labels",
        ),
        (
            update(json!({"resourceVersion": "2", "labels": {"app": "web"}})),
            "generation version app=web not-labels",
        ),
        (
            update(json!({"generation": 1, "resourceVersion": "2", "labels": {"app": "db"}})),
            "version labels app=web app=db labels-or-annotations",
        ),
        (
            update(json!({"generation": 1, "resourceVersion": "2"})),
            "version labels app=web labels-or-annotations",
        ),
        (
            update(
                json!({"generation": 1, "resourceVersion": "2", "labels": {"app": "web"}, "annotations": {"a": "b"}}),
            ),
            "version annotations app=web not-labels labels-or-annotations",
        ),
        (
            update(json!({"generation": 1, "resourceVersion": "2", "labels": {}, "annotations": {"a": "b"}})),
            "version labels annotations app=web labels-and-annotations labels-or-annotations",
        ),
        (
            update(
                json!({"generation": 1, "resourceVersion": "2", "labels": {"app": "web"}, "finalizers": ["a/b"]}),
            ),
            "version finalizers app=web not-labels",
        ),
    ];
    for (event, expected) in &cases {
        let admitted: Vec<String> = predicates
            .iter()
            .filter(|(_, admits)| admits(Change::of(event)))
            .map(|(name, _)| name.replace(' ', "-"))
            .collect();
        assert_eq!(admitted.join(" "), *expected, "{event:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_known_at_run_time_can_be_watched_and_reconciled() {
    let server = server();
    let client = server.client();
    let resource = watchkeeper_client::dynamic::GroupVersionResource::new("", "v1", "configmaps");
    let factory = SharedInformerFactory::new(client.clone());
    let log = Log::new();
    let controller = Controller::on_with(&factory, Watch::resource(&resource));
    let running = started(controller.reconcile_with(log.noting())).await;
    log.take();
    let api = maps(&client);
    create(&api, &map("a")).await;
    settle().await;
    let logged = log.take();
    assert_eq!((logged[0].key.as_str(), logged[0].causes.as_str()), ("default/a", "event of configmaps"));
    running.stop().await;
}
