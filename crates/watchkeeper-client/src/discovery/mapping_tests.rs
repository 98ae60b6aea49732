use super::{
    super::model::{ApiGroup, ApiVersion, FailureReason, GroupVersionFailure},
    *,
};

fn resource(name: &str, singular: &str, kind: &str, short_names: &[&str]) -> ResourceInfo {
    ResourceInfo {
        name: name.into(),
        singular_name: singular.into(),
        kind: kind.into(),
        scope: Scope::Namespaced,
        verbs: vec!["list".into()],
        short_names: short_names.iter().map(|&short| short.into()).collect(),
        categories: Vec::new(),
        subresources: Vec::new(),
    }
}

fn group(name: &str, preferred: &str, versions: &[(&str, &[ResourceInfo])]) -> ApiGroup {
    ApiGroup {
        name: name.into(),
        preferred_version: preferred.into(),
        versions: versions
            .iter()
            .map(|(version, resources)| ApiVersion {
                version: (*version).into(),
                resources: resources.to_vec(),
            })
            .collect(),
    }
}

fn server() -> ServerResources {
    let hpa = || {
        resource("horizontalpodautoscalers", "horizontalpodautoscaler", "HorizontalPodAutoscaler", &["hpa"])
    };
    ServerResources {
        groups: vec![
            group(
                "",
                "v1",
                &[(
                    "v1",
                    &[
                        resource("pods", "pod", "Pod", &["po"]),
                        resource("events", "event", "Event", &["ev"]),
                        ResourceInfo { scope: Scope::Cluster, ..resource("nodes", "node", "Node", &["no"]) },
                    ],
                )],
            ),
            group(
                "apps",
                "v1",
                &[("v1", &[resource("deployments", "deployment", "Deployment", &["deploy"])])],
            ),
            group("events.k8s.io", "v1", &[("v1", &[resource("events", "event", "Event", &["ev"])])]),
            // The server lists v1 first but prefers v2.
            group(
                "autoscaling",
                "v2",
                &[("v1", &[hpa(), resource("onlyinv1s", "onlyinv1", "OnlyInV1", &[])]), ("v2", &[hpa()])],
            ),
            group(
                "metrics.k8s.io",
                "v1beta1",
                &[(
                    "v1beta1",
                    &[resource("nodes", "", "NodeMetrics", &[]), resource("pods", "", "PodMetrics", &[])],
                )],
            ),
            group(
                "networking.k8s.io",
                "v1",
                &[("v1", &[resource("ingresses", "ingress", "Ingress", &["ing"])])],
            ),
            group(
                "v1.example.io",
                "v3",
                &[(
                    "v3",
                    &[
                        resource("widgets", "widget", "Widget", &["po", "w"]),
                        resource("gizmos", "gizmo", "Gizmo", &["w"]),
                        resource("consoles", "", "", &[]),
                        resource("twins", "twin", "Twin", &[]),
                        resource("doubles", "double", "Twin", &[]),
                    ],
                )],
            ),
        ],
        failures: Vec::new(),
    }
}

#[test]
fn resources_are_found_by_the_names_people_use() {
    let server = server();
    for (name, found) in [
        ("pods", "v1/pods"),
        ("pod", "v1/pods"),
        ("Pod", "v1/pods"),
        ("po", "v1/pods"),
        ("PO", "v1/pods"),
        ("pods.v1.", "v1/pods"),
        ("deploy", "apps/v1/deployments"),
        ("deployments.apps", "apps/v1/deployments"),
        ("deployments.v1.apps", "apps/v1/deployments"),
        ("deploy.v1.apps", "apps/v1/deployments"),
        // The core group takes precedence; the other is selected by its group, or by the beginning of it.
        ("events", "v1/events"),
        ("ev", "v1/events"),
        ("events.events.k8s.io", "events.k8s.io/v1/events"),
        ("events.events", "events.k8s.io/v1/events"),
        ("ingresses.networking", "networking.k8s.io/v1/ingresses"),
        ("ing.v1.networking", "networking.k8s.io/v1/ingresses"),
        // A resource of that kind in another group does not conflict: the resource name counts.
        ("nodes", "v1/nodes"),
        ("nodes.metrics.k8s.io", "metrics.k8s.io/v1beta1/nodes"),
        // The preferred version, regardless of its position; and a resource that only an older version has.
        ("hpa", "autoscaling/v2/horizontalpodautoscalers"),
        ("hpa.v1.autoscaling", "autoscaling/v1/horizontalpodautoscalers"),
        ("onlyinv1s", "autoscaling/v1/onlyinv1s"),
        // `v1.example.io` is interpreted as version and group first, then as a group.
        ("widgets.v1.example.io", "v1.example.io/v3/widgets"),
        ("widgets.v3.v1.example.io", "v1.example.io/v3/widgets"),
    ] {
        assert_eq!(server.find_resource(name).unwrap().resource.to_string(), found, "{name}");
    }
}

#[test]
fn unknown_names_are_reported() {
    let server = server();
    for name in [
        "",
        ".",
        "..",
        "gone",
        "deployments.v2.apps",
        "deployments.",
        "deployments.v1.",
        "pods.apps",
        "consoles",
        "po.apps",
        "pods.v1.apps",
    ] {
        let error = server.find_resource(name).unwrap_err();
        assert!(matches!(&error, MappingError::NoMatch { name: missing, .. } if missing == name), "{error}");
    }
}

#[test]
fn a_lookup_without_a_match_names_the_groups_whose_discovery_failed() {
    let mut server = server();
    server.failures.push(GroupVersionFailure {
        group_version: GroupVersion::gv("custom.metrics.k8s.io", "v1beta1"),
        reason: FailureReason::Stale,
    });
    let error = server.find_resource("gone").unwrap_err().to_string();
    assert!(error.starts_with("the server serves no \"gone\"; discovery failed for these groups"), "{error}");
    assert!(error.ends_with("custom.metrics.k8s.io/v1beta1"), "{error}");
}

#[test]
fn kinds_are_found_with_and_without_version_and_group() {
    let server = server();
    for (name, found) in [
        ("Deployment", "apps/v1/deployments"),
        ("Deployment.apps", "apps/v1/deployments"),
        ("Deployment.v1.apps", "apps/v1/deployments"),
        ("Event", "v1/events"),
        ("Event.events.k8s.io", "events.k8s.io/v1/events"),
        ("HorizontalPodAutoscaler", "autoscaling/v2/horizontalpodautoscalers"),
        ("HorizontalPodAutoscaler.v1.autoscaling", "autoscaling/v1/horizontalpodautoscalers"),
        ("PodMetrics", "metrics.k8s.io/v1beta1/pods"),
    ] {
        assert_eq!(server.find_kind(name).unwrap().resource.to_string(), found, "{name}");
    }
    for name in ["deployment", "Deployment.v2.apps", ""] {
        assert!(matches!(server.find_kind(name), Err(MappingError::NoMatch { .. })), "{name}");
    }
}

#[test]
fn an_object_finds_its_resource_by_exact_kind() {
    let server = server();
    let node = server.mapping_of_kind(&GroupVersionKind::gvk("", "v1", "Node")).unwrap();
    assert_eq!(node.resource, GroupVersionResource::new("", "v1", "nodes"));
    assert!(!node.is_namespaced());
    let old = server
        .mapping_of_kind(&GroupVersionKind::gvk("autoscaling", "v1", "HorizontalPodAutoscaler"))
        .unwrap();
    assert_eq!(old.to_api_resource().api_version, "autoscaling/v1");
    let error = server.mapping_of_kind(&GroupVersionKind::gvk("apps", "v9", "Deployment")).unwrap_err();
    assert_eq!(error.to_string(), "the server serves no \"apps/v9 Deployment\"");
}

#[test]
fn a_resource_finds_its_kind() {
    let server = server();
    let pods =
        server.mapping_of_resource(&GroupVersionResource::new("metrics.k8s.io", "v1beta1", "pods")).unwrap();
    assert_eq!(pods.kind, GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics"));
    assert!(
        server.mapping_of_resource(&GroupVersionResource::new("", "v1", "pod")).is_err(),
        "plural names only"
    );
}

#[test]
fn an_ambiguous_name_is_an_error_with_the_candidates() {
    let server = server();
    let error = server.find_kind("Twin").unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"Twin\" may be any of: v1.example.io/v3/twins (Twin), v1.example.io/v3/doubles (Twin); \
         name the resource, version and group"
    );
    let MappingError::Ambiguous { candidates, .. } = server.find_resource("w").unwrap_err() else {
        panic!("two resources of one group share the short name")
    };
    let names: Vec<_> = candidates.iter().map(|candidate| candidate.resource.resource.as_str()).collect();
    assert_eq!(names, ["widgets", "gizmos"]);
}

#[test]
fn api_versions_and_resources_equal_those_of_kubectl() {
    let server = server();
    assert_eq!(
        server.api_versions(),
        [
            "apps/v1",
            "autoscaling/v1",
            "autoscaling/v2",
            "events.k8s.io/v1",
            "metrics.k8s.io/v1beta1",
            "networking.k8s.io/v1",
            "v1",
            "v1.example.io/v3",
        ]
    );
    let rows: Vec<String> = server
        .api_resources()
        .iter()
        .map(|row| format!("{} {}", row.resource.name, row.api_version()))
        .collect();
    assert_eq!(rows[..4], ["events v1", "nodes v1", "pods v1", "deployments apps/v1"]);
    assert!(rows.contains(&"horizontalpodautoscalers autoscaling/v2".into()));
    assert!(rows.contains(&"onlyinv1s autoscaling/v1".into()));
    assert!(!rows.iter().any(|row| row.starts_with("horizontalpodautoscalers autoscaling/v1")));
}
