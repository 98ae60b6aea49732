//! Eviction: the deletion of a pod, unless a disruption budget forbids it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ATTEMPTS, ApiResponse, Request, Rest,
    delete::DeleteOptions,
    errors, meta,
    options::WriteOptions,
    subresource::created,
    update::{WriteSource, check_name},
};
use crate::{
    selector,
    status::{ApiError, Cause, Details},
    storage::{Object, Query},
    strategy::Part,
};

/// The maximum number of evictions of a budget that its controller has not confirmed.
const DISRUPTED_PODS_MAX: usize = 2000;
/// The field manager of the status of a budget that an eviction changes.
const MANAGER: &str = "kube-apiserver";

/// The result of checking the budgets of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvictionPermit {
    /// The pod may be deleted.
    Allowed,
    /// The pod may be deleted if it has not changed since the budget was read.
    AllowedAtVersion,
    /// The pod has several budgets, which is not supported.
    SeveralBudgets,
}

impl Rest {
    /// Evicts a pod: sets the `DisruptionTarget` condition and deletes the pod.
    pub(super) fn evict(
        &self,
        request: &Request,
        options: &WriteOptions,
        eviction: &Value,
    ) -> Result<ApiResponse, ApiError> {
        check_name(eviction, &request.name)?;
        let given = eviction.get("deleteOptions").cloned().unwrap_or_default();
        let delete = DeleteOptions::of_eviction(&given, options.is_dry_run)?;
        for _ in 0..ATTEMPTS {
            let current = self.current(request)?;
            let pod = current.to_value("v1", "Pod");
            let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
            let is_terminal = meta::is_being_deleted(&pod) || matches!(phase, "Succeeded" | "Failed");
            if !is_terminal && phase != "Pending" {
                return self.evict_with_budget(request, options, &delete, &current, &pod);
            }
            // A pending pod that starts in the meantime counts in its budget, so the pod must be unchanged.
            let needs_version = !is_terminal && !delete.has_version();
            let delete_at_version =
                if needs_version { delete.at_version(current.version) } else { delete.clone() };
            match self.mark_and_delete(request, &delete_at_version) {
                Err(error) if error.reason == "Conflict" && !delete.has_version() => {}
                deleted => return deleted.map(|()| ApiResponse::value(201, created())),
            }
        }
        Err(errors::modified(&request.kind, &request.name))
    }

    fn evict_with_budget(
        &self,
        request: &Request,
        options: &WriteOptions,
        delete: &DeleteOptions,
        current: &Object,
        pod: &Value,
    ) -> Result<ApiResponse, ApiError> {
        let (permit, budget) =
            self.check_disruption_budget(request, options, current, pod, delete.is_dry_run())?;
        if permit == EvictionPermit::SeveralBudgets {
            // The failure is the body of a successful request.
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                           support.";
            let mut status = created();
            status["status"] = "Failure".into();
            status["message"] = message.into();
            status["code"] = 500.into();
            return Ok(ApiResponse::value(201, status));
        }
        let needs_version = permit == EvictionPermit::AllowedAtVersion;
        let delete_at_version =
            if needs_version { delete.at_version(current.version) } else { delete.clone() };
        match self.mark_and_delete(request, &delete_at_version) {
            Err(error) if error.reason == "Conflict" && needs_version && !delete.has_version() => {
                Err(still_processed(&budget))
            }
            deleted => deleted.map(|()| ApiResponse::value(201, created())),
        }
    }

    /// Adds the condition `DisruptionTarget` to a pod and deletes it.
    fn mark_and_delete(&self, request: &Request, options: &DeleteOptions) -> Result<(), ApiError> {
        if options.is_dry_run() {
            return self.delete_object(request, options).map(drop);
        }
        let now = meta::timestamp(self.now());
        let version = self.edit(request, false, |pod| {
            options.check_preconditions(request, pod)?;
            set_disruption_target(pod, &now);
            Ok(())
        })?;
        self.delete_object(request, &options.after_mark(version)).map(drop)
    }

    /// Counts the eviction in the budget of the pod. Returns the permission, and the name of the budget.
    fn check_disruption_budget(
        &self,
        request: &Request,
        options: &WriteOptions,
        current: &Object,
        pod: &Value,
        is_dry_run: bool,
    ) -> Result<(EvictionPermit, String), ApiError> {
        let Some(kind) = request.kinds.by_path("policy", "v1", "poddisruptionbudgets") else {
            return Ok((EvictionPermit::Allowed, String::new()));
        };
        let prefix = request.prefix();
        let query = Query { prefix: &prefix, start: &prefix, at: None, limit: None, filter: None };
        let table = super::table_of(kind);
        let budgets = self.store.list(&table, query, self.now()).map(|page| page.objects).unwrap_or_default();
        let mut covering = budgets.iter().filter(|budget| {
            let budget = budget.to_value("policy/v1", "PodDisruptionBudget");
            selector::of_object(budget.pointer("/spec/selector"))
                .is_some_and(|selector| selector.matches(&current.content))
        });
        let Some(budget) = covering.next() else { return Ok((EvictionPermit::Allowed, String::new())) };
        let name = budget.content.name.to_string();
        if covering.next().is_some() {
            return Ok((EvictionPermit::SeveralBudgets, name));
        }
        let found = budget.to_value("policy/v1", "PodDisruptionBudget");
        if !is_ready(pod) && allows_unready(&found) {
            return Ok((EvictionPermit::AllowedAtVersion, name));
        }
        let mut one = request.for_object(&budget.content.namespace, &budget.content.name);
        one.kind = Arc::clone(kind);
        let options = WriteOptions { is_dry_run, manager: MANAGER.to_owned(), ..options.clone() };
        let now = meta::timestamp(self.now());
        self.change(
            &one,
            &options,
            Part::Subresource("status"),
            WriteSource::Patch,
            &mut Vec::new(),
            |budget| {
                let Some(budget) = budget else { return Err(errors::not_found(kind, &name)) };
                let mut budget = budget.clone();
                count_disruption(&mut budget, &request.name, &now)?;
                Ok(budget)
            },
        )?;
        Ok((EvictionPermit::Allowed, name))
    }
}

fn number(object: &Value, path: &str) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(0)
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|known| known["type"] == name)
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Returns whether a budget permits evictions of unready pods, which it does not count.
fn allows_unready(budget: &Value) -> bool {
    let policy = budget.pointer("/spec/unhealthyPodEvictionPolicy");
    let (healthy, needed) =
        (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
    policy.is_some_and(|policy| policy == "AlwaysAllow") || (needed > 0 && healthy >= needed)
}

/// Replaces the condition of the same type, or appends the condition. The transition time changes with the status only.
fn set_condition(object: &mut Value, mut condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].take();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

fn set_disruption_target(pod: &mut Value, now: &str) {
    set_condition(
        pod,
        json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastProbeTime": null,
            "lastTransitionTime": now,
        }),
    );
}

/// Decrements the allowed disruptions of a budget for the pod of this name.
fn count_disruption(budget: &mut Value, pod: &str, now: &str) -> Result<(), ApiError> {
    let name = meta::text(budget, "name").to_owned();
    if number(budget, "/status/observedGeneration") < number(budget, "/metadata/generation") {
        return Err(still_processed(&name));
    }
    let allowed = number(budget, "/status/disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(forbidden(&name, why, why));
    }
    let pending = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if pending.is_some_and(|pending| pending.len() > DISRUPTED_PODS_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(&name, why, "too many pending evictions not confirmed by PDB controller"));
    }
    if allowed == 0 {
        return Err(held(disruption_message(budget, &name), None));
    }
    budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
    if allowed == 1 {
        let observed = number(budget, "/status/observedGeneration");
        let mut condition = json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "lastTransitionTime": now,
        });
        if observed != 0 {
            condition["observedGeneration"] = observed.into();
        }
        set_condition(budget, condition);
    }
    budget["status"]["disruptedPods"][pod] = now.into();
    Ok(())
}

fn disruption_message(budget: &Value, name: &str) -> String {
    let (healthy, needed) =
        (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
    let denied = condition(budget, "DisruptionAllowed").filter(|known| known["status"] == "False");
    let text =
        |member: &str| denied.and_then(|known| known.get(member)).and_then(Value::as_str).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    if reason == "SyncFailed" && !message.is_empty() {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if healthy <= needed {
        return format!(
            "The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        );
    }
    if !message.is_empty() {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        );
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}

/// Returns the 403 for a budget with an invalid status.
fn forbidden(name: &str, why: &str, cause: &str) -> ApiError {
    let message = format!("poddisruptionbudget.policy {name:?} is forbidden: {why}");
    let cause = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
    ApiError::new(403, "Forbidden", message).with_details(Details {
        name: Some(name.to_owned()),
        group: Some("policy".to_owned()),
        kind: Some("poddisruptionbudget".to_owned()),
        causes: vec![Cause { reason: "DisruptionBudget".into(), message: cause, field: None }],
        ..Details::default()
    })
}

/// Returns the 429 for a budget whose controller has not caught up.
fn still_processed(name: &str) -> ApiError {
    held(format!("The disruption budget {name} is still being processed by the server."), Some(10))
}

/// Returns the 429 for a pod that a disruption budget protects.
fn held(cause: String, retry_after_seconds: Option<u32>) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ApiError::new(429, "TooManyRequests", message).with_details(Details {
        causes: vec![Cause { reason: "DisruptionBudget".into(), message: cause, field: None }],
        retry_after_seconds,
        ..Details::default()
    })
}
