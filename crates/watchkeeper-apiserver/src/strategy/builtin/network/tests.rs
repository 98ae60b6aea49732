use serde_json::json;

use super::super::cases::KindUnderTest;

#[test]
fn each_invalid_field_of_an_ingress_is_rejected() {
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = KindUnderTest::new(
        "networking.k8s.io",
        "v1",
        "Ingress",
        &json!({"spec": {
        "rules": [{"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
    );
    ingress.check_create(&[
        ("/spec/rules", json!([]), &["spec Invalid"]),
        ("/spec/rules/0/host", json!("10.0.0.1"), &["spec.rules[0].host Invalid"]),
        ("/spec/rules/0/host", json!("*"), &["spec.rules[0].host Invalid"]),
        (
            "/spec/rules/0/http/paths/0/pathType",
            json!("X"),
            &["spec.rules[0].http.paths[0].pathType NotSupported"],
        ),
        ("/spec/rules/0/http/paths/0/path", json!("/a//b"), &["spec.rules[0].http.paths[0].path Invalid"]),
        (
            "/spec/defaultBackend",
            json!({"resource": {"apiGroup": "A", "kind": "", "name": "a/b"}}),
            &[
                "spec.defaultBackend.resource.apiGroup Invalid",
                "spec.defaultBackend.resource.kind Required",
                "spec.defaultBackend.resource.name Invalid",
            ],
        ),
        ("/spec/defaultBackend", json!({"service": {"name": "s"}}), &["spec.defaultBackend Required"]),
        ("/spec/ingressClassName", json!(""), &["spec.ingressClassName Invalid"]),
        (
            "/spec/tls",
            json!([{"hosts": [""], "secretName": "A"}]),
            &["spec.tls[0].hosts[0] Invalid", "spec.tls[0].secretName Invalid"],
        ),
    ]);
    ingress.check_status(
        &json!({}),
        &[
            (
                "/status/loadBalancer/ingress",
                json!([{"ip": "x"}]),
                &["status.loadBalancer.ingress[0].ip Invalid"],
            ),
            (
                "/status/loadBalancer/ingress",
                json!([{"hostname": "10.0.0.1"}]),
                &["status.loadBalancer.ingress[0].hostname Invalid"],
            ),
            ("/status/loadBalancer/ingress", json!([{"ip": "10.0.0.1", "hostname": "a.b"}]), &[]),
        ],
    );
}

#[test]
fn invalid_controllers_and_parameters_of_an_ingress_class_are_rejected() {
    let class = KindUnderTest::new(
        "networking.k8s.io",
        "v1",
        "IngressClass",
        &json!({"metadata": {"name": "x"}, "spec": {"controller": "a.io/b"}}),
    );
    class.check_create(&[
        ("/spec/controller", json!(""), &["spec.controller Required"]),
        ("/spec/controller", json!("a"), &["spec.controller Invalid"]),
        ("/spec/controller", json!(format!("a.io/{}", "b".repeat(250))), &["spec.controller TooLong"]),
        (
            "/spec/parameters",
            json!({"kind": "K", "name": "n", "scope": "Namespace"}),
            &["spec.parameters.namespace Required"],
        ),
        (
            "/spec/parameters",
            json!({"kind": "K", "name": "n", "namespace": "n"}),
            &["spec.parameters.namespace Forbidden"],
        ),
        (
            "/spec/parameters",
            json!({"kind": "K", "name": "n", "scope": "X"}),
            &["spec.parameters.scope NotSupported"],
        ),
    ]);
    class.check_update(&[("/spec/controller", json!("a.io/c"), &["spec.controller Invalid"])]);
}

#[test]
fn invalid_ports_and_peers_of_a_network_policy_are_rejected() {
    let policy = KindUnderTest::new(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        &json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80, "endPort": 90}]}]}}),
    );
    policy.check_create(&[
        ("/spec/ingress/0/ports/0/endPort", json!(79), &["spec.ingress[0].ports[0].endPort Invalid"]),
        ("/spec/ingress/0/ports/0/endPort", json!(70000), &["spec.ingress[0].ports[0].endPort Invalid"]),
        ("/spec/ingress/0/ports/0/port", json!("http"), &["spec.ingress[0].ports[0].endPort Invalid"]),
        ("/spec/ingress/0/ports/0/port", json!(null), &["spec.ingress[0].ports[0].endPort Invalid"]),
        (
            "/spec/ingress/0/ports/0/protocol",
            json!("ICMP"),
            &["spec.ingress[0].ports[0].protocol NotSupported"],
        ),
        (
            "/spec/egress",
            json!([{"to": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]),
            &["spec.egress[0].to[0].ipBlock.cidr Invalid"],
        ),
        (
            "/spec/egress",
            json!([{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "10.0.0.0/8"]}}]}]),
            &[
                "spec.egress[0].to[0].ipBlock.except[0] Invalid",
                "spec.egress[0].to[0].ipBlock.except[1] Invalid",
            ],
        ),
        (
            "/spec/egress",
            json!([{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]),
            &["spec.egress[0].to[0] Forbidden"],
        ),
        ("/spec/policyTypes", json!(["Ingress", "Egress", "Ingress"]), &["spec.policyTypes Invalid"]),
        ("/spec/policyTypes", json!(["X"]), &["spec.policyTypes[0] NotSupported"]),
    ]);
}

#[test]
fn an_ip_address_object_is_named_after_its_ip_and_needs_a_parent_ref() {
    let address = KindUnderTest::new(
        "networking.k8s.io",
        "v1",
        "IPAddress",
        &json!({"metadata": {"name": "fe80::1"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}}),
    );
    address.check_create(&[
        ("/metadata/name", json!("fe80:0::1"), &["metadata.name Invalid"]),
        ("/spec/parentRef", json!(null), &["spec.parentRef Required"]),
        ("/spec/parentRef/name", json!(""), &["spec.parentRef.name Required"]),
    ]);
    address.check_update(&[("/spec/parentRef/name", json!("t"), &["spec.parentRef Invalid"])]);
}

#[test]
fn a_service_cidr_can_add_only_the_other_ip_family() {
    let range = KindUnderTest::new(
        "networking.k8s.io",
        "v1",
        "ServiceCIDR",
        &json!({"metadata": {"name": "x"}, "spec": {"cidrs": ["10.0.0.0/16"]}}),
    );
    range.check_create(&[
        ("/spec/cidrs", json!([]), &["spec.cidrs Required"]),
        ("/spec/cidrs", json!(["10.0.0.1/16"]), &["spec.cidrs[0] Invalid"]),
        ("/spec/cidrs", json!(["10.0.0.0/16", "10.1.0.0/16"]), &["spec.cidrs Invalid"]),
    ]);
    range.check_update(&[
        ("/spec/cidrs", json!(["10.0.0.0/16", "2001:db8::/64"]), &[]),
        ("/spec/cidrs", json!(["10.1.0.0/16"]), &["spec.cidrs[0] Invalid"]),
        ("/spec/cidrs", json!([]), &["spec.cidrs Invalid"]),
    ]);
}
