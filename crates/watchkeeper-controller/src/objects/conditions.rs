//! Conditions of a status, that do not flap.
//!
//! `lastTransitionTime` moves when the status of a condition changes and at no other time, and setting what is there already changes nothing: so
//! a reconciler can set its conditions every time, and write the status only when [`set`] said that it changed.
//!
//! ```
//! use watchkeeper_controller::objects::conditions::{self, NewCondition, Status};
//!
//! let mut conditions = Vec::new();
//! let ready = NewCondition::new("Ready", Status::True, "Available").message("3 of 3").observed_generation(7);
//! let now = "2026-01-02T03:04:05Z".parse()?;
//! assert!(conditions::set(&mut conditions, &ready, now));
//! assert!(!conditions::set(&mut conditions, &ready, "2026-01-02T04:00:00Z".parse()?), "as it was");
//! assert!(conditions::is_true(&conditions, "Ready"));
//! # Ok::<(), jiff::Error>(())
//! ```

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Whether something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It is.
    True,
    /// It is not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// Its name in an object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Self {
        if is_so { Self::True } else { Self::False }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it does nothing until it is set"]
pub struct NewCondition {
    kind: String,
    status: Status,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

impl NewCondition {
    /// A condition of a type, which is so or not for a reason: one word, in upper camel case, that servers ask for.
    pub fn new(kind: impl Into<String>, status: impl Into<Status>, reason: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            observed_generation: None,
        }
    }

    /// What people should read.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The `metadata.generation` of the object this was concluded from.
    pub fn observed_generation(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }
}

/// Sets a condition, and answers whether anything changed. There is one of each type; the others stay, and so does their order.
///
/// A condition that was concluded from an older generation than the one that is there changes nothing.
pub fn set(conditions: &mut Vec<Condition>, new: &NewCondition, now: Timestamp) -> bool {
    // Dates of conditions have no fractions: what is set must be what will be read.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let Some(there) = conditions.iter_mut().find(|condition| condition.type_ == new.kind) else {
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
    if new.observed_generation.zip(there.observed_generation).is_some_and(|(new, there)| new < there) {
        return false;
    }
    let before = there.clone();
    if there.status != new.status.as_str() {
        new.status.as_str().clone_into(&mut there.status);
        there.last_transition_time = Time(now);
    }
    there.reason.clone_from(&new.reason);
    there.message.clone_from(&new.message);
    if new.observed_generation.is_some() {
        there.observed_generation = new.observed_generation;
    }
    *there != before
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Takes a condition away, and answers whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, kind: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind);
    conditions.len() != before
}

/// The condition of a type is there, and is so.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == Status::True.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_of_the_transition_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, &NewCondition::new("Ready", false, "Waiting"), at(1)));
        assert!(set(&mut conditions, &NewCondition::new("Ready", false, "Failed").message("no"), at(2)));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        assert_eq!((conditions[0].reason.as_str(), conditions[0].message.as_str()), ("Failed", "no"));
        assert!(set(&mut conditions, &NewCondition::new("Ready", true, "Fine"), at(3)));
        assert_eq!(conditions[0].last_transition_time, Time(at(3)));
        assert!(set(&mut conditions, &NewCondition::new("Other", Status::Unknown, "New"), at(4)));
        assert!(
            is_true(&conditions, "Ready") && !is_true(&conditions, "Other") && !is_true(&conditions, "No")
        );
        assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn what_was_concluded_from_an_older_generation_changes_nothing() {
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
    fn a_fraction_of_a_second_is_not_set_because_it_would_not_be_read() {
        let mut conditions = Vec::new();
        let now: Timestamp = "2026-01-02T03:04:05.9Z".parse().unwrap();
        set(&mut conditions, &NewCondition::new("Ready", true, "Fine"), now);
        let text = serde_json::to_string(&conditions).unwrap();
        let read: Vec<Condition> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, conditions);
    }

    proptest! {
        #[test]
        fn setting_twice_is_setting_once_and_types_stay_apart(
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
                    let now = find(&conditions, &old.type_).expect("none is lost");
                    if now.type_ != new.kind {
                        prop_assert_eq!(now, old);
                    }
                    prop_assert_eq!(now.status == old.status, now.last_transition_time == old.last_transition_time);
                }
            }
        }
    }
}
