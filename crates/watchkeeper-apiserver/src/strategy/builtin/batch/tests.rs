use serde_json::{Value, json};

use super::super::cases::KindUnderTest;

fn template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

fn job(extra: &Value) -> KindUnderTest {
    let mut spec = json!({"template": template()});
    for (name, value) in extra.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    KindUnderTest::new("batch", "v1", "Job", &json!({ "spec": spec }))
}

fn indexed() -> KindUnderTest {
    job(&json!({"completionMode": "Indexed", "completions": 8, "backoffLimitPerIndex": 1}))
}

#[test]
fn each_invalid_field_of_a_job_is_rejected() {
    let rule = |extra: Value| {
        let mut rule = json!({"action": "Ignore"});
        for (name, value) in extra.as_object().into_iter().flatten() {
            rule[name] = value.clone();
        }
        json!({ "rules": [rule] })
    };
    job(&json!({})).check_create(&[
        ("/spec/managedBy", json!(""), &["spec.managedBy Required"]),
        ("/spec/managedBy", json!("a"), &["spec.managedBy Invalid"]),
        ("/spec/managedBy", json!(format!("a.io/{}", "b".repeat(60))), &["spec.managedBy TooLong"]),
        ("/spec/completionMode", json!("X"), &["spec.completionMode NotSupported"]),
        (
            "/spec/maxFailedIndexes",
            json!(1),
            &["spec.backoffLimitPerIndex Required", "spec.maxFailedIndexes Invalid"],
        ),
        ("/spec/podReplacementPolicy", json!("X"), &["spec.podReplacementPolicy NotSupported"]),
        ("/spec/successPolicy", json!({"rules": []}), &["spec.successPolicy Invalid"]),
        ("/spec/podFailurePolicy", rule(json!({})), &["spec.podFailurePolicy.rules[0] Invalid"]),
        (
            "/spec/podFailurePolicy",
            rule(json!({"action": "X", "onPodConditions": [{"type": "A"}]})),
            &["spec.podFailurePolicy.rules[0].action NotSupported"],
        ),
        (
            "/spec/podFailurePolicy",
            rule(json!({"action": "FailIndex", "onPodConditions": [{"type": "A"}]})),
            &["spec.podFailurePolicy.rules[0].action Invalid"],
        ),
        (
            "/spec/podFailurePolicy",
            rule(json!({"onPodConditions": [{"type": "a b", "status": "X"}]})),
            &[
                "spec.podFailurePolicy.rules[0].onPodConditions[0].type Invalid",
                "spec.podFailurePolicy.rules[0].onPodConditions[0].status NotSupported",
            ],
        ),
        (
            "/spec/podFailurePolicy",
            rule(json!({"onExitCodes": {"operator": "In", "values": [0, 2, 1, 2], "containerName": "x"}})),
            &[
                "spec.podFailurePolicy.rules[0].onExitCodes.containerName Invalid",
                "spec.podFailurePolicy.rules[0].onExitCodes.values[3] Duplicate",
                "spec.podFailurePolicy.rules[0].onExitCodes.values[0] Invalid",
                "spec.podFailurePolicy.rules[0].onExitCodes.values Invalid",
            ],
        ),
        (
            "/spec/template/metadata/labels",
            json!({"job-name": "other"}),
            &["spec.template.metadata.labels[job-name] Invalid"],
        ),
        (
            "/spec/template",
            Value::Null,
            &["spec.template.spec.containers Required", "spec.template.spec.restartPolicy Required"],
        ),
    ]);
    indexed().check_create(&[
        ("/spec/parallelism", json!(100_001), &["spec.parallelism Invalid"]),
        ("/spec/maxFailedIndexes", json!(9), &["spec.maxFailedIndexes Invalid"]),
        ("/spec/successPolicy", json!({"rules": []}), &["spec.successPolicy.rules Required"]),
        ("/spec/successPolicy", json!({"rules": [{}]}), &["spec.successPolicy.rules[0] Required"]),
        (
            "/spec/successPolicy",
            json!({"rules": [{"succeededIndexes": "9"}]}),
            &["spec.successPolicy.rules[0].succeededIndexes Invalid"],
        ),
        (
            "/spec/successPolicy",
            json!({"rules": [{"succeededIndexes": "1-2", "succeededCount": 3}]}),
            &["spec.successPolicy.rules[0].succeededCount Invalid"],
        ),
        ("/metadata/name", json!("x".repeat(62)), &["metadata.name Invalid"]),
    ]);
}

#[test]
fn a_job_template_is_mutable_only_while_the_job_is_suspended_and_idle() {
    job(&json!({})).check_update(&[
        ("/spec/template/spec/nodeSelector", json!({"a": "b"}), &["spec.template Invalid"]),
        ("/spec/completions", json!(2), &["spec.completions Invalid"]),
        ("/spec/managedBy", json!("a.io/b"), &["spec.managedBy Invalid"]),
    ]);
    job(&json!({"suspend": true})).check_update(&[
        ("/spec/template/spec/nodeSelector", json!({"a": "b"}), &[]),
        ("/spec/template/spec/containers/0/resources", json!({"limits": {"cpu": "1"}}), &[]),
        ("/spec/template/spec/containers/0/image", json!("j"), &["spec.template.spec Invalid"]),
    ]);
    indexed().check_update(&[("/spec/completions", json!(9), &["spec.completions Invalid"])]);
}

#[test]
fn a_job_status_update_cannot_contradict_the_stored_status() {
    let done = |kind: &str| json!([{"type": kind, "status": "True"}]);
    job(&json!({})).check_status(
        &json!({"failed": 2, "succeeded": 1}),
        &[
            ("/status/failed", json!(1), &["status.failed Invalid"]),
            ("/status/succeeded", json!(0), &["status.succeeded Invalid"]),
            ("/status/completedIndexes", json!("0"), &["status.completedIndexes Invalid"]),
            ("/status/failedIndexes", json!("0"), &["status.failedIndexes Invalid"]),
            ("/status/ready", json!(1), &["status.ready Invalid"]),
            ("/status/completionTime", json!("2026-01-01T00:00:00Z"), &["status.completionTime Invalid"]),
            (
                "/status/conditions",
                done("Complete"),
                &["status.completionTime Required", "status.conditions Invalid", "status.startTime Required"],
            ),
            (
                "/status/conditions",
                done("Failed"),
                &["status.conditions Invalid", "status.startTime Required"],
            ),
            (
                "/status/uncountedTerminatedPods",
                json!({"succeeded": ["a"], "failed": ["a"]}),
                &["status.uncountedTerminatedPods.failed[0] Duplicate"],
            ),
        ],
    );
    indexed().check_status(
        &json!({"completedIndexes": "0-2"}),
        &[
            ("/status/completedIndexes", json!("8"), &["status.completedIndexes Invalid"]),
            ("/status/failedIndexes", json!("2-3"), &["status.failedIndexes Invalid"]),
            ("/status/failedIndexes", json!("3"), &[]),
        ],
    );
    job(&json!({})).check_status(
        &json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "FailureTarget", "status": "True"}]}),
        &[
            ("/status/conditions", json!([]), &["status.conditions Invalid"]),
            ("/status/startTime", json!("2026-01-02T00:00:00Z"), &["status.startTime Invalid"]),
        ],
    );
}

#[test]
fn labels_of_a_job_default_to_those_of_its_template() {
    let created = job(&json!({})).created(&[]);
    assert_eq!(created["metadata"]["labels"], created["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(created["metadata"]["labels"]["batch.kubernetes.io/job-name"], "x");
    let own = job(&json!({})).created(&[("/metadata/labels", json!({"mine": "1"}))]);
    assert_eq!(own["metadata"]["labels"], json!({"mine": "1"}));
}

#[test]
fn the_scheduling_of_a_job_is_dropped_because_its_gate_is_off() {
    let created = job(&json!({"scheduling": {"schedulingPolicy": {"basic": {}}}})).created(&[]);
    assert!(created["spec"].get("scheduling").is_none());
}

#[test]
fn each_invalid_field_of_a_cron_job_is_rejected() {
    let cron = KindUnderTest::new(
        "batch",
        "v1",
        "CronJob",
        &json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template()}}}}),
    );
    cron.check_create(&[
        ("/spec/timeZone", json!(""), &["spec.timeZone Invalid"]),
        ("/spec/timeZone", json!("Europe/Nowhere"), &["spec.timeZone Invalid"]),
        ("/spec/timeZone", json!("europe/berlin"), &["spec.timeZone Invalid"]),
        ("/spec/timeZone", json!("Europe/Berlin"), &[]),
        ("/spec/timeZone", json!("Local"), &["spec.timeZone Invalid"]),
        ("/spec/schedule", json!("TZ=UTC * * * * *"), &["spec.schedule Invalid"]),
        ("/spec/concurrencyPolicy", json!("X"), &["spec.concurrencyPolicy NotSupported"]),
        (
            "/spec/jobTemplate/spec/selector",
            json!({"matchLabels": {"a": "b"}}),
            &["spec.jobTemplate.spec.selector Invalid"],
        ),
        (
            "/spec/jobTemplate/spec/manualSelector",
            json!(true),
            &["spec.jobTemplate.spec.manualSelector NotSupported"],
        ),
        (
            "/spec/jobTemplate/spec/podFailurePolicy",
            json!({"rules": [{"action": "Ignore"}]}),
            &["spec.jobTemplate.spec.podFailurePolicy.rules[0] Invalid"],
        ),
        (
            "/spec/jobTemplate",
            Value::Null,
            &[
                "spec.jobTemplate.spec.template.spec.containers Required",
                "spec.jobTemplate.spec.template.spec.restartPolicy Required",
            ],
        ),
        ("/metadata/name", json!("x".repeat(53)), &["metadata.name Invalid"]),
    ]);
}
