//! Conditions of a status.
//!
//! [`set`] changes `lastTransitionTime` only if the status of the condition changes, and reports whether anything changed. A
//! reconciler can therefore set its conditions every time, and write the status only if [`set`] returned true.
//!
//! ```
//! use watchkeeper_controller::objects::conditions::{self, ConditionStatus, NewCondition};
//!
//! let mut conditions = Vec::new();
//! let ready = NewCondition::new("Ready", ConditionStatus::True, "Available").message("3 of 3").observed_generation(7);
//! let now = "2026-01-02T03:04:05Z".parse()?;
//! assert!(conditions::set(&mut conditions, &ready, now));
//! assert!(!conditions::set(&mut conditions, &ready, "2026-01-02T04:00:00Z".parse()?), "unchanged");
//! assert!(conditions::is_true(&conditions, "Ready"));
//! # Ok::<(), jiff::Error>(())
//! ```

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status of the condition cannot be determined.
    Unknown,
}

impl ConditionStatus {
    /// Returns the name of the status in the API: `True`, `False` or `Unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition to [`set`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a condition has no effect until it is set"]
pub struct NewCondition {
    kind: String,
    status: ConditionStatus,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

impl NewCondition {
    /// Creates a condition of type `kind`. `reason` is a word in upper camel case, which API servers require.
    pub fn new(
        kind: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            observed_generation: None,
        }
    }

    /// Sets the human-readable message.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the `metadata.generation` of the object from which the condition was derived.
    pub fn observed_generation(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }
}

/// Sets a condition, and returns whether anything changed. A condition of the same type is replaced in place; the others are
/// not changed.
///
/// A condition with an older observed generation than the existing one is ignored.
#[doc(alias = "SetStatusCondition")]
pub fn set(conditions: &mut Vec<Condition>, new: &NewCondition, now: Timestamp) -> bool {
    // The API stores whole seconds, so a fraction would be lost in the next read.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let Some(existing) = conditions.iter_mut().find(|condition| condition.type_ == new.kind) else {
        conditions.push(Condition {
            type_: new.kind.clone(),
            status: new.status.as_str().to_owned(),
            reason: new.reason.clone(),
            message: new.message.clone(),
            observed_generation: new.observed_generation,
            last_transition_time: Time(now),
        });
        return true;
    };
    if new.observed_generation.zip(existing.observed_generation).is_some_and(|(new, existing)| new < existing)
    {
        return false;
    }
    let before = existing.clone();
    if existing.status != new.status.as_str() {
        new.status.as_str().clone_into(&mut existing.status);
        existing.last_transition_time = Time(now);
    }
    existing.reason.clone_from(&new.reason);
    existing.message.clone_from(&new.message);
    if new.observed_generation.is_some() {
        existing.observed_generation = new.observed_generation;
    }
    *existing != before
}

/// Returns the condition of type `kind`.
#[doc(alias = "FindStatusCondition")]
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Removes the condition of type `kind`, and returns whether it existed.
#[doc(alias = "RemoveStatusCondition")]
pub fn remove(conditions: &mut Vec<Condition>, kind: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind);
    conditions.len() != before
}

/// Returns whether the condition of type `kind` exists with status `True`.
#[doc(alias = "IsStatusConditionTrue")]
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == ConditionStatus::True.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, &NewCondition::new("Ready", false, "Waiting"), at(1)));
        assert!(set(&mut conditions, &NewCondition::new("Ready", false, "Failed").message("no"), at(2)));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        assert_eq!((conditions[0].reason.as_str(), conditions[0].message.as_str()), ("Failed", "no"));
        assert!(set(&mut conditions, &NewCondition::new("Ready", true, "Fine"), at(3)));
        assert_eq!(conditions[0].last_transition_time, Time(at(3)));
        assert!(set(&mut conditions, &NewCondition::new("Other", ConditionStatus::Unknown, "New"), at(4)));
        assert!(
            is_true(&conditions, "Ready") && !is_true(&conditions, "Other") && !is_true(&conditions, "No")
        );
        assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_condition_of_an_older_generation_is_ignored() {
        let mut conditions = Vec::new();
        set(&mut conditions, &NewCondition::new("Ready", true, "Fine").observed_generation(5), at(1));
        assert!(!set(
            &mut conditions,
            &NewCondition::new("Ready", false, "Old").observed_generation(4),
            at(2)
        ));
        assert!(is_true(&conditions, "Ready"));
        assert!(set(
            &mut conditions,
            &NewCondition::new("Ready", true, "Fine").observed_generation(6),
            at(3)
        ));
        assert_eq!(conditions[0].observed_generation, Some(6));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
    }

    #[test]
    fn a_fraction_of_a_second_is_dropped_because_the_api_does_not_store_it() {
        let mut conditions = Vec::new();
        let now: Timestamp = "2026-01-02T03:04:05.9Z".parse().unwrap();
        set(&mut conditions, &NewCondition::new("Ready", true, "Fine"), now);
        let text = serde_json::to_string(&conditions).unwrap();
        let read: Vec<Condition> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, conditions);
    }

    proptest! {
        #[test]
        fn setting_a_condition_is_idempotent_and_does_not_change_other_types(
            steps in prop::collection::vec((0_u8..3, any::<bool>(), 0_u8..2, prop::option::of(0_i64..3)), 0..30),
        ) {
            let mut conditions = Vec::new();
            for (second, (kind, status, reason, generation)) in (0_i64..).zip(steps) {
                let new = NewCondition::new(format!("T{kind}"), status, format!("R{reason}"))
                    .observed_generation(generation);
                let before: Vec<Condition> = conditions.clone();
                let has_changed = set(&mut conditions, &new, at(second));
                prop_assert_eq!(has_changed, conditions != before);
                let once = conditions.clone();
                prop_assert!(!set(&mut conditions, &new, at(second + 100)));
                prop_assert_eq!(&conditions, &once);
                for old in &before {
                    let now = find(&conditions, &old.type_).expect("no condition is removed");
                    if now.type_ != new.kind {
                        prop_assert_eq!(now, old);
                    }
                    prop_assert_eq!(now.status == old.status, now.last_transition_time == old.last_transition_time);
                }
            }
        }
    }
}
