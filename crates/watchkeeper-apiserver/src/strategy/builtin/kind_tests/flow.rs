//! Flow schemas and priority levels.

use serde_json::{Value, json};

use super::{creates, updates};
use crate::strategy::Part;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

#[test]
fn flow_schemas_are_validated() {
    let schema = json!({"spec": {
        "priorityLevelConfiguration": {"name": "a"}, "distinguisherMethod": {"type": "ByUser"},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": "u"}}],
            "resourceRules": [{"verbs": ["get"], "apiGroups": ["*"], "resources": ["pods"], "namespaces": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/a/*"]}],
        }],
    }});
    creates(
        GROUP,
        "FlowSchema",
        &schema,
        &[
            ("/spec/matchingPrecedence", json!(-1), &["spec.matchingPrecedence Invalid"]),
            ("/spec/matchingPrecedence", json!(1), &["spec.matchingPrecedence Invalid"]),
            ("/spec/matchingPrecedence", json!(10_001), &["spec.matchingPrecedence Invalid"]),
            ("/spec/distinguisherMethod/type", json!("Odd"), &["spec.distinguisherMethod.type NotSupported"]),
            (
                "/spec/priorityLevelConfiguration/name",
                json!(""),
                &["spec.priorityLevelConfiguration.name Required"],
            ),
            ("/spec/rules/0/subjects", json!([]), &["spec.rules[0].subjects Required"]),
            ("/spec/rules/0/subjects/0/kind", json!("Odd"), &["spec.rules[0].subjects[0].kind NotSupported"]),
            (
                "/spec/rules/0/subjects/0/kind",
                json!("Group"),
                &["spec.rules[0].subjects[0].group Required", "spec.rules[0].subjects[0].user Forbidden"],
            ),
            (
                "/spec/rules/0/subjects/0",
                json!({"kind": "ServiceAccount", "serviceAccount": {"name": "*"}}),
                &["spec.rules[0].subjects[0].serviceAccount.namespace Required"],
            ),
            (
                "/spec/rules/0/resourceRules/0/verbs",
                json!(["odd"]),
                &["spec.rules[0].resourceRules[0].verbs NotSupported"],
            ),
            (
                "/spec/rules/0/resourceRules/0/verbs",
                json!(["*", "get"]),
                &["spec.rules[0].resourceRules[0].verbs Invalid"],
            ),
            (
                "/spec/rules/0/resourceRules/0/namespaces",
                json!([]),
                &["spec.rules[0].resourceRules[0].namespaces Required"],
            ),
            (
                "/spec/rules/0/resourceRules/0/namespaces",
                json!(["A"]),
                &["spec.rules[0].resourceRules[0].namespaces[0] Invalid"],
            ),
            (
                "/spec/rules/0/nonResourceRules/0/nonResourceURLs",
                json!(["a"]),
                &["spec.rules[0].nonResourceRules[0].nonResourceURLs[0] Invalid"],
            ),
            (
                "/spec/rules/0",
                json!({"subjects": [{"kind": "User", "user": {"name": "u"}}]}),
                &["spec.rules[0] Required"],
            ),
            ("/metadata", json!({"name": "exempt"}), &["spec Invalid"]),
        ],
    );
    updates(
        GROUP,
        "FlowSchema",
        Part::Subresource("status"),
        &schema,
        &[
            (
                "/status/conditions",
                json!([{"type": "A"}, {"type": "A"}]),
                &["status.conditions[1].type Duplicate"],
            ),
            ("/status/conditions", json!([{"type": ""}]), &["status.conditions[0].type Required"]),
        ],
    );
}

#[test]
fn priority_level_configurations_are_validated() {
    let level =
        json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}});
    let queuing = |member: &str| format!("/spec/limited/limitResponse/queuing/{member}");
    creates(
        GROUP,
        "PriorityLevelConfiguration",
        &level,
        &[
            ("/spec/type", json!(""), &["spec.limited Forbidden", "spec.type Required"]),
            ("/spec/type", json!("Odd"), &["spec.limited Forbidden", "spec.type NotSupported"]),
            ("/spec/type", json!("Exempt"), &["spec.limited Forbidden", "spec.type Invalid"]),
            ("/spec/limited", Value::Null, &["spec.limited Required"]),
            (
                "/spec/limited/nominalConcurrencyShares",
                json!(-1),
                &["spec.limited.nominalConcurrencyShares Invalid"],
            ),
            ("/spec/limited/lendablePercent", json!(101), &["spec.limited.lendablePercent Invalid"]),
            (
                "/spec/limited/borrowingLimitPercent",
                json!(-1),
                &["spec.limited.borrowingLimitPercent Invalid"],
            ),
            (
                "/spec/limited/limitResponse/type",
                json!("Reject"),
                &["spec.limited.limitResponse.queuing Forbidden"],
            ),
            (
                "/spec/limited/limitResponse/type",
                json!(""),
                &["spec.limited.limitResponse.queuing Forbidden", "spec.limited.limitResponse.type Required"],
            ),
            (
                &queuing("queues"),
                json!(-1),
                &[
                    "spec.limited.limitResponse.queuing.handSize Invalid",
                    "spec.limited.limitResponse.queuing.queues Invalid",
                ],
            ),
            (&queuing("handSize"), json!(65), &["spec.limited.limitResponse.queuing.handSize Invalid"]),
            (&queuing("handSize"), json!(60), &["spec.limited.limitResponse.queuing.handSize Invalid"]),
            ("/metadata", json!({"name": "catch-all"}), &["spec Invalid"]),
        ],
    );
}
