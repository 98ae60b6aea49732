//! What a lease says.

use std::time::Duration;

use jiff::{Timestamp, ToSpan as _};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

use super::Timing;

/// What a lease says.
///
/// The dates are the writer's wall clock. They are compared for being the same, to see whether somebody wrote; what they say
/// decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// How long others wait before they take it.
    pub lease_duration: Duration,
    /// How often it went from one holder to another. The number of a leadership.
    pub transitions: u32,
    /// When the holder took it.
    pub acquired: Option<Timestamp>,
    /// When the holder last wrote it. Each write has another date than the one before.
    pub renewed: Option<Timestamp>,
}

impl LeaseRecord {
    /// Nobody holds it.
    pub fn is_free(&self) -> bool {
        self.holder.is_empty()
    }

    /// What `identity` writes over this to take the lease, or to keep it.
    pub(super) fn held_by(&self, identity: &str, timing: &Timing, date: Timestamp) -> Self {
        let is_mine = self.holder == identity;
        // Another's dates are by another's clock; the count of transitions tells its records from ours.
        let renewed = if is_mine { self.next_date(date) } else { Self::default().next_date(date) };
        Self {
            holder: identity.to_owned(),
            lease_duration: timing.lease_duration(),
            transitions: if is_mine { self.transitions } else { self.transitions.saturating_add(1) },
            acquired: self.acquired.filter(|_| is_mine).or(Some(renewed)),
            renewed: Some(renewed),
        }
    }

    /// What its holder writes over this to let it go.
    pub(super) fn released(&self, date: Timestamp) -> Self {
        let renewed = self.next_date(date);
        Self {
            holder: String::new(),
            // A second and not none: a lease that lasts no time is invalid, and old clients wait for it.
            lease_duration: Duration::from_secs(1),
            transitions: self.transitions,
            acquired: Some(renewed),
            renewed: Some(renewed),
        }
    }

    /// The date in the microseconds a lease has, and later than the one that is there: a holder whose wall clock stands still or
    /// goes back must not write what it wrote before, or it would seem to have written nothing.
    fn next_date(&self, date: Timestamp) -> Timestamp {
        let date = Timestamp::from_microsecond(date.as_microsecond()).unwrap_or(date);
        let later = self.renewed.and_then(|last| last.checked_add(1.microsecond()).ok());
        later.map_or(date, |later| date.max(later))
    }

    /// What the specification of a lease says. What makes no sense counts as absent.
    pub(super) fn of(spec: Option<&LeaseSpec>) -> Self {
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

    /// Writes it into the specification of a lease; what else is there stays.
    pub(super) fn write_to(&self, spec: &mut LeaseSpec) {
        // Rounded up: nobody may wait for less than was meant.
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
    fn a_record_is_what_was_written_to_a_lease() {
        let written =
            LeaseRecord::default().held_by("a", &Timing::default(), date("2026-01-02T03:04:05.123456789Z"));
        let mut spec = LeaseSpec { strategy: Some("OldestEmulationVersion".into()), ..LeaseSpec::default() };
        written.write_to(&mut spec);
        assert_eq!(LeaseRecord::of(Some(&spec)), written);
        assert_eq!(spec.strategy.as_deref(), Some("OldestEmulationVersion"), "what is not ours stays");
        assert_eq!(
            written.renewed,
            Some(date("2026-01-02T03:04:05.123456Z")),
            "in microseconds, as it will be read"
        );
    }

    #[test]
    fn a_renewal_changes_the_lease_though_the_wall_clock_stands_still() {
        let now = date("2026-01-02T03:04:05Z");
        let first = LeaseRecord::default().held_by("a", &Timing::default(), now);
        let second = first.held_by("a", &Timing::default(), now);
        let third = second.held_by("a", &Timing::default(), now);
        assert!(first != second && second != third && first != third);
        assert_eq!(
            (second.acquired, second.transitions),
            (first.acquired, first.transitions),
            "but it is the same leadership"
        );
        let other = second.held_by("b", &Timing::default(), now);
        assert_eq!((other.transitions, other.acquired), (second.transitions + 1, Some(now)));
    }

    #[test]
    fn a_lease_of_nonsense_is_nobodys() {
        let spec = LeaseSpec {
            lease_duration_seconds: Some(-5),
            lease_transitions: Some(-1),
            ..LeaseSpec::default()
        };
        assert_eq!(LeaseRecord::of(Some(&spec)), LeaseRecord::default());
        assert!(LeaseRecord::of(None).is_free());
    }
}
