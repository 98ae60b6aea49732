//! The content of a lease.

use std::time::Duration;

use jiff::{Timestamp, ToSpan as _};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

use super::Timing;

/// The content of a lease.
///
/// The timestamps come from the writer's wall clock. They are compared only for equality, to detect a write;
/// no decision depends on their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeaseRecord {
    /// The holder; empty if the lease was released.
    pub(super) holder: String,
    /// The time that other replicas wait before they acquire the lease.
    pub(super) lease_duration: Duration,
    /// The number of changes of holder, which is also the term number.
    pub(super) transitions: u32,
    /// The time at which the holder acquired the lease.
    pub(super) acquired: Option<Timestamp>,
    /// The time at which the holder last wrote the lease. Consecutive writes have different timestamps.
    pub(super) renewed: Option<Timestamp>,
}

impl LeaseRecord {
    /// Returns whether the lease has no holder.
    pub(super) fn is_free(&self) -> bool {
        self.holder.is_empty()
    }

    /// Returns the record that `identity` writes to acquire or renew the lease.
    pub(super) fn held_by(&self, identity: &str, timing: &Timing, date: Timestamp) -> Self {
        let is_mine = self.holder == identity;
        // Another holder's timestamps come from another clock; the transition count distinguishes its records
        // from ours.
        let renewed = if is_mine { self.next_date(date) } else { Self::default().next_date(date) };
        Self {
            holder: identity.to_owned(),
            lease_duration: timing.lease_duration(),
            transitions: if is_mine { self.transitions } else { self.transitions.saturating_add(1) },
            acquired: self.acquired.filter(|_| is_mine).or(Some(renewed)),
            renewed: Some(renewed),
        }
    }

    /// Returns the record that the holder writes to release the lease.
    pub(super) fn released(&self, date: Timestamp) -> Self {
        let renewed = self.next_date(date);
        Self {
            holder: String::new(),
            // One second instead of zero: a duration of zero is invalid, and older clients wait for it.
            lease_duration: Duration::from_secs(1),
            transitions: self.transitions,
            acquired: Some(renewed),
            renewed: Some(renewed),
        }
    }

    /// Returns `date` in the microsecond precision of a lease, moved past the stored timestamp if needed. A
    /// holder whose wall clock stops or goes backwards must not repeat a timestamp, because its renewal would
    /// be invisible.
    fn next_date(&self, date: Timestamp) -> Timestamp {
        let date = Timestamp::from_microsecond(date.as_microsecond()).unwrap_or(date);
        let later = self.renewed.and_then(|last| last.checked_add(1.microsecond()).ok());
        later.map_or(date, |later| date.max(later))
    }

    /// Parses the spec of a lease. Invalid values count as absent.
    pub(super) fn parse(spec: Option<&LeaseSpec>) -> Self {
        let Some(spec) = spec else { return Self::default() };
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            lease_duration: Duration::from_secs(seconds.unwrap_or_default()),
            transitions: spec
                .lease_transitions
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or_default(),
            acquired: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
        }
    }

    /// Writes the record to the spec of a lease and preserves the other fields.
    pub(super) fn write_to(&self, spec: &mut LeaseSpec) {
        // Rounded up, so that no replica waits for less than the configured duration.
        let seconds = self.lease_duration.as_millis().div_ceil(1000);
        spec.holder_identity = Some(self.holder.clone());
        spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
        spec.lease_transitions = Some(i32::try_from(self.transitions).unwrap_or(i32::MAX));
        spec.acquire_time = self.acquired.map(MicroTime);
        spec.renew_time = self.renewed.map(MicroTime);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_record_that_is_written_to_a_lease_is_read_back_unchanged() {
        let written =
            LeaseRecord::default().held_by("a", &Timing::default(), date("2026-01-02T03:04:05.123456789Z"));
        let mut spec = LeaseSpec { strategy: Some("OldestEmulationVersion".into()), ..LeaseSpec::default() };
        written.write_to(&mut spec);
        assert_eq!(LeaseRecord::parse(Some(&spec)), written);
        assert_eq!(spec.strategy.as_deref(), Some("OldestEmulationVersion"), "other fields are preserved");
        assert_eq!(written.renewed, Some(date("2026-01-02T03:04:05.123456Z")), "in the precision of a lease");
    }

    #[test]
    fn a_renewal_changes_the_lease_although_the_wall_clock_stands_still() {
        let now = date("2026-01-02T03:04:05Z");
        let first = LeaseRecord::default().held_by("a", &Timing::default(), now);
        let second = first.held_by("a", &Timing::default(), now);
        let third = second.held_by("a", &Timing::default(), now);
        assert!(first != second && second != third && first != third);
        assert_eq!(
            (second.acquired, second.transitions),
            (first.acquired, first.transitions),
            "the term is the same"
        );
        let other = second.held_by("b", &Timing::default(), now);
        assert_eq!((other.transitions, other.acquired), (second.transitions + 1, Some(now)));
    }

    #[test]
    fn invalid_values_in_a_lease_count_as_absent() {
        let spec = LeaseSpec {
            lease_duration_seconds: Some(-5),
            lease_transitions: Some(-1),
            ..LeaseSpec::default()
        };
        assert_eq!(LeaseRecord::parse(Some(&spec)), LeaseRecord::default());
        assert!(LeaseRecord::parse(None).is_free());
    }
}
