//! Webhook configurations and admission policies.

use serde_json::{Value, json};

use super::{creates, updates};
use crate::strategy::Part;

const GROUP: &str = "admissionregistration.k8s.io";

fn rule() -> Value {
    json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]})
}

#[test]
fn webhook_configurations_are_validated() {
    let webhooks = json!({"webhooks": [{
        "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule()],
        "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/a"}},
    }]});
    let table: &[super::FieldChange<'_>] = &[
        ("/webhooks/0/name", json!("a.b"), &["webhooks[0].name Invalid"]),
        ("/webhooks/0/name", json!(""), &["webhooks[0].name Required"]),
        ("/webhooks/0/sideEffects", json!("Some"), &["webhooks[0].sideEffects NotSupported"]),
        ("/webhooks/0/sideEffects", Value::Null, &["webhooks[0].sideEffects Required"]),
        ("/webhooks/0/failurePolicy", json!("Odd"), &["webhooks[0].failurePolicy NotSupported"]),
        ("/webhooks/0/matchPolicy", json!("Odd"), &["webhooks[0].matchPolicy NotSupported"]),
        ("/webhooks/0/timeoutSeconds", json!(31), &["webhooks[0].timeoutSeconds Invalid"]),
        ("/webhooks/0/admissionReviewVersions", json!([]), &["webhooks[0].admissionReviewVersions Required"]),
        (
            "/webhooks/0/admissionReviewVersions",
            json!(["v2"]),
            &["webhooks[0].admissionReviewVersions Invalid"],
        ),
        (
            "/webhooks/0/admissionReviewVersions",
            json!(["v1", "v1"]),
            &["webhooks[0].admissionReviewVersions[1] Invalid"],
        ),
        ("/webhooks/0/clientConfig", json!({}), &["webhooks[0].clientConfig Required"]),
        (
            "/webhooks/0/clientConfig",
            json!({"url": "http://a?b#c"}),
            &[
                "webhooks[0].clientConfig.url Invalid",
                "webhooks[0].clientConfig.url Invalid",
                "webhooks[0].clientConfig.url Invalid",
            ],
        ),
        (
            "/webhooks/0/clientConfig/service/path",
            json!("a//b"),
            &[
                "webhooks[0].clientConfig.service.path Invalid",
                "webhooks[0].clientConfig.service.path Invalid",
                "webhooks[0].clientConfig.service.path Invalid",
            ],
        ),
        (
            "/webhooks/0/clientConfig/service/port",
            json!(70_000),
            &["webhooks[0].clientConfig.service.port Invalid"],
        ),
        (
            "/webhooks/0/namespaceSelector",
            json!({"matchLabels": {"a b": "c"}}),
            &["webhooks[0].namespaceSelector.matchLabels Invalid"],
        ),
        (
            "/webhooks/0/rules/0/operations",
            json!(["*", "CREATE"]),
            &["webhooks[0].rules[0].operations Invalid"],
        ),
        (
            "/webhooks/0/rules/0/operations",
            json!(["ODD"]),
            &["webhooks[0].rules[0].operations[0] NotSupported"],
        ),
        ("/webhooks/0/rules/0/apiVersions", json!([""]), &["webhooks[0].rules[0].apiVersions[0] Required"]),
        ("/webhooks/0/rules/0/resources", json!(["*/*", "a"]), &["webhooks[0].rules[0].resources Invalid"]),
        (
            "/webhooks/0/rules/0/resources",
            json!(["pods/*", "pods/status"]),
            &["webhooks[0].rules[0].resources[1] Invalid"],
        ),
        ("/webhooks/0/rules/0/scope", json!("Odd"), &["webhooks[0].rules[0].scope NotSupported"]),
        (
            "/webhooks/0/matchConditions",
            json!([{"name": "a b", "expression": " "}]),
            &[
                "webhooks[0].matchConditions[0].expression Required",
                "webhooks[0].matchConditions[0].name Invalid",
            ],
        ),
        ("/metadata", json!({"name": "a.static.k8s.io"}), &["metadata.name Invalid"]),
    ];
    creates(GROUP, "ValidatingWebhookConfiguration", &webhooks, table);
    creates(GROUP, "MutatingWebhookConfiguration", &webhooks, table);
    creates(
        GROUP,
        "MutatingWebhookConfiguration",
        &webhooks,
        &[("/webhooks/0/reinvocationPolicy", json!("Odd"), &["webhooks[0].reinvocationPolicy NotSupported"])],
    );
    let second = webhooks["webhooks"][0].clone();
    updates(
        GROUP,
        "ValidatingWebhookConfiguration",
        Part::Main,
        &webhooks,
        &[("/webhooks/-", second, &["webhooks[1].name Duplicate"])],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn validating_policies_and_bindings_are_validated() {
    let policy = json!({"spec": {
        "matchConstraints": {"resourceRules": [rule()]},
        "validations": [{"expression": "true"}],
        "variables": [{"name": "v", "expression": "1"}],
        "paramKind": {"apiVersion": "a.b/v1", "kind": "K"},
        "auditAnnotations": [{"key": "k", "valueExpression": "'a'"}],
    }});
    creates(
        GROUP,
        "ValidatingAdmissionPolicy",
        &policy,
        &[
            ("/spec/failurePolicy", json!("Odd"), &["spec.failurePolicy NotSupported"]),
            ("/spec/matchConstraints", Value::Null, &["spec.matchConstraints Required"]),
            (
                "/spec/matchConstraints/resourceRules",
                json!([]),
                &["spec.matchConstraints.resourceRules Required"],
            ),
            (
                "/spec/matchConstraints/resourceRules/0/resourceNames",
                json!(["a", "a"]),
                &["spec.matchConstraints.resourceRules[0].resourceNames[1] Duplicate"],
            ),
            ("/spec/paramKind/apiVersion", json!("a/b/c"), &["spec.paramKind.apiVersion Invalid"]),
            ("/spec/paramKind/kind", json!(""), &["spec.paramKind.kind Required"]),
            ("/spec/variables/0/name", json!("if"), &["spec.variables[0].name Invalid"]),
            ("/spec/variables/0/expression", json!(" "), &["spec.variables[0].expression Required"]),
            ("/spec/validations/0/expression", json!(""), &["spec.validations[0].expression Required"]),
            ("/spec/validations/0/message", json!("a\nb"), &["spec.validations[0].message Invalid"]),
            (
                "/spec/validations/0/messageExpression",
                json!(" "),
                &["spec.validations[0].messageExpression Invalid"],
            ),
            ("/spec/validations/0/reason", json!("Odd"), &["spec.validations[0].reason NotSupported"]),
            ("/spec/auditAnnotations/0/key", json!("a b"), &["spec.auditAnnotations[0].key Invalid"]),
            (
                "/spec/auditAnnotations/-",
                json!({"key": "k", "valueExpression": "'a'"}),
                &["spec.auditAnnotations[1].key Duplicate"],
            ),
            (
                "/spec",
                json!({"matchConstraints": {"resourceRules": [rule()]}}),
                &["spec.auditAnnotations Required", "spec.validations Required"],
            ),
        ],
    );
    updates(
        GROUP,
        "ValidatingAdmissionPolicy",
        Part::Subresource("status"),
        &policy,
        &[
            (
                "/status/conditions",
                json!([{"type": "A", "status": "Odd", "reason": "R", "lastTransitionTime": "t"}]),
                &["status.conditions[0].status NotSupported"],
            ),
            (
                "/status/typeChecking",
                json!({"expressionWarnings": [{"fieldRef": "", "warning": ""}]}),
                &[
                    "status.typeChecking.expressionWarnings[0].fieldRef Required",
                    "status.typeChecking.expressionWarnings[0].warning Required",
                ],
            ),
        ],
    );
    let binding = json!({"spec": {
        "policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "a", "parameterNotFoundAction": "Deny"},
        "matchResources": {"resourceRules": [rule()]},
    }});
    creates(
        GROUP,
        "ValidatingAdmissionPolicyBinding",
        &binding,
        &[
            ("/spec/policyName", json!(""), &["spec.policyName Required"]),
            ("/spec/validationActions", json!([]), &["spec.validationActions Required"]),
            ("/spec/validationActions", json!(["Deny", "Warn"]), &["spec.validationActions Invalid"]),
            (
                "/spec/validationActions",
                json!(["Odd", "Odd"]),
                &[
                    "spec.validationActions[0] NotSupported",
                    "spec.validationActions[1] Duplicate",
                    "spec.validationActions[1] NotSupported",
                ],
            ),
            (
                "/spec/paramRef/selector",
                json!({}),
                &["spec.paramRef.name Forbidden", "spec.paramRef.selector Forbidden"],
            ),
            ("/spec/paramRef/name", json!(""), &["spec.paramRef Required"]),
            (
                "/spec/paramRef/parameterNotFoundAction",
                json!("Odd"),
                &["spec.paramRef.parameterNotFoundAction NotSupported"],
            ),
            (
                "/spec/matchResources/matchPolicy",
                json!("Odd"),
                &["spec.matchResources.matchPolicy NotSupported"],
            ),
        ],
    );
}

#[test]
fn mutating_policies_and_bindings_are_validated() {
    let policy = json!({"spec": {
        "matchConstraints": {"resourceRules": [rule()]}, "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
    }});
    creates(
        GROUP,
        "MutatingAdmissionPolicy",
        &policy,
        &[
            ("/spec/reinvocationPolicy", json!(""), &["spec.reinvocationPolicy Required"]),
            ("/spec/mutations", json!([]), &["spec.mutations Required"]),
            ("/spec/mutations/0/patchType", json!(""), &["spec.mutations[0].patchType Required"]),
            ("/spec/mutations/0/patchType", json!("Odd"), &["spec.mutations[0].patchType NotSupported"]),
            (
                "/spec/mutations/0/patchType",
                json!("ApplyConfiguration"),
                &["spec.mutations[0].applyConfiguration Required", "spec.mutations[0].jsonPatch Invalid"],
            ),
            (
                "/spec/mutations/0/jsonPatch/expression",
                json!(" "),
                &["spec.mutations[0].jsonPatch.expression Required"],
            ),
            (
                "/spec/matchConstraints/resourceRules/0/operations",
                json!(["DELETE"]),
                &["spec.matchConstraints.resourceRules.operations NotSupported"],
            ),
        ],
    );
    let binding = json!({"spec": {"policyName": "p", "matchResources": {"resourceRules": [rule()]}}});
    creates(
        GROUP,
        "MutatingAdmissionPolicyBinding",
        &binding,
        &[
            ("/spec/policyName", json!("A_b"), &["spec.policyName Invalid"]),
            (
                "/spec/matchResources/resourceRules/0/operations",
                json!(["DELETE"]),
                &["spec.matchResources.resourceRules.operations NotSupported"],
            ),
        ],
    );
}
