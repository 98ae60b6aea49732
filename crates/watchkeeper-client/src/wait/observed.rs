//! The state of an object when a wait ended.

use std::fmt;

use kube_core::Resource;
use serde::Serialize;
use serde_json::Value;

use crate::{Error, error::Printable};

/// The number of conditions that are quoted, and the number of characters of each text.
const QUOTED_CONDITIONS: usize = 16;
const QUOTED_CHARS: usize = 64;

/// The last state that a wait observed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ObservedState {
    /// The object was never read: no list succeeded.
    #[default]
    Nothing,
    /// The object did not exist.
    Absent {
        /// The version of this observation, if the server reported one.
        resource_version: Option<String>,
    },
    /// The object existed.
    #[non_exhaustive]
    Present {
        /// The version of the object.
        resource_version: Option<String>,
        /// The uid of the object.
        uid: Option<String>,
        /// Whether the object has a deletion timestamp.
        is_being_deleted: bool,
        /// `status.phase` of the object.
        phase: Option<String>,
        /// `status.conditions` of the object, in the form `Ready=False (ContainersNotReady)`.
        conditions: Vec<String>,
    },
}

impl fmt::Display for ObservedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
        match self {
            Self::Nothing => f.write_str("nothing, because no list succeeded"),
            Self::Absent { resource_version } => {
                write!(f, "no such object at resourceVersion {}", version(resource_version))
            }
            Self::Present { resource_version, uid: _, is_being_deleted, phase, conditions } => {
                write!(f, "resourceVersion {}", version(resource_version))?;
                if *is_being_deleted {
                    f.write_str(", being deleted")?;
                }
                if let Some(phase) = phase {
                    write!(f, ", phase {phase}")?;
                }
                conditions.iter().try_for_each(|condition| write!(f, ", {condition}"))
            }
        }
    }
}

impl ObservedState {
    fn of<K: Resource + Serialize>(object: &K) -> Self {
        let metadata = object.meta();
        let status = serde_json::to_value(object).map(|mut value| value["status"].take()).unwrap_or_default();
        let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self::Present {
            resource_version: metadata.resource_version.clone(),
            uid: metadata.uid.clone(),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            phase: text(&status["phase"]),
            conditions: conditions.iter().take(QUOTED_CONDITIONS).filter_map(condition).collect(),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty())?;
    Some(Printable { text, chars: QUOTED_CHARS }.to_string())
}

fn condition(condition: &Value) -> Option<String> {
    let (name, status) = (text(&condition["type"])?, text(&condition["status"])?);
    Some(match text(&condition["reason"]) {
        Some(reason) => format!("{name}={status} ({reason})"),
        None => format!("{name}={status}"),
    })
}

/// The observations of a wait.
#[derive(Debug, Default)]
pub(super) struct Observations {
    last: ObservedState,
    /// The last failure since the last observation.
    failure: Option<Box<Error>>,
}

impl Observations {
    pub(super) fn observe<K: Resource + Serialize>(&mut self, object: Option<&K>, version: Option<&str>) {
        self.last = match object {
            Some(object) => ObservedState::of(object),
            None => ObservedState::Absent { resource_version: version.map(str::to_owned) },
        };
        self.failure = None;
    }

    pub(super) fn fail(&mut self, error: Option<Error>) {
        if let Some(error) = error {
            self.failure = Some(Box::new(error));
        }
    }

    pub(super) fn into_last(self) -> (ObservedState, Option<Box<Error>>) {
        (self.last, self.failure)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_described_in_one_line() {
        for (object, expected) in [
            (json!({"metadata": {}}), "resourceVersion unknown"),
            (
                json!({"metadata": {"resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                "resourceVersion 7, being deleted",
            ),
            (
                json!({"metadata": {"resourceVersion": "7"}, "status": {"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "False", "reason": "Containers\nNotReady"},
                ]}}),
                "resourceVersion 7, phase Pending, PodScheduled=True, Ready=False (Containers NotReady)",
            ),
        ] {
            let pod: Pod = serde_json::from_value(object).unwrap();
            assert_eq!(ObservedState::of(&pod).to_string(), expected);
        }
        let absent = ObservedState::Absent { resource_version: Some("9".to_owned()) };
        assert_eq!(absent.to_string(), "no such object at resourceVersion 9");
        assert_eq!(ObservedState::default().to_string(), "nothing, because no list succeeded");
    }
}
