//! The cells of cluster and policy kinds: nodes, namespaces, events, roles, leases, definitions, policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RowContext, age, at, joined, none_if_empty};

#[expect(clippy::too_many_lines, reason = "a table: an arm for each kind")]
pub(super) fn cells(group: &str, plural: &str, row: &RowContext<'_>) -> Option<Vec<Value>> {
    let (name, age) = (row.name(), row.age());
    let text = |path: &str| Value::from(row.text(path));
    Some(match (group, plural) {
        ("", "configmaps") => vec![name, (row.count("data") + row.count("binaryData")).into(), age],
        ("", "secrets") => vec![name, text("type"), row.count("data").into(), age],
        ("", "namespaces") => vec![name, text("status.phase"), age],
        ("", "nodes") => node(row),
        ("", "resourcequotas") => vec![name, quota(row, false).into(), quota(row, true).into(), age],
        ("", "componentstatuses") => component(row),
        ("" | "events.k8s.io", "events") => event(row),
        ("", "serviceaccounts") | ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates") => {
            vec![name, age]
        }
        ("coordination.k8s.io", "leases") => vec![name, text("spec.holderIdentity"), age],
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => vec![
            name,
            format!("{}/{}", row.text("roleRef.kind"), row.text("roleRef.name")).into(),
            age,
            subjects(row, "User").into(),
            subjects(row, "Group").into(),
            subjects(row, "ServiceAccount").into(),
        ],
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(row),
        ("apiregistration.k8s.io", "apiservices") => {
            vec![name, service(row).into(), available(row).into(), age]
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            let duration = row.at("spec.expirationSeconds").as_i64().map_or("<none>".to_owned(), age::human);
            vec![
                name,
                age,
                row.or("spec.signerName", "<none>"),
                text("spec.username"),
                duration.into(),
                request_state(row).into(),
            ]
        }
        ("certificates.k8s.io", "clustertrustbundles") => vec![name, row.or("spec.signerName", "<none>")],
        ("certificates.k8s.io", "podcertificaterequests") => {
            let mut states =
                row.list("status.conditions").iter().filter_map(|condition| condition["type"].as_str());
            let state = states.rfind(|state| matches!(*state, "Issued" | "Denied" | "Failed"));
            vec![
                name,
                text("spec.podName"),
                text("spec.serviceAccountName"),
                text("spec.nodeName"),
                text("spec.signerName"),
                state.unwrap_or("Pending").into(),
                row.labels("spec.unverifiedUserAnnotations"),
            ]
        }
        ("admissionregistration.k8s.io", _) => return admission(plural, row),
        ("scheduling.k8s.io", "priorityclasses") => vec![
            name,
            row.int("value").into(),
            (row.at("globalDefault") == &Value::Bool(true)).into(),
            age,
            text("preemptionPolicy"),
        ],
        ("node.k8s.io", "runtimeclasses") => vec![name, text("handler"), age],
        ("resource.k8s.io", "devicetaintrules") => {
            let is_added = row.at("spec.taint.timeAdded").is_string();
            vec![
                name,
                text("spec.taint.key"),
                text("spec.taint.value"),
                text("spec.taint.effect"),
                if is_added { row.since("spec.taint.timeAdded").into() } else { "".into() },
                age,
            ]
        }
        ("resource.k8s.io", "resourceclaims") => vec![name, claim_state(row).into(), age],
        ("resource.k8s.io", "resourceslices") => {
            vec![name, text("spec.nodeName"), text("spec.driver"), text("spec.pool.name"), age]
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => vec![
            name,
            text("spec.priorityLevelConfiguration.name"),
            row.int("spec.matchingPrecedence").into(),
            row.or("spec.distinguisherMethod.type", "<none>"),
            age,
            row.condition("Dangling").map_or("?".into(), |condition| condition["status"].clone()),
        ],
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            let number = |path: &str| match row.at(path) {
                Value::Null => "<none>".into(),
                number => number.clone(),
            };
            vec![
                name,
                text("spec.type"),
                number("spec.limited.nominalConcurrencyShares"),
                number("spec.limited.limitResponse.queuing.queues"),
                number("spec.limited.limitResponse.queuing.handSize"),
                number("spec.limited.limitResponse.queuing.queueLengthLimit"),
                age,
            ]
        }
        ("storagemigration.k8s.io", "storageversionmigrations") => {
            let parts = [row.text("spec.resource.resource"), row.text("spec.resource.group")];
            let resource: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let state =
                ["Running", "Failed", "Succeeded"].into_iter().rfind(|state| row.is_condition_true(state));
            vec![name, resource.join(".").into(), state.unwrap_or("Unknown").into()]
        }
        _ => return None,
    })
}

fn node(row: &RowContext<'_>) -> Vec<Value> {
    let ready = match row.condition("Ready") {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let disabled =
        if row.at("spec.unschedulable") == &Value::Bool(true) { ",SchedulingDisabled" } else { "" };
    let roles: BTreeSet<&str> = row
        .at("metadata.labels")
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let address = |ty: &str| -> Value {
        let found = row.list("status.addresses").iter().find(|address| address["type"] == ty);
        found.and_then(|address| address["address"].as_str()).unwrap_or("<none>").into()
    };
    let info = |member: &str| row.or(&format!("status.nodeInfo.{member}"), "<unknown>");
    let architecture = row.text("status.nodeInfo.architecture");
    let kernel = info("kernelVersion");
    let kernel = kernel.as_str().unwrap_or_default();
    vec![
        row.name(),
        format!("{ready}{disabled}").into(),
        none_if_empty(roles.into_iter().collect::<Vec<_>>().join(",")),
        row.age(),
        row.text("status.nodeInfo.kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        if architecture.is_empty() { kernel.into() } else { format!("{kernel} ({architecture})").into() },
        info("containerRuntimeVersion"),
    ]
}

/// Returns the cells of an event of either group. `events.k8s.io` has other field names.
fn event(row: &RowContext<'_>) -> Vec<Value> {
    let first_of = |paths: &[&str]| paths.iter().map(|path| row.text(path)).find(|text| !text.is_empty());
    let text = |paths: &[&str]| first_of(paths).unwrap_or_default();
    let time = |paths: &[&str]| age::since(first_of(paths), row.now);
    let first = time(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    let has_series = row.at("series").is_object();
    let last = match first_of(&["lastTimestamp", "deprecatedLastTimestamp"]) {
        _ if has_series => time(&["series.lastObservedTime"]),
        Some(last) => age::since(Some(last), row.now),
        None => first.clone(),
    };
    let count = if has_series {
        row.int("series.count")
    } else {
        [row.int("count"), row.int("deprecatedCount"), 1].into_iter().find(|count| *count != 0).unwrap_or(1)
    };
    let about = |member: &str| {
        let [old, new] = ["involvedObject", "regarding"].map(|about| format!("{about}.{member}"));
        text(&[&old, &new])
    };
    let kind = about("kind").to_lowercase();
    let target = if about("name").is_empty() { kind } else { format!("{kind}/{}", about("name")) };
    let component = text(&[
        "source.component",
        "deprecatedSource.component",
        "reportingComponent",
        "reportingController",
    ]);
    let instance = text(&["source.host", "deprecatedSource.host", "reportingInstance"]);
    let source = if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") };
    vec![
        last.into(),
        row.text("type").into(),
        row.text("reason").into(),
        target.into(),
        about("fieldPath").into(),
        source.into(),
        text(&["message", "note"]).trim().into(),
        first.into(),
        count.into(),
        row.name(),
    ]
}

/// Returns the used and hard values of a quota, either of limits or of all other resources.
fn quota(row: &RowContext<'_>, is_limits: bool) -> String {
    let mut resources: Vec<&str> = row
        .at("status.hard")
        .as_object()
        .into_iter()
        .flatten()
        .map(|(resource, _)| resource.as_str())
        .collect();
    resources.sort_unstable();
    let amount = |of: &str, resource: &str| row.at(of)[resource].as_str().unwrap_or("0").to_owned();
    let row: Vec<String> = resources
        .into_iter()
        .filter(|resource| resource.starts_with("limits.") == is_limits)
        .map(|resource| {
            format!("{resource}: {}/{}", amount("status.used", resource), amount("status.hard", resource))
        })
        .collect();
    row.join(", ")
}

fn component(row: &RowContext<'_>) -> Vec<Value> {
    let healthy = row.list("conditions").iter().find(|condition| condition["type"] == "Healthy");
    let part =
        |member: &str| healthy.map_or("", |condition| at(condition, member).as_str().unwrap_or_default());
    let status = match healthy {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Healthy",
        Some(_) => "Unhealthy",
    };
    vec![row.name(), status.into(), part("message").into(), part("error").into()]
}

fn subjects(row: &RowContext<'_>, kind: &str) -> String {
    let names = row.list("subjects").iter().filter(|subject| subject["kind"] == kind).map(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["namespace"].as_str() {
            Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn definition(row: &RowContext<'_>) -> Vec<Value> {
    let mut versions: Vec<String> = row
        .list("spec.versions")
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| {
            let mark = if version["storage"] == true { "(storage)" } else { "" };
            format!("{}{mark}", version["name"].as_str().unwrap_or_default())
        })
        .collect();
    versions.sort();
    vec![
        row.name(),
        row.text("spec.scope").into(),
        versions.join(",").into(),
        row.created_at(),
        row.text("spec.group").into(),
        row.text("spec.names.kind").into(),
        joined(row.list("spec.names.shortNames").iter(), ",").into(),
        row.is_condition_true("Established").into(),
    ]
}

fn service(row: &RowContext<'_>) -> String {
    if !row.at("spec.service").is_object() {
        return "Local".to_owned();
    }
    format!("{}/{}", row.text("spec.service.namespace"), row.text("spec.service.name"))
}

fn available(row: &RowContext<'_>) -> String {
    let Some(condition) = row.condition("Available") else { return "Unknown".to_owned() };
    let part = |member: &str| condition[member].as_str().unwrap_or_default();
    match (part("status"), part("reason")) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

fn request_state(row: &RowContext<'_>) -> String {
    let state = match () {
        () if row.condition("Denied").is_some() => "Denied",
        () if row.condition("Approved").is_some() => "Approved",
        () => "Pending",
    };
    let failed = if row.condition("Failed").is_some() { ",Failed" } else { "" };
    let issued = if row.text("status.certificate").is_empty() { "" } else { ",Issued" };
    format!("{state}{failed}{issued}")
}

fn admission(plural: &str, row: &RowContext<'_>) -> Option<Vec<Value>> {
    let (name, age) = (row.name(), row.age());
    let parameter = || {
        if row.at("spec.paramKind").is_object() {
            format!("{}/{}", row.text("spec.paramKind.apiVersion"), row.text("spec.paramKind.kind"))
        } else {
            "<unset>".to_owned()
        }
    };
    Some(match plural {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            vec![name, row.count("webhooks").into(), age]
        }
        "validatingadmissionpolicies" => {
            vec![name, row.count("spec.validations").into(), parameter().into(), age]
        }
        "mutatingadmissionpolicies" => {
            vec![name, row.count("spec.mutations").into(), parameter().into(), age]
        }
        "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings" => {
            let (namespace, of) = (row.text("spec.paramRef.namespace"), row.text("spec.paramRef.name"));
            let reference = match (namespace, of) {
                (_, "") if row.at("spec.paramRef.selector").is_object() => {
                    super::selector(row.at("spec.paramRef.selector"))
                }
                (_, "") => "<unset>".to_owned(),
                ("", of) => format!("*/{of}"),
                (namespace, of) => format!("{namespace}/{of}"),
            };
            vec![name, row.text("spec.policyName").into(), reference.into(), age]
        }
        _ => return None,
    })
}

fn claim_state(row: &RowContext<'_>) -> String {
    let is_allocated = row.at("status.allocation").is_object();
    let states = [
        (row.is_deleting(), "deleted"),
        (!is_allocated && !row.is_deleting(), "pending"),
        (is_allocated, "allocated"),
        (is_allocated && row.count("status.reservedFor") > 0, "reserved"),
    ];
    states.into_iter().filter(|(is_so, _)| *is_so).map(|(_, state)| state).collect::<Vec<_>>().join(",")
}
