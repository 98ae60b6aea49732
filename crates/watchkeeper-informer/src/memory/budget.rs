//! The size of the budget under the policy Auto, and the limit that the informers of a process share.

use std::{sync::Arc, time::Duration};

mod ledger;

pub(crate) use self::ledger::{Ledger, Reservation};

/// The settings of an [`AutoBudget`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AutoOptions {
    /// The budget without need for more, in bytes. Defaults to 32 MiB; a pool sets its own.
    pub(crate) base: u64,
    /// The share of one core from which decoding makes the budget grow. Defaults to 0.05.
    pub(crate) grow_share: f64,
    /// The share of one core from which the budget grows to the bytes of all objects at once. Defaults to 0.15.
    pub(crate) jump_share: f64,
    /// The time without need before the budget shrinks. Defaults to 10 minutes.
    pub(crate) idle: Duration,
    /// The time after a shortage before the budget grows. It doubles with each shortage in succession, up to eight
    /// times. Defaults to 10 minutes.
    pub(crate) cooldown: Duration,
    /// The minimum time between two warnings. Defaults to 10 minutes.
    pub(crate) warning: Duration,
}

impl Default for AutoOptions {
    fn default() -> Self {
        let ten_minutes = Duration::from_mins(10);
        Self {
            base: 32 << 20,
            grow_share: 0.05,
            jump_share: 0.15,
            idle: ten_minutes,
            cooldown: ten_minutes,
            warning: ten_minutes,
        }
    }
}

/// The reads and the memory of an informer since its previous observation.
///
/// The caller observes about every five seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Observation {
    /// The number of packed objects that reads decoded.
    pub(crate) decodes: u64,
    /// The CPU time of these decodes, which may be estimated.
    pub(crate) decode_time: Duration,
    /// The number of reads of objects that were decoded already.
    pub(crate) hits: u64,
    /// The bytes of all objects that are kept decoded now.
    pub(crate) decoded_bytes: u64,
    /// The bytes that keeping all objects of the cache decoded would take.
    pub(crate) wanted_bytes: u64,
    /// The resident memory of the process, in bytes.
    pub(crate) resident: Option<u64>,
    /// The resident memory that the process should stay below, in bytes.
    pub(crate) ceiling: Option<u64>,
}

/// Memory does not allow a budget that the reads of the cache need.
///
/// The remedies are an index instead of a list, a narrow type, metadata only, and more memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pressure {
    /// The packed objects that are decoded per second.
    pub(crate) decodes_per_second: f64,
    /// The share of one core that decodes them.
    pub(crate) core_share: f64,
    /// The budget in bytes.
    pub(crate) budget: u64,
    /// The bytes that keeping all objects decoded would take.
    pub(crate) wanted_bytes: u64,
}

/// The decision after an observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decision {
    /// The budget in bytes.
    pub(crate) budget: u64,
    /// A warning to log, at most one per [`AutoOptions::warning`].
    pub(crate) pressure: Option<Pressure>,
}

/// The share of the ceiling to which a process returns after it exceeded the ceiling: 15/16, so that small changes do not
/// exceed it again.
const RETURN_SHARE: (u64, u64) = (15, 16);

/// The budget of a process whose memory cannot be measured is at most this many times the base.
const UNMEASURED_FACTOR: u64 = 8;

/// The number of observations after a reduction in which the resident memory may follow.
const SETTLING: u32 = 3;

/// The number of observations between two steps of a slow reduction.
const IDLE_STEP: u32 = 10;

/// The size of one informer's budget under the policy Auto, as a state machine.
///
/// | observation | budget |
/// |---|---|
/// | decoding takes more than 5 % of a core, twice in succession, and the budget is used | doubles |
/// | decoding takes more than 15 %, and the ceiling allows the bytes of all objects | the bytes of all objects |
/// | the process exceeds its ceiling | less by the informer's share of the excess, at least a quarter of the base |
/// | no need for 10 minutes | three quarters, every tenth observation, down to the base |
/// | less than the base, and the ceiling allows more after a cooldown | the base |
///
/// "No need" means that decoding every object at every read would take less than half of 5 % of a core, so the smaller
/// budget never makes it grow again. An informer whose decoded objects are read more often keeps its budget, even if a
/// part of it would do.
///
/// All informers of a process share a [`Ledger`]. Together they never grow beyond the ceiling, less the memory of the
/// process that is not theirs.
#[derive(Debug)]
pub(crate) struct AutoBudget {
    options: AutoOptions,
    reservation: Reservation,
    observed_at: Duration,
    /// Observations in succession in which decoding was expensive.
    expensive: u32,
    /// The last time at which more than the base was needed.
    idle_since: Duration,
    /// The number of observations since the last change.
    since_change: u32,
    /// The number of observations since the last reduction for lack of memory.
    since_reduction: u32,
    /// The mean time of a decode, as last observed. Initially 50 µs.
    decode_seconds: f64,
    /// The end of the last shortage.
    cooldown_until: Duration,
    /// The number of shortages in succession.
    shortages: u32,
    warned_at: Option<Duration>,
}

impl AutoBudget {
    /// Returns the controller of an informer that starts at `now`, with the base as its budget.
    pub(crate) fn new(options: AutoOptions, ledger: &Arc<Ledger>, now: Duration) -> Self {
        Self {
            options,
            reservation: ledger.open(options.base),
            observed_at: now,
            expensive: 0,
            idle_since: now,
            since_change: 0,
            since_reduction: SETTLING,
            decode_seconds: 50e-6,
            cooldown_until: now,
            shortages: 0,
            warned_at: None,
        }
    }

    /// Returns the budget in bytes.
    pub(crate) fn budget(&self) -> u64 {
        self.reservation.bytes()
    }

    /// Decides the budget after an observation.
    ///
    /// An observation at the time of the previous one, or before it, changes nothing.
    pub(crate) fn observe(&mut self, now: Duration, observation: &Observation) -> Decision {
        let elapsed = now.saturating_sub(self.observed_at).as_secs_f64();
        if elapsed <= 0.0 {
            return Decision { budget: self.budget(), pressure: None };
        }
        self.observed_at = now;
        self.since_change = self.since_change.saturating_add(1);
        self.since_reduction = self.since_reduction.saturating_add(1);
        let used = self.reservation.set_used(observation.decoded_bytes);
        let load = self.load(observation, elapsed);

        if load.potential_share >= self.options.grow_share / 2.0 || self.budget() <= self.options.base {
            self.idle_since = now;
        }
        let is_expensive = load.core_share > self.options.grow_share;
        self.expensive = if is_expensive { self.expensive.saturating_add(1) } else { 0 };

        let mut pressure = None;
        if is_exceeded(observation) {
            self.reduce(now, observation, used);
            pressure = self.wants_more(observation).then_some(());
        } else if self.wants_more(observation) {
            let is_granted = self.grow(now, observation, used, &load);
            pressure = (!is_granted).then_some(());
        } else if self.budget() < self.options.base {
            self.restore(now, observation, used);
        } else if now.saturating_sub(self.idle_since) >= self.options.idle && self.since_change >= IDLE_STEP {
            let less = (self.budget() - self.budget() / 4).max(self.options.base);
            self.change(less, None);
        }
        let pressure = pressure.and_then(|()| self.warning(now, observation, &load));
        Decision { budget: self.budget(), pressure }
    }

    /// Returns whether a larger budget would save decodes: they are expensive, the budget is used, and it is less than
    /// all objects.
    fn wants_more(&self, observation: &Observation) -> bool {
        let is_used = observation.decoded_bytes >= self.budget() - self.budget() / 4;
        self.expensive >= 2 && is_used && observation.wanted_bytes > self.budget()
    }

    /// Raises the budget and returns whether memory allowed it.
    fn grow(&mut self, now: Duration, observation: &Observation, used: u64, load: &Load) -> bool {
        if now < self.cooldown_until {
            return false;
        }
        let capacity = capacity(&self.options, observation, used);
        // A sixteenth above all objects, for the ones that are added.
        let all = observation.wanted_bytes.saturating_add(observation.wanted_bytes / 16);
        let twice = self.budget().saturating_mul(2).min(all);
        let target = if load.core_share > self.options.jump_share && self.reservation.fits(all, capacity) {
            all
        } else {
            twice
        };
        let before = self.budget();
        // Less than a sixteenth more is not worth a change.
        let least = target.min(before.saturating_add(before / 16));
        if !self.reservation.fits(least, capacity) {
            return false;
        }
        self.change(target, Some(capacity));
        self.budget() > before
    }

    /// Returns to the base after a shortage, when memory allows all of it.
    fn restore(&mut self, now: Duration, observation: &Observation, used: u64) {
        let capacity = capacity(&self.options, observation, used);
        if now >= self.cooldown_until && self.reservation.fits(self.options.base, capacity) {
            self.change(self.options.base, Some(capacity));
        }
    }

    /// Lowers the budget by the informer's share of what the process has above its ceiling.
    fn reduce(&mut self, now: Duration, observation: &Observation, used: u64) {
        let floor = self.options.base / 4;
        if self.budget() <= floor || self.since_reduction < SETTLING {
            return;
        }
        let (Some(resident), Some(ceiling)) = (observation.resident, observation.ceiling) else { return };
        let excess = resident.saturating_sub(scaled(ceiling, RETURN_SHARE.0, RETURN_SHARE.1));
        let own = scaled(excess, observation.decoded_bytes, used);
        let fits = observation.decoded_bytes.min(self.budget()).saturating_sub(own);

        let is_new = now >= self.cooldown_until;
        if now >= self.cooldown_until.saturating_add(self.options.cooldown) {
            self.shortages = 1;
        } else if is_new {
            self.shortages = (self.shortages + 1).min(4);
        }
        let doublings = self.shortages.saturating_sub(1);
        self.cooldown_until = now.saturating_add(self.options.cooldown.saturating_mul(1 << doublings));
        self.since_reduction = 0;
        self.change(fits.max(floor), None);
    }

    /// Reserves a new budget, within `capacity` if it is more than before.
    fn change(&mut self, target: u64, capacity: Option<u64>) {
        let before = self.budget();
        if self.reservation.resize(target, capacity) != before {
            self.since_change = 0;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of five seconds are far below 2^52")]
    fn load(&mut self, observation: &Observation, elapsed: f64) -> Load {
        let (decodes, hits) = (observation.decodes as f64, observation.hits as f64);
        let seconds = observation.decode_time.as_secs_f64();
        if observation.decodes > 0 {
            self.decode_seconds = seconds / decodes;
        }
        Load {
            decodes_per_second: decodes / elapsed,
            core_share: seconds / elapsed,
            potential_share: (decodes + hits) * self.decode_seconds / elapsed,
        }
    }

    fn warning(&mut self, now: Duration, observation: &Observation, load: &Load) -> Option<Pressure> {
        if self.warned_at.is_some_and(|at| now.saturating_sub(at) < self.options.warning) {
            return None;
        }
        self.warned_at = Some(now);
        Some(Pressure {
            decodes_per_second: load.decodes_per_second,
            core_share: load.core_share,
            budget: self.budget(),
            wanted_bytes: observation.wanted_bytes,
        })
    }
}

/// The cost of reads in an observation.
struct Load {
    decodes_per_second: f64,
    /// The share of one core that decodes packed objects.
    core_share: f64,
    /// The share of one core that would be needed if every read decoded its object.
    potential_share: f64,
}

fn is_exceeded(observation: &Observation) -> bool {
    observation.resident.zip(observation.ceiling).is_some_and(|(resident, ceiling)| resident > ceiling)
}

/// Returns the bytes for the budgets of all informers: the ceiling, less the memory that is not theirs.
fn capacity(options: &AutoOptions, observation: &Observation, used: u64) -> u64 {
    match observation.resident.zip(observation.ceiling) {
        Some((resident, ceiling)) => {
            let target = scaled(ceiling, RETURN_SHARE.0, RETURN_SHARE.1);
            target.saturating_sub(resident.saturating_sub(used))
        }
        None => options.base.saturating_mul(UNMEASURED_FACTOR),
    }
}

/// Returns `bytes * numerator / denominator`.
fn scaled(bytes: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
