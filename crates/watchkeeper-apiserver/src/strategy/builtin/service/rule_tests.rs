use serde_json::json;

use super::super::cases::KindUnderTest;

#[test]
fn each_invalid_field_of_a_service_is_rejected() {
    let service = KindUnderTest::new("", "v1", "Service", &json!({"spec": {"ports": [{"port": 80}]}}));
    service.check_create(&[
        ("/spec/ipFamilies", json!(["IPv6"]), &["spec.ipFamilies[0] Invalid"]),
        ("/spec/ipFamilies", json!(["IPv5"]), &["spec.ipFamilies[0] NotSupported"]),
        ("/spec/ipFamilies", json!(["IPv4", "IPv4"]), &["spec.ipFamilies[1] Duplicate"]),
        ("/spec/ipFamilyPolicy", json!("RequireDualStack"), &["spec.ipFamilyPolicy Invalid"]),
        ("/spec/ipFamilyPolicy", json!("X"), &["spec.ipFamilyPolicy NotSupported"]),
        ("/spec/externalIPs", json!(["127.0.0.1"]), &["spec.externalIPs[0] Invalid"]),
        ("/spec/externalIPs", json!(["x"]), &["spec.externalIPs[0] Invalid"]),
        (
            "/spec/loadBalancerSourceRanges",
            json!(["10.0.0.0/8"]),
            &["spec.LoadBalancerSourceRanges Forbidden"],
        ),
        ("/spec/loadBalancerClass", json!("a/b"), &["spec.loadBalancerClass Forbidden"]),
        (
            "/spec/ports",
            json!([{"port": 80}, {"port": 80}]),
            &["spec.ports[0].name Required", "spec.ports[1].name Required", "spec.ports[1] Duplicate"],
        ),
        (
            "/spec/ports/0/appProtocol",
            json!(""),
            &["spec.ports[0].appProtocol Invalid", "spec.ports[0].appProtocol Invalid"],
        ),
        ("/spec/internalTrafficPolicy", json!("X"), &["spec.internalTrafficPolicy NotSupported"]),
        ("/spec/externalTrafficPolicy", json!("Local"), &["spec.externalTrafficPolicy Invalid"]),
        ("/spec/trafficDistribution", json!("X"), &["spec.trafficDistribution NotSupported"]),
        ("/spec/healthCheckNodePort", json!(30000), &["spec.healthCheckNodePort Invalid"]),
        ("/spec/sessionAffinity", json!("X"), &["spec.sessionAffinity NotSupported"]),
    ]);
    let balanced = KindUnderTest::new(
        "",
        "v1",
        "Service",
        &json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
    );
    balanced.check_create(&[
        ("/spec/loadBalancerSourceRanges", json!([" 10.0.0.0/8 "]), &[]),
        (
            "/spec/loadBalancerSourceRanges",
            json!(["10.0.0.1/8"]),
            &["spec.LoadBalancerSourceRanges[0] Invalid"],
        ),
        (
            "/spec/loadBalancerClass",
            json!(""),
            &["spec.loadBalancerClass Invalid", "spec.loadBalancerClass Invalid"],
        ),
    ]);
    balanced.check_update(&[("/spec/loadBalancerClass", json!("a/b"), &["spec.loadBalancerClass Invalid"])]);
}

#[test]
fn only_a_load_balancer_service_has_ingress_addresses_in_its_status() {
    let ingress = "/status/loadBalancer/ingress";
    let service = KindUnderTest::new("", "v1", "Service", &json!({"spec": {"ports": [{"port": 80}]}}));
    service.check_status(
        &json!({}),
        &[(ingress, json!([{"ip": "10.0.0.1"}]), &["status.loadBalancer.ingress Forbidden"])],
    );
    let balanced = KindUnderTest::new(
        "",
        "v1",
        "Service",
        &json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
    );
    balanced.check_status(
        &json!({}),
        &[
            (ingress, json!([{"ip": "10.0.0.1"}]), &[]),
            (ingress, json!([{"ip": "x"}]), &["status.loadBalancer.ingress[0].ip Invalid"]),
            (
                ingress,
                json!([{"hostname": "10.0.0.1"}]),
                &["status.loadBalancer.ingress[0].hostname Invalid"],
            ),
            (
                ingress,
                json!([{"hostname": "a", "ipMode": "VIP"}]),
                &["status.loadBalancer.ingress[0].ipMode Forbidden"],
            ),
            (
                ingress,
                json!([{"ip": "10.0.0.1", "ipMode": "X"}]),
                &["status.loadBalancer.ingress[0].ipMode NotSupported"],
            ),
        ],
    );
}
