//! Conditions that an object can be waited for.

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

    /// Returns a description for errors, as the end of the sentence "not observed: …".
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
#[non_exhaustive]
pub struct Exists;

/// Returns the condition that the object exists.
pub fn exists() -> Exists {
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
pub struct Deleted {
    uid: Option<String>,
}

/// Returns the condition that the object is gone, or was replaced by another of the same name after the wait began.
///
/// Which object that is, is decided by the first state observed. A name that is not in use meets the condition at once.
#[doc(alias = "is_deleted")]
pub fn deleted() -> Deleted {
    Deleted { uid: None }
}

/// Returns the condition that the object with this uid is gone, or was replaced by another of the same name.
#[doc(alias = "is_deleted")]
pub fn deleted_uid(uid: impl Into<String>) -> Deleted {
    Deleted { uid: Some(uid.into()) }
}

impl<K: Resource> Condition<K> for Deleted {
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
pub struct StatusCondition {
    condition_type: String,
}

/// Returns the condition that `status.conditions` of the object has an entry of this type with status `True`: `Ready` of a
/// pod, `Available` of a deployment, `Established` of a CRD.
///
/// As in `kubectl wait`, an entry whose `observedGeneration` (or that of the status) is older than the object's `generation`
/// is not met yet.
#[doc(alias = "is_crd_established")]
#[doc(alias = "is_pod_running")]
pub fn condition_true(condition_type: impl Into<String>) -> StatusCondition {
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
pub struct Described<C> {
    description: String,
    condition: C,
}

/// Returns the condition with a description, which errors quote.
pub fn described<C>(description: impl Into<String>, condition: C) -> Described<C> {
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
    fn a_condition_is_true_when_its_entry_says_so_about_the_current_generation() {
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
            (deleted(), vec![(None, true)]),
            (deleted(), vec![(Some(&first), false), (Some(&first), false), (None, true)]),
            (deleted(), vec![(Some(&first), false), (Some(&second), true)]),
            (deleted_uid("1"), vec![(Some(&first), false), (Some(&second), true)]),
            (deleted_uid("1"), vec![(Some(&second), true)]),
        ];
        for (mut condition, states) in cases {
            for (state, expected) in states {
                assert_eq!(condition.is_met(state), expected, "{condition:?}");
            }
        }
        let unnamed = ConfigMap::default();
        assert!(!deleted().is_met(Some(&unnamed)), "an object without a uid is not a replacement");
    }
}
