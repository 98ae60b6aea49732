//! How long a lease lasts, and how often it is renewed.

use std::time::Duration;

use thiserror::Error;

/// How long a lease lasts, and how often it is renewed. The default is what Kubernetes' own components use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Durations that cannot work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimingError {
    /// A holder would still work when others may take over.
    #[error(
        "the lease lasts {lease_duration:?} and the holder works for {renew_deadline:?} without renewing it; the first must be longer"
    )]
    LeaseNotLongerThanDeadline {
        /// How long others wait.
        lease_duration: Duration,
        /// How long a holder goes on.
        renew_deadline: Duration,
    },
    /// A holder would have no second try.
    #[error(
        "the holder works for {renew_deadline:?} without renewing and tries every {retry_period:?}; the first must be more than 1.2 times the second"
    )]
    DeadlineTooCloseToRetry {
        /// How long a holder goes on.
        renew_deadline: Duration,
        /// How often it tries.
        retry_period: Duration,
    },
    /// A lease is written in whole seconds, and a retry takes some time.
    #[error("a lease lasts at least a second, and a retry period is longer than zero")]
    TooShort,
}

impl Timing {
    /// Durations that work together.
    ///
    /// # Errors
    /// When they do not; it says which two.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        if lease_duration < Duration::from_secs(1) || retry_period.is_zero() {
            return Err(TimingError::TooShort);
        }
        if lease_duration <= renew_deadline {
            return Err(TimingError::LeaseNotLongerThanDeadline { lease_duration, renew_deadline });
        }
        if renew_deadline <= retry_period.saturating_mul(6) / 5 {
            return Err(TimingError::DeadlineTooCloseToRetry { renew_deadline, retry_period });
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long a lease must stand still before another takes it.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long a holder goes on working after the last renewal that succeeded was sent.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How often a holder renews, and everybody else looks.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }
}

impl Default for Timing {
    /// 15, 10 and 2 seconds.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { lease_duration: seconds(15), renew_deadline: seconds(10), retry_period: seconds(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_cannot_work_together_are_refused() {
        let seconds = Duration::from_secs;
        assert_eq!(Timing::new(seconds(15), seconds(10), seconds(2)), Ok(Timing::default()));
        assert!(matches!(
            Timing::new(seconds(10), seconds(10), seconds(2)),
            Err(TimingError::LeaseNotLongerThanDeadline { .. })
        ));
        assert!(matches!(
            Timing::new(seconds(10), seconds(6), seconds(5)),
            Err(TimingError::DeadlineTooCloseToRetry { .. })
        ));
        assert_eq!(
            Timing::new(Duration::from_millis(900), Duration::from_millis(500), Duration::from_millis(10)),
            Err(TimingError::TooShort)
        );
        assert_eq!(Timing::new(seconds(15), seconds(10), Duration::ZERO), Err(TimingError::TooShort));
    }
}
