//! The cells of a pod. The status column shows why a pod is not running.

use serde_json::Value;

use super::{RowContext, at, count};

pub(super) fn cells(pod: &RowContext<'_>) -> Vec<Value> {
    let state = State::of(pod);
    let restarts = match state.last_restart {
        Some(time) if state.restarts != 0 => {
            format!("{} ({} ago)", state.restarts, super::age::since(Some(time), pod.now))
        }
        _ => state.restarts.to_string(),
    };
    vec![
        pod.name(),
        format!("{}/{}", state.ready, state.containers).into(),
        state.reason.into(),
        restarts.into(),
        pod.age(),
        address(pod),
        pod.or("spec.nodeName", "<none>"),
        pod.or("status.nominatedNodeName", "<none>"),
        readiness_gates(pod),
    ]
}

fn address(pod: &RowContext<'_>) -> Value {
    let first = pod.list("status.podIPs").first().and_then(|address| address["ip"].as_str());
    first.filter(|address| !address.is_empty()).unwrap_or("<none>").into()
}

fn readiness_gates(pod: &RowContext<'_>) -> Value {
    let gates = pod.list("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open =
        gates.iter().filter(|gate| pod.is_condition_true(gate["conditionType"].as_str().unwrap_or_default()));
    format!("{}/{}", open.count(), gates.len()).into()
}

/// The state of a pod, derived from its containers.
struct State<'a> {
    reason: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<&'a str>,
}

impl<'a> State<'a> {
    fn of(pod: &RowContext<'a>) -> Self {
        let mut reason = pod.text("status.reason");
        if reason.is_empty() {
            reason = pod.text("status.phase");
        }
        if pod.condition("PodScheduled").is_some_and(|condition| condition["reason"] == "SchedulingGated") {
            reason = "SchedulingGated";
        }
        let sidecars =
            pod.list("spec.initContainers").iter().filter(|container| container["restartPolicy"] == "Always");
        let mut state = Self {
            reason: reason.to_owned(),
            ready: 0,
            containers: pod.count("spec.containers") + sidecars.count(),
            restarts: 0,
            last_restart: None,
        };
        let initializing = state.initialize(pod);
        if !initializing || pod.is_condition_true("Initialized") {
            state.run(pod);
        }
        let is_over = matches!(pod.text("status.phase"), "Succeeded" | "Failed");
        if pod.is_deleting() && pod.text("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut state.reason);
        } else if pod.is_deleting() && !is_over {
            "Terminating".clone_into(&mut state.reason);
        }
        state
    }

    fn count_restarts(&mut self, status: &'a Value) {
        self.restarts += status["restartCount"].as_i64().unwrap_or_default();
        let finished = at(status, "lastState.terminated.finishedAt").as_str();
        self.last_restart = self.last_restart.max(finished);
    }

    /// Evaluates the init containers. Returns whether one of them is not finished.
    fn initialize(&mut self, pod: &RowContext<'a>) -> bool {
        for (index, status) in pod.list("status.initContainerStatuses").iter().enumerate() {
            self.count_restarts(status);
            let terminated = at(status, "state.terminated");
            if terminated.is_object() && exit_code(terminated) == 0 {
                continue;
            }
            if is_sidecar(pod, status) && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waiting = at(status, "state.waiting.reason").as_str().unwrap_or_default();
            self.reason = if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", count(pod.at("spec.initContainers")))
            };
            return true;
        }
        false
    }

    /// Evaluates the containers. Of the init containers, only the restarts of sidecars still count.
    fn run(&mut self, pod: &RowContext<'a>) {
        (self.restarts, self.last_restart) = (0, None);
        for status in pod.list("status.initContainerStatuses").iter().filter(|status| is_sidecar(pod, status))
        {
            self.count_restarts(status);
        }
        let (mut is_running, mut error) = (false, None);
        for status in pod.list("status.containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waiting = at(status, "state.waiting.reason").as_str().unwrap_or_default();
            let terminated = at(status, "state.terminated");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if terminated.is_object() {
                self.reason = ended(terminated);
                if exit_code(terminated) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if status["ready"] == true && at(status, "state.running").is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if is_running && pod.is_condition_true("Ready") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(error) = error {
                self.reason = error;
            } else if is_running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

fn is_sidecar(pod: &RowContext<'_>, status: &Value) -> bool {
    pod.list("spec.initContainers")
        .iter()
        .any(|container| container["name"] == status["name"] && container["restartPolicy"] == "Always")
}

fn exit_code(terminated: &Value) -> i64 {
    terminated["exitCode"].as_i64().unwrap_or_default()
}

/// Returns why a container terminated.
fn ended(terminated: &Value) -> String {
    let reason = terminated["reason"].as_str().unwrap_or_default();
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", exit_code(terminated)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
