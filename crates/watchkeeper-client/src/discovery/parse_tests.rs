use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn parse(endpoint: DiscoveryEndpoint, content_type: &str, document: &Value) -> Result<Root, String> {
    root(endpoint, Some(content_type), document.to_string().as_bytes())
}

fn aggregated_groups(document: &Value) -> (Vec<ApiGroup>, Vec<GroupVersionFailure>) {
    match parse(DiscoveryEndpoint::Groups, AGGREGATED, document).unwrap() {
        Root::Aggregated { groups, failures } => (groups, failures),
        Root::Legacy(_) => panic!("read as legacy"),
    }
}

fn legacy_groups(endpoint: DiscoveryEndpoint, document: &Value) -> Vec<ApiGroup> {
    match parse(endpoint, "application/json", document).unwrap() {
        Root::Legacy(groups) => groups,
        Root::Aggregated { .. } => panic!("read as aggregated"),
    }
}

fn list(items: &Value) -> Value {
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items })
}

#[test]
fn an_aggregated_document_is_read_whole() {
    let (groups, failures) = aggregated_groups(&list(&json!([{
        "metadata": { "name": "apps" },
        "versions": [{
            "version": "v1",
            "freshness": "Current",
            "resources": [{
                "resource": "deployments",
                "responseKind": { "group": "", "version": "", "kind": "Deployment" },
                "scope": "Namespaced",
                "singularResource": "deployment",
                "verbs": ["get", "list"],
                "shortNames": ["deploy"],
                "categories": ["all"],
                "subresources": [
                    { "subresource": "scale", "verbs": ["get"],
                      "responseKind": { "group": "autoscaling", "version": "v1", "kind": "Scale" } },
                    { "subresource": "status", "verbs": ["patch"],
                      "responseKind": { "group": "", "version": "", "kind": "Deployment" } },
                ],
            }],
        }],
    }])));
    assert!(failures.is_empty());
    let deployments = &groups[0].versions[0].resources[0];
    assert_eq!(
        *deployments,
        ResourceInfo {
            name: "deployments".into(),
            singular_name: "deployment".into(),
            kind: "Deployment".into(),
            scope: Scope::Namespaced,
            verbs: vec!["get".into(), "list".into()],
            short_names: vec!["deploy".into()],
            categories: vec!["all".into()],
            subresources: vec![
                SubresourceInfo {
                    name: "scale".into(),
                    kind: GroupVersionKind::gvk("autoscaling", "v1", "Scale"),
                    verbs: vec!["get".into()],
                },
                SubresourceInfo {
                    name: "status".into(),
                    kind: GroupVersionKind::gvk("apps", "v1", "Deployment"),
                    verbs: vec!["patch".into()],
                },
            ],
        }
    );
}

#[test]
fn a_stale_version_is_reported_and_the_first_fresh_one_is_preferred() {
    let (groups, failures) = aggregated_groups(&list(&json!([
        { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1beta1", "freshness": "Stale" }] },
        { "metadata": { "name": "example.io" }, "versions": [
            { "version": "v2", "freshness": "Stale", "resources": [{ "resource": "old" }] },
            { "version": "v1", "freshness": "Current" },
        ] },
    ])));
    assert_eq!(groups.len(), 1, "a group of which nothing is known is not among the known");
    assert_eq!(groups[0].name, "example.io");
    assert_eq!(groups[0].preferred_version, "v1");
    assert_eq!(groups[0].versions.len(), 1);
    let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures.len(), 2);
    assert!(failures[0].starts_with("metrics.k8s.io/v1beta1: the API server marks it stale"), "{failures:?}");
    assert!(failures[1].starts_with("example.io/v2: "), "{failures:?}");
}

#[test]
fn absent_null_and_nameless_parts_do_not_cost_the_rest() {
    let (groups, _) = aggregated_groups(&list(&json!([
        { "metadata": { "name": "a.io" }, "versions": null },
        { "metadata": { "name": "b.io" }, "versions": [
            { "version": "", "resources": [] },
            { "version": "v1", "resources": [
                { "resource": "", "verbs": ["get"] },
                { "resource": "shells", "responseKind": null, "verbs": null, "subresources": [
                    { "subresource": "console", "responseKind": { "kind": "Console" }, "verbs": ["get"] },
                    { "verbs": ["get"] },
                ] },
                { "resource": "shells", "responseKind": { "kind": "SecondOfThatName" } },
            ] },
            { "version": "v1", "resources": [{ "resource": "again" }] },
        ] },
        { "metadata": { "name": "b.io" }, "versions": [{ "version": "v9" }] },
    ])));
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].versions.len(), 1);
    let resources = &groups[0].versions[0].resources;
    assert_eq!(resources.len(), 1);
    assert_eq!((resources[0].name.as_str(), resources[0].kind.as_str()), ("shells", ""));
    assert_eq!(resources[0].subresources.len(), 1);
    assert!(aggregated_groups(&list(&Value::Null)).0.is_empty());
}

#[test]
fn the_form_is_known_by_the_content_type_or_by_the_kind() {
    let aggregated = list(&json!([]));
    assert!(matches!(
        parse(DiscoveryEndpoint::Core, "application/json", &aggregated),
        Ok(Root::Aggregated { .. })
    ));
    assert!(matches!(parse(DiscoveryEndpoint::Core, AGGREGATED, &json!({})), Ok(Root::Aggregated { .. })));
    let spaced = "application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io";
    assert!(matches!(parse(DiscoveryEndpoint::Core, spaced, &json!({})), Ok(Root::Aggregated { .. })));
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert!(matches!(parse(DiscoveryEndpoint::Core, beta, &json!({})), Ok(Root::Legacy(_))));
    assert!(matches!(root(DiscoveryEndpoint::Core, None, b"{}"), Ok(Root::Legacy(_))));
}

#[test]
fn legacy_roots_give_groups_versions_and_preferences() {
    let core = legacy_groups(DiscoveryEndpoint::Core, &json!({ "kind": "APIVersions", "versions": ["v1"] }));
    assert_eq!((core[0].name.as_str(), core[0].preferred_version.as_str()), ("", "v1"));
    let groups = legacy_groups(
        DiscoveryEndpoint::Groups,
        &json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [
            { "name": "autoscaling",
              "versions": [{ "groupVersion": "autoscaling/v1", "version": "v1" }, { "version": "v2" }],
              "preferredVersion": { "groupVersion": "autoscaling/v2", "version": "v2" } },
            { "name": "quiet.io", "versions": [{ "version": "v1" }] },
            { "name": "empty.io", "versions": [] },
        ] }),
    );
    let names: Vec<_> =
        groups.iter().map(|group| (group.name.as_str(), group.preferred_version.as_str())).collect();
    assert_eq!(names, [("autoscaling", "v2"), ("quiet.io", "v1")]);
    assert_eq!(groups[0].versions[0].version, "v1");
}

#[test]
fn legacy_resources_collect_their_subresources() {
    let apps = GroupVersion::gv("apps", "v1");
    let body = json!({ "kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
        { "name": "deployments/scale", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"] },
        { "name": "deployments", "singularName": "", "namespaced": true, "kind": "Deployment", "verbs": ["get"], "shortNames": ["deploy"] },
        { "name": "deployments/status", "namespaced": true, "kind": "Deployment", "verbs": ["patch"] },
        { "name": "machines/start", "namespaced": true, "kind": "Machine", "verbs": ["update"] },
    ] });
    let resources = resource_list(&apps, body.to_string().as_bytes()).unwrap();
    assert_eq!(resources.len(), 2);
    assert_eq!(resources[0].singular_name, "deployment", "older servers leave the singular out");
    assert_eq!(
        resources[0].subresource("scale").unwrap().kind,
        GroupVersionKind::gvk("autoscaling", "v1", "Scale")
    );
    assert_eq!(
        resources[0].subresource("status").unwrap().kind,
        GroupVersionKind::gvk("apps", "v1", "Deployment")
    );
    assert_eq!((resources[1].name.as_str(), resources[1].kind.as_str()), ("machines", ""));
    assert!(resources[1].is_namespaced());
}

#[test]
fn malformed_documents_are_errors_with_a_position_and_no_quote() {
    let secret = "hunter2";
    for (body, expected) in [
        (format!("<html>{secret}</html>"), "not JSON at line 1 column 1"),
        (format!("{{\"kind\":\"APIGroupList\",\"groups\":\"{secret}\"}}"), "a value of an unexpected type"),
        (String::new(), "is truncated"),
        ("{\"kind\":\"APIGroupList\",\"groups\":[".to_owned(), "is truncated"),
        ("{\"kind\":\"Status\"}".to_owned(), "expected APIGroupList, got \"Status\""),
        ("{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v9\"}".to_owned(), "v9"),
    ] {
        let error = root(DiscoveryEndpoint::Groups, Some("application/json"), body.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains(secret), "{error}");
    }
    let error = resource_list(&GroupVersion::gv("", "v1"), b"{\"kind\":\"PodList\"}").unwrap_err();
    assert_eq!(error, "expected APIResourceList, got \"PodList\"");
}

/// Generates servers, as far as both forms can describe them.
fn servers() -> impl Strategy<Value = Vec<ApiGroup>> {
    let words = |count| vec("[a-z]{1,6}", 0..count);
    let subresource = ("[a-z]{1,6}", "[A-Z][a-z]{1,6}", option::of(("[a-z]{1,4}\\.io", "v[1-9]")), words(3))
        .prop_map(|(name, kind, home, verbs)| {
            let (group, version) = home.unwrap_or_default();
            SubresourceInfo { name, kind: GroupVersionKind::gvk(&group, &version, &kind), verbs }
        });
    let resource = (
        ("[a-z]{1,6}", "[a-z]{1,6}", "[A-Z][a-z]{1,6}"),
        select(&[Scope::Cluster, Scope::Namespaced][..]),
        (words(4), words(2), words(2)),
        vec(subresource, 0..3),
    )
        .prop_map(
            |((name, singular_name, kind), scope, (verbs, short_names, categories), subresources)| {
                ResourceInfo {
                    name,
                    singular_name,
                    kind,
                    scope,
                    verbs,
                    short_names,
                    categories,
                    subresources,
                }
            },
        );
    let version = ("v[1-9]", vec(resource, 0..4))
        .prop_map(|(version, resources)| ApiVersion { version, resources: distinct(resources, |r| &r.name) });
    let group = ("[a-z]{1,6}\\.io", vec(version, 1..3))
        .prop_filter_map("without a version", |(name, versions)| group(name, String::new(), versions));
    vec(group, 0..4).prop_map(first_of_each_name).prop_map(|mut groups| {
        // A subresource without a group-version belongs to that of its resource.
        for group in &mut groups {
            for version in &mut group.versions {
                let around = GroupVersion::gv(&group.name, &version.version);
                for subresource in
                    version.resources.iter_mut().flat_map(|resource| &mut resource.subresources)
                {
                    let GroupVersionKind { group, version, kind } = &subresource.kind;
                    subresource.kind = kind_in(&around, group, version, kind);
                }
            }
        }
        groups
    })
}

fn in_aggregated_form(groups: &[ApiGroup]) -> Value {
    let subresource = |sub: &SubresourceInfo| json!({ "subresource": sub.name, "responseKind": sub.kind, "verbs": sub.verbs });
    let resource = |info: &ResourceInfo| {
        json!({
            "resource": info.name, "singularResource": info.singular_name, "responseKind": { "kind": info.kind },
            "scope": if info.is_namespaced() { "Namespaced" } else { "Cluster" }, "verbs": info.verbs,
            "shortNames": info.short_names, "categories": info.categories,
            "subresources": info.subresources.iter().map(subresource).collect::<Vec<_>>(),
        })
    };
    let version = |version: &ApiVersion| json!({ "version": version.version, "resources": version.resources.iter().map(resource).collect::<Vec<_>>() });
    let group = |group: &ApiGroup| json!({ "metadata": { "name": group.name }, "versions": group.versions.iter().map(version).collect::<Vec<_>>() });
    list(&groups.iter().map(group).collect())
}

fn in_legacy_form(version: &ApiVersion) -> Value {
    let mut resources = Vec::new();
    for info in &version.resources {
        resources.push(json!({
            "name": info.name, "singularName": info.singular_name, "kind": info.kind, "verbs": info.verbs,
            "namespaced": info.is_namespaced(), "shortNames": info.short_names, "categories": info.categories,
        }));
        resources.extend(info.subresources.iter().map(|sub| {
            json!({ "name": format!("{}/{}", info.name, sub.name), "namespaced": info.is_namespaced(), "verbs": sub.verbs,
                "group": sub.kind.group, "version": sub.kind.version, "kind": sub.kind.kind })
        }));
    }
    json!({ "kind": "APIResourceList", "resources": resources })
}

proptest! {
    #[test]
    fn both_forms_parse_to_the_same_resources(groups in servers()) {
        let (from_aggregated, failures) = aggregated_groups(&in_aggregated_form(&groups));
        prop_assert_eq!(&from_aggregated, &groups);
        prop_assert!(failures.is_empty());
        for group in &groups {
            for version in &group.versions {
                let body = in_legacy_form(version).to_string();
                let group_version = GroupVersion::gv(&group.name, &version.version);
                prop_assert_eq!(&resource_list(&group_version, body.as_bytes()).unwrap(), &version.resources);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
        for body in [&bytes[..], text.as_bytes()] {
            let _ = root(DiscoveryEndpoint::Groups, None, body);
            let _ = resource_list(&GroupVersion::gv("", "v1"), body);
        }
    }
}
