//! The controller that stores the rules of aggregated cluster roles, so that clients can read them.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    object::ObjectRef,
    objects::{Objects, ServerEvent, WriteOutcome},
    queue::Queue,
};
use crate::{
    auth::{aggregation, rule::PolicyRule},
    kinds::GroupVersionKind,
};

const GROUP: &str = "rbac.authorization.k8s.io";
const KIND: &str = "ClusterRole";
/// The field manager of the rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// A work item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Task {
    /// Compare the stored rules of all aggregated roles with the computed rules.
    Aggregate,
}

/// The controller of aggregated cluster roles.
///
/// A change of any cluster role can change the rules of any aggregated role. All aggregated roles are therefore compared,
/// once for all changes received so far.
#[derive(Debug, Default)]
pub(crate) struct Aggregator {
    queue: Queue<Task>,
}

impl Aggregator {
    /// Records a change.
    pub(crate) fn handle(&mut self, change: &ServerEvent) {
        let is_relevant = match change {
            ServerEvent::Observed(object) | ServerEvent::Deleted(object) => {
                object.object_ref.is_of(GROUP, KIND)
            }
            ServerEvent::Relisted(kind, _) => kind.group == GROUP && kind.kind == KIND,
            ServerEvent::Kinds | ServerEvent::CertificateAuthority(_) => false,
        };
        if is_relevant {
            self.queue.add(Task::Aggregate);
        }
    }

    /// Processes the work that is due. Returns false if no work is due.
    pub(crate) fn step(&mut self, now: Duration, objects: &impl Objects) -> bool {
        let Some(task) = self.queue.pop(now) else { return false };
        self.queue.finish(task, aggregate_all(objects), now);
        true
    }

    /// Returns when work is due next: zero for now, a time, or none until the next change.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }
}

/// Brings every aggregated role up to date. Returns whether all writes succeeded.
fn aggregate_all(objects: &impl Objects) -> bool {
    let kind = Arc::new(GroupVersionKind::new(GROUP, "v1", KIND));
    let roles: Vec<Value> =
        objects.list(&kind, None).iter().filter_map(|found| objects.read(&found.object_ref)).collect();
    let aggregated = aggregation::aggregate(&roles);
    let outdated = roles.iter().filter_map(|role| {
        let rules = aggregated.get(role["metadata"]["name"].as_str()?)?;
        (PolicyRule::all_of(role) != *rules).then_some((&role["metadata"], rules))
    });
    let mut is_done = true;
    for (metadata, rules) in outdated {
        let object_ref = ObjectRef::new(GROUP, "v1", KIND, "", metadata["name"].as_str().unwrap_or_default());
        let rules: Vec<Value> = rules.iter().map(PolicyRule::to_value).collect();
        let configuration = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": KIND,
            // Because of the uid, a role that was deleted in the meantime is not created again.
            "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
            "rules": rules,
        });
        is_done &= WriteOutcome::of(objects.apply(&object_ref, MANAGER, configuration), &object_ref)
            != WriteOutcome::Failed;
    }
    is_done
}
