//! The cells of workload kinds: pods and their controllers.

use serde_json::Value;

use super::{RowContext, at, first_few, pod};

#[expect(clippy::too_many_lines, reason = "a table: an arm for each kind")]
pub(super) fn cells(group: &str, plural: &str, row: &RowContext<'_>) -> Option<Vec<Value>> {
    let (name, age) = (row.name(), row.age());
    let [containers, images] = row.containers("spec.template.spec.containers");
    Some(match (group, plural) {
        ("", "pods") => pod::cells(row),
        ("", "podtemplates") => {
            let [containers, images] = row.containers("template.spec.containers");
            vec![name, containers, images, row.labels("template.metadata.labels")]
        }
        ("", "replicationcontrollers") | ("apps", "replicasets") => {
            let selector =
                if group.is_empty() { row.labels("spec.selector") } else { row.selector("spec.selector") };
            vec![
                name,
                row.int("spec.replicas").into(),
                row.int("status.replicas").into(),
                row.int("status.readyReplicas").into(),
                age,
                containers,
                images,
                selector,
            ]
        }
        ("apps", "deployments") => vec![
            name,
            format!("{}/{}", row.int("status.readyReplicas"), row.int("spec.replicas")).into(),
            row.int("status.updatedReplicas").into(),
            row.int("status.availableReplicas").into(),
            age,
            containers,
            images,
            super::selector(row.at("spec.selector")).into(),
        ],
        ("apps", "statefulsets") => vec![
            name,
            format!("{}/{}", row.int("status.readyReplicas"), row.int("spec.replicas")).into(),
            age,
            containers,
            images,
        ],
        ("apps", "daemonsets") => vec![
            name,
            row.int("status.desiredNumberScheduled").into(),
            row.int("status.currentNumberScheduled").into(),
            row.int("status.numberReady").into(),
            row.int("status.updatedNumberScheduled").into(),
            row.int("status.numberAvailable").into(),
            row.labels("spec.template.spec.nodeSelector"),
            age,
            containers,
            images,
            row.selector("spec.selector"),
        ],
        ("apps", "controllerrevisions") => {
            let owners = row.list("metadata.ownerReferences");
            let controller = owners.iter().find(|owner| owner["controller"] == true).map_or_else(
                || "<none>".to_owned(),
                |owner| {
                    let part = |member: &str| at(owner, member).as_str().unwrap_or_default();
                    let group = part("apiVersion").split_once('/').map_or("", |(group, _)| group);
                    let dot = if group.is_empty() { "" } else { "." };
                    format!("{}/{}", format!("{}{dot}{group}", part("kind")).to_lowercase(), part("name"))
                },
            );
            vec![name, controller.into(), row.int("revision").into(), age]
        }
        ("batch", "jobs") => vec![
            name,
            job_status(row).into(),
            job_completions(row).into(),
            job_duration(row).into(),
            age,
            containers,
            images,
            row.selector("spec.selector"),
        ],
        ("batch", "cronjobs") => {
            let [containers, images] = row.containers("spec.jobTemplate.spec.template.spec.containers");
            let suspend = match row.at("spec.suspend") {
                Value::Bool(true) => "True",
                Value::Bool(false) => "False",
                _ => "<unset>",
            };
            let last = row.at("status.lastScheduleTime").is_string();
            vec![
                name,
                row.text("spec.schedule").into(),
                row.or("spec.timeZone", "<none>"),
                suspend.into(),
                row.count("status.active").into(),
                if last { row.since("status.lastScheduleTime").into() } else { "<none>".into() },
                age,
                containers,
                images,
                row.selector("spec.jobTemplate.spec.selector"),
            ]
        }
        ("autoscaling", "horizontalpodautoscalers") => {
            let least = row.at("spec.minReplicas");
            vec![
                name,
                format!("{}/{}", row.text("spec.scaleTargetRef.kind"), row.text("spec.scaleTargetRef.name"))
                    .into(),
                metrics(row).into(),
                if least.is_null() { "<unset>".into() } else { least.to_string().into() },
                row.int("spec.maxReplicas").into(),
                row.int("status.currentReplicas").into(),
                age,
            ]
        }
        ("policy", "poddisruptionbudgets") => {
            let amount = |path: &str| match row.at(path) {
                Value::String(text) => text.as_str().into(),
                Value::Null => "N/A".into(),
                number => Value::String(number.to_string()),
            };
            vec![
                name,
                amount("spec.minAvailable"),
                amount("spec.maxUnavailable"),
                row.int("status.disruptionsAllowed").into(),
                age,
            ]
        }
        _ => return None,
    })
}

fn job_status(job: &RowContext<'_>) -> &'static str {
    if job.is_condition_true("Complete") {
        "Complete"
    } else if job.is_condition_true("Failed") {
        "Failed"
    } else if job.is_deleting() {
        "Terminating"
    } else if job.is_condition_true("Suspended") {
        "Suspended"
    } else if job.is_condition_true("FailureTarget") {
        "FailureTarget"
    } else if job.is_condition_true("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn job_completions(job: &RowContext<'_>) -> String {
    let succeeded = job.int("status.succeeded");
    match (job.at("spec.completions").as_i64(), job.int("spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &RowContext<'_>) -> String {
    let time = |path: &str| job.text(path).parse::<jiff::Timestamp>().ok();
    time("status.startTime").map_or_else(String::new, |start| {
        let end = time("status.completionTime").unwrap_or(job.now);
        super::age::human(end.duration_since(start).as_secs())
    })
}

/// Returns the metrics of an autoscaler, each as current value over target.
fn metrics(scaler: &RowContext<'_>) -> String {
    // Version v1 has a single metric, the utilization of the requested CPU.
    let old_target = scaler.at("spec.targetCPUUtilizationPercentage");
    if !old_target.is_null() {
        let now = scaler.at("status.currentCPUUtilizationPercentage");
        let now = if now.is_null() { "<unknown>".to_owned() } else { format!("{now}%") };
        return format!("cpu: {now}/{old_target}%");
    }
    let specs = scaler.list("spec.metrics");
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let all: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| {
            metric(spec, scaler.list("status.currentMetrics").get(index).unwrap_or(&Value::Null))
        })
        .collect();
    first_few(&all, 2, ", ")
}

fn metric(spec: &Value, status: &Value) -> String {
    let source = match spec["type"].as_str().unwrap_or_default() {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let (spec, current) = (&spec[source], &status[source]["current"]);
    let amount = |value: &Value| value.as_str().map(str::to_owned);
    let average = amount(&spec["target"]["averageValue"]);
    let now = |member: &str| amount(&current[member]).unwrap_or_else(|| "<unknown>".to_owned());
    match (source, average) {
        ("resource" | "containerResource", average) => {
            let name = spec["name"].as_str().unwrap_or_default();
            let share = |value: &Value, absent: &str| {
                value.as_i64().map_or_else(|| absent.to_owned(), |share| format!("{share}%"))
            };
            match average {
                Some(average) => format!("{name}: {}/{average}", now("averageValue")),
                None => format!(
                    "{name}: {}/{}",
                    share(&current["averageUtilization"], "<unknown>"),
                    share(&spec["target"]["averageUtilization"], "<auto>")
                ),
            }
        }
        ("pods", average) => format!("{}/{}", now("averageValue"), average.unwrap_or_default()),
        (_, Some(average)) => format!("{}/{average} (avg)", now("averageValue")),
        (_, None) => format!("{}/{}", now("value"), amount(&spec["target"]["value"]).unwrap_or_default()),
    }
}
