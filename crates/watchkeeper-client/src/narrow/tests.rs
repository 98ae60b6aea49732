//! Derived views, compared with the whole objects.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Node, Pod, Toleration},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, Time},
    },
};
use kube_core::{ClusterResourceScope, NamespaceResourceScope, Resource};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Narrow;
use crate::decode::{Decode, DecodeError, Json};

#[derive(Narrow, Clone, Debug, PartialEq)]
#[narrow(Pod, crate = "crate")]
pub(crate) struct PodView {
    metadata: ObjectMeta,
    #[narrow("spec.nodeName")]
    node: Option<String>,
    #[narrow("status.phase")]
    phase: Option<String>,
    #[narrow("spec.priority", default)]
    priority: i32,
    #[narrow("spec.nodeSelector")]
    selector: BTreeMap<String, String>,
    #[narrow("spec.tolerations")]
    tolerations: Vec<Toleration>,
    #[narrow("status.startTime")]
    started: Option<Time>,
    #[narrow("metadata.annotations['example.com/owner']")]
    owner: Option<String>,
    #[narrow("spec.containers[].name")]
    names: Vec<String>,
    #[narrow("spec.containers[].image")]
    images: Vec<String>,
    #[narrow("spec.containers[].ports[].containerPort")]
    ports: Vec<u16>,
    #[narrow("spec.containers[].resources.limits.memory")]
    memory: Vec<Quantity>,
    #[narrow("spec.imagePullSecrets[]")]
    secrets: Vec<BTreeMap<String, String>>,
}

/// The same view, made from a whole pod.
fn view_of(pod: &Pod) -> PodView {
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let annotations = pod.metadata.annotations.clone().unwrap_or_default();
    let limits = |resources: Option<_>| {
        let resources: k8s_openapi::api::core::v1::ResourceRequirements = resources?;
        resources.limits?.get("memory").cloned()
    };
    let port = |port: &k8s_openapi::api::core::v1::ContainerPort| u16::try_from(port.container_port).unwrap();
    PodView {
        metadata: ObjectMeta {
            annotations: None,
            managed_fields: None,
            generate_name: None,
            self_link: None,
            deletion_grace_period_seconds: None,
            ..pod.metadata.clone()
        },
        node: spec.node_name,
        phase: status.phase,
        priority: spec.priority.unwrap_or_default(),
        selector: spec.node_selector.unwrap_or_default(),
        tolerations: spec.tolerations.unwrap_or_default(),
        started: status.start_time,
        owner: annotations.get("example.com/owner").cloned(),
        names: spec.containers.iter().map(|container| container.name.clone()).collect(),
        images: spec.containers.iter().filter_map(|container| container.image.clone()).collect(),
        ports: spec
            .containers
            .iter()
            .flat_map(|container| container.ports.iter().flatten().map(port))
            .collect(),
        memory: spec.containers.iter().filter_map(|container| limits(container.resources.clone())).collect(),
        secrets: spec
            .image_pull_secrets
            .iter()
            .flatten()
            .map(|secret| BTreeMap::from([("name".to_owned(), secret.name.clone())]))
            .collect(),
    }
}

/// An optional member: absent, null, or a value.
fn member(
    name: &'static str,
    value: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Option<(String, Value)>> {
    let some = move |value| Some((name.to_owned(), value));
    prop_oneof![1 => Just(None), 1 => Just(some(Value::Null)), 4 => value.prop_map(some)].boxed()
}

fn object(members: Vec<BoxedStrategy<Option<(String, Value)>>>) -> BoxedStrategy<Value> {
    members.prop_map(|members| Value::Object(members.into_iter().flatten().collect())).boxed()
}

fn list(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop::collection::vec(item, 0..4).prop_map(Value::from).boxed()
}

fn text() -> BoxedStrategy<Value> {
    any::<String>().prop_map(Value::from).boxed()
}

fn number() -> BoxedStrategy<Value> {
    any::<i32>().prop_map(Value::from).boxed()
}

fn strings() -> BoxedStrategy<Value> {
    let name = prop_oneof!["example.com/owner", "[a-z]{0,4}", any::<String>()];
    prop::collection::btree_map(name, any::<String>(), 0..4).prop_map(|map| json!(map)).boxed()
}

fn time() -> BoxedStrategy<Value> {
    (0..60_u8, 0..60_u8).prop_map(|(m, s)| json!(format!("2026-01-02T03:{m:02}:{s:02}Z"))).boxed()
}

/// Random pods, with members in random order, and with members that the view does not read.
pub(crate) fn pod() -> BoxedStrategy<String> {
    let one = |name: &'static str, value: BoxedStrategy<Value>| {
        value.prop_map(move |value| json!({name: value})).boxed()
    };
    let owner = text()
        .prop_map(|text| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": text, "uid": "u"}));
    let metadata = object(vec![
        member("name", text()),
        member("namespace", text()),
        member("uid", text()),
        member("resourceVersion", text()),
        member("generateName", text()),
        member("generation", number()),
        member("creationTimestamp", time()),
        member("deletionTimestamp", time()),
        member("deletionGracePeriodSeconds", number()),
        member("labels", strings()),
        member("annotations", strings()),
        member("finalizers", list(text())),
        member("ownerReferences", list(owner.boxed())),
        member("managedFields", list(one("manager", text()))),
    ]);
    let port = (0..u16::MAX).prop_map(|port| json!({"name": "p", "containerPort": port})).boxed();
    let memory = prop_oneof![strings(), Just(json!({"memory": "1Gi", "cpu": "1"}))].boxed();
    let container = (
        any::<String>(),
        object(vec![
            member("image", text()),
            member("ports", list(port)),
            member("resources", object(vec![member("limits", memory.clone()), member("requests", memory)])),
        ]),
    );
    let container = container.prop_map(|(name, mut container)| {
        container["name"] = name.into();
        container
    });
    let spec = object(vec![
        member("nodeName", text()),
        member("priority", number()),
        member("nodeSelector", strings()),
        member(
            "tolerations",
            list(object(vec![member("key", text()), member("tolerationSeconds", number())])),
        ),
        member("containers", list(container.boxed())),
        member("imagePullSecrets", list(one("name", text()))),
        member("volumes", list(one("name", text()))),
    ]);
    let status = object(vec![member("phase", text()), member("startTime", time()), member("podIP", text())]);
    let pod = object(vec![
        Just(Some(("kind".to_owned(), json!("Pod")))).boxed(),
        member("metadata", metadata),
        member("spec", spec),
        member("status", status),
    ]);
    (pod, any::<u64>()).prop_map(|(pod, order)| shuffled(&pod, order)).boxed()
}

/// Returns the text of a document with the members of each object in an order that depends on `order`.
fn shuffled(value: &Value, order: u64) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let mut random = fastrand::Rng::with_seed(order);
            random.shuffle(&mut members);
            let members = members.into_iter().map(|(name, value)| {
                format!("{}: {}", json!(name), shuffled(value, order.rotate_left(7) ^ 1))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| shuffled(item, order.rotate_left(9) ^ 2));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        _ => value.to_string(),
    }
}

proptest! {
    #[test]
    fn a_view_equals_what_is_read_from_the_whole_pod(text in pod()) {
        let whole: Pod = serde_json::from_str(&text).unwrap();
        let view: PodView = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&view, &view_of(&whole), "{}", text);

        let written = serde_json::to_string(&view).unwrap();
        prop_assert_eq!(&serde_json::from_str::<PodView>(&written).unwrap(), &view, "{}", written);
        // Another deserializer, and the decoder of lists and watches.
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&PodView::deserialize(value).unwrap(), &view);
        let decoded: PodView = Json::new().decode(text.as_bytes()).unwrap();
        prop_assert_eq!(decoded, view);
    }
}

#[test]
fn a_view_is_written_as_a_document_with_its_fields_only() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "annotations": {"x": "y"}, "labels": {"l": "1"}, "generateName": "a-"},
        "spec": {"nodeName": "n", "containers": [
            {"name": "b", "image": "i", "ports": [{"containerPort": 1, "name": "http"}]},
            {"name": "c", "ports": [{"containerPort": 2}, {"containerPort": 3}]},
            {"name": "d", "image": "j"},
        ]},
        "status": {"podIP": "10.0.0.1"},
    });
    let view = PodView::deserialize(pod).unwrap();
    assert_eq!(
        serde_json::to_value(&view).unwrap(),
        json!({
            "metadata": {"name": "a", "labels": {"l": "1"}, "annotations": {}},
            "spec": {
                "nodeName": "n", "priority": 0, "nodeSelector": {}, "tolerations": [], "imagePullSecrets": [],
                // Items without a value were skipped, so the values move up.
                "containers": [
                    {"name": "b", "image": "i", "resources": {"limits": {}},
                        "ports": [{"containerPort": 1}, {"containerPort": 2}, {"containerPort": 3}]},
                    {"name": "c", "image": "j", "resources": {"limits": {}}},
                    {"name": "d", "resources": {"limits": {}}},
                ],
            },
            "status": {},
        })
    );
}

#[derive(Narrow, Debug)]
#[narrow(Deployment, crate = "crate")]
struct Strict {
    #[narrow(annotations, managed_fields)]
    metadata: ObjectMeta,
    #[narrow("spec.replicas")]
    replicas: i32,
    #[narrow("spec.template.metadata")]
    template: ObjectMeta,
}

fn strict(text: &str) -> Result<Strict, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn a_required_value_that_is_absent_is_an_error_with_its_whole_path() {
    for text in [
        "{}",
        r#"{"spec":null}"#,
        r#"{"spec":{}}"#,
        r#"{"spec":{"replicas":null,"template":{"metadata":{}}}}"#,
    ] {
        let error = strict(text).unwrap_err();
        assert!(error.starts_with("missing field `spec.replicas`"), "{text}: {error}");
        let error = Decode::<Strict>::decode(&Json::new(), text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, DecodeError::Mismatch { reason, .. } if reason == "missing field `spec.replicas`")
        );
    }
    let error = strict(r#"{"spec":{"replicas":1,"template":{}}}"#).unwrap_err();
    assert!(error.starts_with("missing field `spec.template.metadata`"), "{error}");
}

#[test]
fn a_value_of_another_type_is_an_error() {
    for (text, message) in [
        ("[]", "invalid type: sequence, expected an object"),
        (r#"{"spec":"x"}"#, "invalid type: string \"x\", expected an object"),
        (r#"{"spec":{"replicas":"x"}}"#, "invalid type: string \"x\", expected i32"),
        (r#"{"spec":{},"spec":{}}"#, "duplicate field `spec`"),
    ] {
        let error = strict(text).unwrap_err();
        assert!(error.starts_with(message), "{text}: {error}");
    }
    let error = serde_json::from_str::<PodView>(r#"{"spec":{"containers":{}}}"#).unwrap_err().to_string();
    assert!(error.starts_with("invalid type: map, expected a list"), "{error}");
}

#[test]
fn annotations_and_managed_fields_are_kept_on_request() {
    let text = r#"{"metadata":{"annotations":{"a":"b"},"managedFields":[{"manager":"m"}]},
        "spec":{"replicas":2,"template":{"metadata":{"annotations":{"c":"d"}}}}}"#;
    let Strict { metadata, replicas, template } = strict(text).unwrap();
    assert_eq!(metadata.annotations, Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])));
    assert_eq!(metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("m"));
    // Metadata in other places is a value like any other.
    assert_eq!((replicas, template.annotations.unwrap().len()), (2, 1));
}

#[test]
fn a_view_is_a_resource_of_the_viewed_kind() {
    fn scope<K: Resource<Scope = S>, S>() {}

    #[derive(Narrow)]
    #[narrow(Node, crate = "crate")]
    struct NodeView {
        #[narrow(no_labels)]
        metadata: ObjectMeta,
        #[narrow("metadata.labels['zone']")]
        zone: Option<String>,
    }

    assert_eq!(Strict::kind(&()), "Deployment");
    assert_eq!(Strict::api_version(&()), "apps/v1");
    assert_eq!(Strict::url_path(&(), Some("a")), "/apis/apps/v1/namespaces/a/deployments");
    assert_eq!(NodeView::url_path(&(), None), Node::url_path(&(), None));
    scope::<PodView, NamespaceResourceScope>();
    scope::<NodeView, ClusterResourceScope>();
    let mut node: NodeView =
        serde_json::from_str(r#"{"metadata":{"name":"a","labels":{"zone":"z","b":"c"}}}"#).unwrap();
    assert_eq!((node.zone.as_deref(), &node.metadata.labels), (Some("z"), &None));
    node.meta_mut().uid = Some("u".to_owned());
    assert_eq!((node.meta().name.as_deref(), node.meta().uid.as_deref()), (Some("a"), Some("u")));
}

#[test]
fn a_list_of_one_value_has_capacity_for_one() {
    let text = r#"{"spec":{"containers":[{"name":"a","ports":[{"containerPort":1}]}],"tolerations":[{}]}}"#;
    let view: PodView = Json::new().decode(text.as_bytes()).unwrap();
    assert_eq!((view.names.capacity(), view.ports.capacity(), view.tolerations.capacity()), (1, 1, 1));
    assert_eq!((view.images.capacity(), view.secrets.capacity()), (0, 0));
}
