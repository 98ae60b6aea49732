//! Nodes, namespaces, quotas, endpoints, events, roles, leases, runtime classes, addresses.

use serde_json::{Value, json};

use super::{NOW, created, creates, updated, updates};
use crate::strategy::{Part, for_builtin};

const RBAC: &str = "rbac.authorization.k8s.io";

#[test]
fn nodes_are_validated_on_create_and_update() {
    let node = json!({
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": "a", "taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": "1"}},
    });
    creates(
        "",
        "Node",
        &node,
        &[
            ("/spec/taints/0/effect", json!("No"), &["metadata.taints[0].effect NotSupported"]),
            ("/spec/taints/0/effect", json!(""), &["metadata.taints[0].effect Required"]),
            ("/spec/taints/0/key", json!("a b"), &["metadata.taints[0].key Invalid"]),
            (
                "/spec/taints/-",
                json!({"key": "a", "effect": "NoSchedule"}),
                &["metadata.taints[1] Duplicate"],
            ),
            ("/spec/podCIDR", json!("x"), &["spec.podCIDRs[0] Invalid"]),
            ("/spec/podCIDRs", json!(["10.0.0.0/24", "10.1.0.0/24"]), &["spec.podCIDRs Invalid"]),
            ("/spec/podCIDRs", json!(["10.0.0.0/24", "fd00::/64"]), &[]),
            (
                "/status/capacity/cpu",
                json!("-1"),
                &["status.allocatable.cpu Invalid", "status.capacity.cpu Invalid"],
            ),
            (
                "/status/capacity/pods",
                json!("1500m"),
                &["status.allocatable.pods Invalid", "status.capacity.pods Invalid"],
            ),
            (
                "/status/declaredFeatures",
                json!(["b", "A"]),
                &["status.declaredFeatures[0] Invalid", "status.declaredFeatures[1] Invalid"],
            ),
        ],
    );
    updates(
        "",
        "Node",
        Part::Main,
        &node,
        &[
            ("/spec/providerID", json!("b"), &["spec.providerID Invalid"]),
            ("/spec/podCIDR", json!("10.9.0.0/24"), &["spec.podCIDRs Forbidden"]),
            ("/spec/externalID", json!("b"), &["spec.externalID Forbidden"]),
            ("/spec/unschedulable", json!(true), &[]),
        ],
    );
    let address = json!([{"type": "Hostname", "address": "a"}, {"type": "Hostname", "address": "a"}]);
    updates(
        "",
        "Node",
        Part::Subresource("status"),
        &node,
        &[("/status/addresses", address, &["status.addresses[1] Duplicate"])],
    );
}

#[test]
fn pod_cidr_and_pod_cidrs_of_a_node_are_kept_consistent() {
    let spec = |spec: Value| created("", "Node", &json!({ "spec": spec }))["spec"].clone();
    assert_eq!(spec(json!({"podCIDR": "10.0.0.0/24"}))["podCIDRs"], json!(["10.0.0.0/24"]));
    assert_eq!(spec(json!({"podCIDRs": ["10.0.0.0/24"]}))["podCIDR"], json!("10.0.0.0/24"));
    let both = spec(json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.1.0.0/24"]}));
    assert_eq!(both["podCIDRs"], json!(["10.0.0.0/24"]));
}

#[test]
fn fields_of_disabled_gates_are_dropped_from_nodes_and_leases() {
    let node = json!({"spec": {"configSource": {"configMap": {}}, "podPreemptionPolicy": {}}, "status": {"config": {}}});
    let node = created("", "Node", &node);
    assert!(node["spec"].get("configSource").is_none() && node["spec"].get("podPreemptionPolicy").is_none());
    assert!(node["status"].get("config").is_none());
    let lease = json!({"spec": {"strategy": "Bogus", "preferredHolder": "a", "holderIdentity": "b"}});
    let lease = created("coordination.k8s.io", "Lease", &lease);
    assert_eq!(lease["spec"], json!({"holderIdentity": "b"}));
}

#[test]
fn leases_and_runtime_classes_are_validated() {
    creates(
        "coordination.k8s.io",
        "Lease",
        &json!({"spec": {}}),
        &[
            ("/spec/leaseDurationSeconds", json!(0), &["spec.leaseDurationSeconds Invalid"]),
            ("/spec/leaseTransitions", json!(-1), &["spec.leaseTransitions Invalid"]),
        ],
    );
    let class = json!({"handler": "h", "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": {
        "nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}],
    }});
    creates(
        "node.k8s.io",
        "RuntimeClass",
        &class,
        &[
            ("/handler", json!(""), &["handler Required"]),
            ("/handler", json!("A"), &["handler Invalid"]),
            (
                "/overhead/podFixed",
                json!({"bogus": "1"}),
                &["overhead.limits[bogus] Invalid", "overhead.limits[bogus] Invalid"],
            ),
            ("/overhead/podFixed/cpu", json!("-1"), &["overhead.limits[cpu] Invalid"]),
            ("/scheduling/nodeSelector", json!({"a b": "c"}), &["scheduling.nodeSelector Invalid"]),
            (
                "/scheduling/tolerations/0/operator",
                json!("X"),
                &["scheduling.tolerations[0].operator NotSupported"],
            ),
            (
                "/scheduling/tolerations/-",
                json!({"key": "a", "operator": "Exists"}),
                &["scheduling.tolerations[1] Duplicate"],
            ),
        ],
    );
    updates(
        "node.k8s.io",
        "RuntimeClass",
        Part::Main,
        &class,
        &[("/handler", json!("g"), &["handler Invalid"])],
    );
}

#[test]
fn resource_quotas_are_validated_on_create_update_and_status_update() {
    let quota = json!({"spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}});
    creates(
        "",
        "ResourceQuota",
        &quota,
        &[
            ("/spec/hard/bogus", json!("1"), &["spec.hard[bogus] Invalid", "spec.hard[bogus] Invalid"]),
            ("/spec/hard/storage", json!("1"), &["spec.hard[storage] Invalid"]),
            ("/spec/hard/pods", json!("-1"), &["spec.hard[pods] Invalid"]),
            ("/spec/hard/pods", json!("1500m"), &["spec.hard[pods] Invalid"]),
            ("/spec/hard/a.b~1c", json!("1"), &[]),
            ("/spec/hard/cpu", json!("1"), &["spec.scopes Invalid"]),
            ("/spec/scopes/0", json!("Bogus"), &["spec.scopes Invalid"]),
            ("/spec/scopes/-", json!("NotBestEffort"), &["spec.scopes Invalid"]),
            (
                "/spec/scopeSelector",
                json!({"matchExpressions": [{"scopeName": "BestEffort", "operator": "In", "values": ["a"]}]}),
                &["spec.scopeSelector.matchExpressions.operator Invalid"],
            ),
            (
                "/spec/scopeSelector",
                json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}),
                &["spec.scopeSelector.matchExpressions.values Required"],
            ),
            (
                "/spec/scopeSelector",
                json!({"matchExpressions": [{"scopeName": "Bogus", "operator": "Exists"}]}),
                &["spec.scopeSelector.matchExpressions.scopeName Invalid"],
            ),
        ],
    );
    updates(
        "",
        "ResourceQuota",
        Part::Main,
        &quota,
        &[("/spec/scopes", json!([]), &["spec.scopes Invalid"])],
    );
    updates(
        "",
        "ResourceQuota",
        Part::Subresource("status"),
        &quota,
        &[(
            "/status",
            json!({"hard": {"pods": "1"}, "used": {"bogus": "1"}}),
            &["status.used[bogus] Invalid", "status.used[bogus] Invalid"],
        )],
    );
    let warned =
        created("", "ResourceQuota", &json!({"spec": {"hard": {"requests.cpu": "2", "limits.cpu": "1"}}}));
    assert_eq!(for_builtin("", "v1", "ResourceQuota").warnings(&warned, None).len(), 1);
}

#[test]
fn limit_ranges_are_validated() {
    let limits =
        json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}]}});
    creates(
        "",
        "LimitRange",
        &limits,
        &[
            (
                "/spec/limits/0/type",
                json!(""),
                &["spec.limits[0].type Invalid", "spec.limits[0].type Invalid"],
            ),
            ("/spec/limits/0/type", json!("Bogus"), &["spec.limits[0].type Invalid"]),
            ("/spec/limits/-", json!({"type": "Container"}), &["spec.limits[1].type Duplicate"]),
            (
                "/spec/limits/0/min/cpu",
                json!("3"),
                &[
                    "spec.limits[0].default[cpu] Invalid",
                    "spec.limits[0].defaultRequest[cpu] Invalid",
                    "spec.limits[0].min[cpu] Invalid",
                ],
            ),
            (
                "/spec/limits/0/max/storage",
                json!("1"),
                &[
                    "spec.limits[0].default[storage] Invalid",
                    "spec.limits[0].defaultRequest[storage] Invalid",
                    "spec.limits[0].max[storage] Invalid",
                ],
            ),
            (
                "/spec/limits/0/maxLimitRequestRatio",
                json!({"cpu": "3"}),
                &["spec.limits[0].maxLimitRequestRatio[cpu] Invalid"],
            ),
            (
                "/spec/limits/0/maxLimitRequestRatio",
                json!({"cpu": "500m"}),
                &["spec.limits[0].maxLimitRequestRatio[cpu] Invalid"],
            ),
            ("/spec/limits/0", json!({"type": "PersistentVolumeClaim"}), &["spec.limits[0].limits Required"]),
            (
                "/spec/limits/0",
                json!({"type": "Pod", "default": {"cpu": "1"}}),
                &["spec.limits[0].default Forbidden"],
            ),
        ],
    );
    let mut unnamed = super::object("", "LimitRange", &limits);
    unnamed["metadata"] = json!({"namespace": "n", "uid": "u-1"});
    let strategy = for_builtin("", "v1", "LimitRange");
    strategy.prepare_for_create(&mut unnamed);
    assert_eq!(unnamed["metadata"]["name"], json!("u-1"));
}

#[test]
fn invalid_namespace_finalizers_are_reported_at_the_list() {
    let namespace = json!({"spec": {}});
    creates(
        "",
        "Namespace",
        &namespace,
        &[
            ("/spec/finalizers", json!(["bare"]), &["spec.finalizers Invalid"]),
            ("/spec/finalizers", json!(["no good"]), &["spec.finalizers Invalid", "spec.finalizers Invalid"]),
        ],
    );
    updates(
        "",
        "Namespace",
        Part::Subresource("finalize"),
        &namespace,
        &[("/spec/finalizers", json!(["a/b", "bare"]), &["spec.finalizers[1] Invalid"])],
    );
}

#[test]
fn endpoints_are_validated_and_unchanged_ones_are_accepted() {
    let endpoints = json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]});
    creates(
        "",
        "Endpoints",
        &endpoints,
        &[
            ("/subsets/0/addresses/0/ip", json!("127.0.0.1"), &["subsets[0].addresses[0].ip Invalid"]),
            ("/subsets/0/addresses/0/ip", json!("0.0.0.0"), &["subsets[0].addresses[0].ip Invalid"]),
            ("/subsets/0/addresses/0/ip", json!("169.254.1.1"), &["subsets[0].addresses[0].ip Invalid"]),
            ("/subsets/0/addresses/0/ip", json!("224.0.0.1"), &["subsets[0].addresses[0].ip Invalid"]),
            (
                "/subsets/0/addresses/0/ip",
                json!(""),
                &["subsets[0].addresses[0].ip Invalid", "subsets[0].addresses[0].ip Invalid"],
            ),
            ("/subsets/0/addresses/0/nodeName", json!(""), &["subsets[0].addresses[0].nodeName Invalid"]),
            ("/subsets/0/ports/0/port", json!(0), &["subsets[0].ports[0].port Invalid"]),
            ("/subsets/0/ports/0/appProtocol", json!("a b"), &["subsets[0].ports[0].appProtocol Invalid"]),
            (
                "/subsets/0/ports/-",
                json!({"port": 1}),
                &["subsets[0].ports[0].name Required", "subsets[0].ports[1].name Required"],
            ),
            ("/subsets/0/addresses", json!([]), &["subsets[0] Required"]),
        ],
    );
    let strategy = for_builtin("", "v1", "Endpoints");
    let old = super::object("", "Endpoints", &json!({"subsets": [{"addresses": [{"ip": "127.0.0.1"}]}]}));
    assert_eq!(strategy.validate_update(Part::Main, &old, &old), []);
}

#[test]
fn endpoint_slices_are_validated_and_allow_port_zero() {
    let slice =
        json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 0}]});
    creates(
        "discovery.k8s.io",
        "EndpointSlice",
        &slice,
        &[
            ("/ports/0/port", json!(70_000), &[]),
            ("/ports/0/protocol", json!("ICMP"), &["ports[0].protocol NotSupported"]),
            ("/ports/-", json!({"port": 1}), &["ports[1].name Duplicate"]),
            ("/addressType", json!("X"), &["addressType NotSupported"]),
            ("/endpoints/0/addresses", json!(["127.0.0.1"]), &["endpoints[0].addresses[0] Invalid"]),
            ("/endpoints/0/addresses", json!(["fd00::1"]), &["endpoints[0].addresses Invalid"]),
            ("/endpoints/0/addresses", json!([]), &["endpoints[0].addresses Required"]),
            ("/endpoints/0/addresses", json!(vec!["10.0.0.1"; 101]), &["endpoints[0].addresses TooMany"]),
            ("/endpoints/0/hostname", json!("A"), &["endpoints[0].hostname Invalid"]),
            (
                "/endpoints/0/hints",
                json!({"forZones": [{"name": "a"}, {"name": "a"}]}),
                &["endpoints[0].hints.forZones[1].name Duplicate"],
            ),
            (
                "/endpoints/0/hints",
                json!({"forZones": [{"name": "a b"}]}),
                &["endpoints[0].hints.forZones[0].name Invalid"],
            ),
        ],
    );
    let domains = json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com"]}]});
    creates(
        "discovery.k8s.io",
        "EndpointSlice",
        &domains,
        &[
            ("/endpoints/0/addresses/0", json!("example"), &["endpoints[0].addresses[0] Invalid"]),
            ("/endpoints/0/addresses/0", json!(""), &["endpoints[0].addresses[0] Required"]),
        ],
    );
    let warnings = for_builtin("discovery.k8s.io", "v1", "EndpointSlice").warnings(&domains, None);
    assert_eq!(warnings, ["spec.addressType: FQDN endpoints are deprecated"]);
}

#[test]
fn errors_of_events_k8s_io_events_use_core_v1_field_names() {
    let event = json!({
        "metadata": {"name": "x", "namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        "reason": "r", "action": "a", "reportingController": "c", "reportingInstance": "i", "note": "n",
    });
    creates(
        "events.k8s.io",
        "Event",
        &event,
        &[
            ("/note", json!("x".repeat(1025)), &["message Invalid"]),
            ("/type", json!("Odd"), &["type Invalid"]),
            ("/deprecatedCount", json!(1), &["count Invalid"]),
            ("/deprecatedSource", json!({"component": "c"}), &["source Invalid"]),
            ("/series", json!({"count": 1}), &["series.count Invalid", "series.lastObservedTime Required"]),
            (
                "/reportingController",
                json!(""),
                &[
                    "reportingController Invalid",
                    "reportingController Invalid",
                    "reportingController Required",
                ],
            ),
        ],
    );
    updates(
        "events.k8s.io",
        "Event",
        Part::Main,
        &event,
        &[
            ("/note", json!("other"), &["message Invalid"]),
            ("/regarding", json!({"name": "p"}), &["involvedObject Invalid"]),
        ],
    );
}

#[test]
fn a_service_account_keeps_only_the_names_of_its_secrets() {
    let account = json!({"secrets": [{"name": "s", "namespace": "n", "kind": "Secret"}]});
    let account = created("", "ServiceAccount", &account);
    assert_eq!(account["secrets"], json!([{"name": "s"}]));
    let mut changed = account.clone();
    changed["secrets"][0]["uid"] = json!("u");
    assert_eq!(
        updated("", "ServiceAccount", Part::Main, &account, &changed)["secrets"],
        json!([{"name": "s"}])
    );
}

#[test]
fn a_cluster_role_that_aggregates_needs_selectors() {
    let role = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    creates(
        RBAC,
        "ClusterRole",
        &role,
        &[
            (
                "/aggregationRule/clusterRoleSelectors",
                json!([]),
                &["aggregationRule.clusterRoleSelectors Required"],
            ),
            (
                "/aggregationRule/clusterRoleSelectors/0",
                json!({"matchExpressions": [{"key": "a", "operator": "X"}]}),
                &[
                    "aggregationRule.clusterRoleSelectors[0] Invalid",
                    "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator Invalid",
                ],
            ),
        ],
    );
}

#[test]
fn ip_address_objects_are_named_by_canonical_addresses() {
    let named = |name: &str| json!({"metadata": {"name": name}, "spec": {"parentRef": {"resource": "services", "name": "s"}}});
    for name in ["fe80::1", "10.0.0.1"] {
        creates(
            "networking.k8s.io",
            "IPAddress",
            &named(name),
            &[
                ("/spec/parentRef", Value::Null, &["spec.parentRef Required"]),
                ("/spec/parentRef/name", json!(""), &["spec.parentRef.name Required"]),
                ("/spec/parentRef/resource", json!("a/b"), &["spec.parentRef.resource Invalid"]),
                ("/metadata/name", json!("FE80::1"), &["metadata.name Invalid"]),
                ("/metadata/name", json!("fe80:0::1"), &["metadata.name Invalid"]),
                ("/metadata/name", json!("010.0.0.1"), &["metadata.name Invalid"]),
                ("/metadata/name", json!("x"), &["metadata.name Invalid"]),
            ],
        );
    }
    updates(
        "networking.k8s.io",
        "IPAddress",
        Part::Main,
        &named("10.0.0.1"),
        &[("/spec/parentRef/name", json!("other"), &["spec.parentRef Invalid"])],
    );
}

#[test]
fn service_cidrs_are_validated() {
    let blocks = json!({"spec": {"cidrs": ["10.0.0.0/24"]}});
    creates(
        "networking.k8s.io",
        "ServiceCIDR",
        &blocks,
        &[
            ("/spec/cidrs", json!([]), &["spec.cidrs Required"]),
            ("/spec/cidrs/0", json!("10.0.0.1/24"), &["spec.cidrs[0] Invalid"]),
            ("/spec/cidrs/-", json!("10.1.0.0/24"), &["spec.cidrs Invalid"]),
            ("/spec/cidrs/-", json!("fd00::/112"), &[]),
            ("/spec/cidrs", json!(["10.0.0.0/24", "fd00::/112", "10.1.0.0/24"]), &["spec.cidrs Invalid"]),
        ],
    );
    updates(
        "networking.k8s.io",
        "ServiceCIDR",
        Part::Main,
        &blocks,
        &[
            ("/spec/cidrs/0", json!("10.9.0.0/24"), &["spec.cidrs[0] Invalid"]),
            ("/spec/cidrs/-", json!("fd00::/112"), &[]),
            ("/spec/cidrs", json!([]), &["spec.cidrs Invalid"]),
        ],
    );
}

#[test]
fn api_services_and_storage_version_migrations_are_validated() {
    let service = json!({"metadata": {"name": "v1.g.io"}, "spec": {
        "group": "g.io", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 1,
    }});
    creates(
        "apiregistration.k8s.io",
        "APIService",
        &service,
        &[
            ("/spec/groupPriorityMinimum", json!(0), &["spec.groupPriorityMinimum Invalid"]),
            ("/spec/versionPriority", json!(1001), &["spec.versionPriority Invalid"]),
            ("/spec/service", json!({"name": "s"}), &["spec.service.namespace Required"]),
            ("/spec/caBundle", json!("YQ=="), &["spec.caBundle Invalid"]),
        ],
    );
    let local = created("apiregistration.k8s.io", "APIService", &service);
    assert_eq!(local["status"]["conditions"][0]["lastTransitionTime"], json!(NOW));
    let migration = json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}}});
    creates(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        &migration,
        &[
            ("/spec/resource/resource", json!(""), &["spec.resource.resource Required"]),
            ("/spec/resource/group", json!("A"), &["spec.resource.group Invalid"]),
        ],
    );
    updates(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        Part::Main,
        &migration,
        &[("/spec/resource/resource", json!("pods"), &["spec Invalid"])],
    );
}
