//! Conditions on one object.

use kube_core::Resource;
use serde::Serialize;
use serde_json::Value;

/// A condition on the state of one object, for [`ResourceClient::await_condition`].
///
/// Implemented for closures over `Option<&K>`, which is `None` while the object does not exist.
///
/// [`ResourceClient::await_condition`]: crate::rest::ResourceClient::await_condition
pub trait Condition<K> {
    /// Returns whether the condition is met. Called once for each observed state, in order.
    fn is_met(&mut self, object: Option<&K>) -> bool;

    /// Returns a description for errors, as in "phase Running not observed within 60s".
    fn description(&self) -> String {
        "the awaited state".to_owned()
    }
}

impl<K, F: FnMut(Option<&K>) -> bool> Condition<K> for F {
    fn is_met(&mut self, object: Option<&K>) -> bool {
        self(object)
    }
}

/// The condition of [`exists`].
#[derive(Debug, Clone, Copy)]
struct Exists;

/// Returns the condition that the object exists.
#[doc(alias = "is_created")]
pub fn exists<K>() -> impl Condition<K> {
    Exists
}

impl<K> Condition<K> for Exists {
    fn is_met(&mut self, object: Option<&K>) -> bool {
        object.is_some()
    }

    fn description(&self) -> String {
        "existence".to_owned()
    }
}

/// The condition of [`deleted`] and [`deleted_uid`].
#[derive(Debug, Clone)]
struct Deletion {
    uid: Option<String>,
}

/// Returns the condition that the object is gone, or was replaced by another of the same name after the wait began.
///
/// The first observed state decides which object is waited for. The condition is met at once if the object does not exist.
#[doc(alias = "is_deleted")]
pub fn deleted<K: Resource>() -> impl Condition<K> {
    Deletion { uid: None }
}

/// Returns the condition that the object with this uid is gone, or was replaced by another of the same name.
#[doc(alias = "is_deleted")]
pub fn deleted_uid<K: Resource>(uid: impl Into<String>) -> impl Condition<K> {
    Deletion { uid: Some(uid.into()) }
}

impl<K: Resource> Condition<K> for Deletion {
    fn is_met(&mut self, object: Option<&K>) -> bool {
        let Some(object) = object else { return true };
        let Some(uid) = object.meta().uid.as_ref() else { return false };
        self.uid.get_or_insert_with(|| uid.clone()) != uid
    }

    fn description(&self) -> String {
        match &self.uid {
            Some(uid) => format!("deletion of uid {uid}"),
            None => "deletion".to_owned(),
        }
    }
}

/// The condition of [`condition_true`].
#[derive(Debug, Clone)]
struct StatusCondition {
    condition_type: String,
}

/// Returns the condition that `status.conditions` of the object has an entry of this type with status `True`: `Ready` of a
/// pod, `Available` of a deployment, `Established` of a CRD.
///
/// As in `kubectl wait`, an entry whose `observedGeneration` (or that of the status) is older than the object's `generation`
/// is not met yet.
#[doc(alias = "is_crd_established")]
#[doc(alias = "is_pod_running")]
#[doc(alias = "is_job_completed")]
pub fn condition_true<K: Serialize>(condition_type: impl Into<String>) -> impl Condition<K> {
    StatusCondition { condition_type: condition_type.into() }
}

impl<K: Serialize> Condition<K> for StatusCondition {
    fn is_met(&mut self, object: Option<&K>) -> bool {
        let object = object.and_then(|object| serde_json::to_value(object).ok());
        object.is_some_and(|object| is_true(&object, &self.condition_type))
    }

    fn description(&self) -> String {
        format!("condition {}=True", self.condition_type)
    }
}

fn is_true(object: &Value, condition_type: &str) -> bool {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(condition) = conditions.iter().find(|condition| condition["type"] == condition_type) else {
        return false;
    };
    let observed = |of: &Value| of["observedGeneration"].as_i64();
    let is_outdated = observed(condition)
        .or_else(|| observed(status))
        .zip(object["metadata"]["generation"].as_i64())
        .is_some_and(|(observed, current)| observed < current);
    condition["status"] == "True" && !is_outdated
}

/// The condition of [`described`].
#[derive(Debug, Clone)]
struct Described<C> {
    description: String,
    condition: C,
}

/// Returns the condition with a description, which errors quote.
#[doc(alias = "is_deployment_completed")]
#[doc(alias = "is_ingress_provisioned")]
pub fn described<K>(description: impl Into<String>, condition: impl Condition<K>) -> impl Condition<K> {
    Described { description: description.into(), condition }
}

impl<K, C: Condition<K>> Condition<K> for Described<C> {
    fn is_met(&mut self, object: Option<&K>) -> bool {
        self.condition.is_met(object)
    }

    fn description(&self) -> String {
        self.description.clone()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_is_true_when_its_entry_is_true_for_the_current_generation() {
        let object = |generation: i64, status: Value| json!({"metadata": {"generation": generation}, "status": status});
        let ready = |status: &str| json!({"type": "Ready", "status": status});
        let mut seen = ready("True");
        seen["observedGeneration"] = json!(1);
        for (object, expected) in [
            (json!({}), false),
            (object(1, json!({})), false),
            (object(1, json!({"conditions": null})), false),
            (object(1, json!({"conditions": [{"type": "Other", "status": "True"}]})), false),
            (object(1, json!({"conditions": [ready("False")]})), false),
            (object(1, json!({"conditions": [ready("Unknown")]})), false),
            (object(1, json!({"conditions": [ready("True")]})), true),
            (object(2, json!({"conditions": [ready("True")]})), true),
            (object(1, json!({"conditions": [seen]})), true),
            (object(2, json!({"conditions": [seen]})), false),
            (object(2, json!({"observedGeneration": 1, "conditions": [ready("True")]})), false),
            (object(2, json!({"observedGeneration": 2, "conditions": [ready("True")]})), true),
            (json!({"status": {"observedGeneration": 1, "conditions": [ready("True")]}}), true),
        ] {
            assert_eq!(is_true(&object, "Ready"), expected, "{object}");
        }
    }

    #[test]
    fn an_object_is_deleted_when_it_is_gone_or_replaced() {
        let with_uid = |uid: &str| {
            let mut map = ConfigMap::default();
            map.metadata.uid = Some(uid.to_owned());
            map
        };
        let (first, second) = (with_uid("1"), with_uid("2"));
        // States, and whether each meets the condition.
        let cases = [
            (None, vec![(None, true)]),
            (None, vec![(Some(&first), false), (Some(&first), false), (None, true)]),
            (None, vec![(Some(&first), false), (Some(&second), true)]),
            (Some("1"), vec![(Some(&first), false), (Some(&second), true)]),
            (Some("1"), vec![(Some(&second), true)]),
        ];
        for (uid, states) in cases {
            let mut condition = Deletion { uid: uid.map(str::to_owned) };
            for (state, expected) in states {
                assert_eq!(condition.is_met(state), expected, "{condition:?}");
            }
        }
        let unnamed = ConfigMap::default();
        assert!(!deleted().is_met(Some(&unnamed)), "an object without a uid is not a replacement");
    }
}
