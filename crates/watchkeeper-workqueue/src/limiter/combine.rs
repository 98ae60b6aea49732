//! Limiters made of limiters.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use super::RateLimiter;

/// The longest delay that any of several limiters asks for. All of them are asked every time.
pub struct MaxOf {
    limiters: Vec<Box<dyn RateLimiter>>,
}

impl MaxOf {
    /// Of these limiters. Of none, the delay is zero.
    pub fn new(limiters: impl IntoIterator<Item = Box<dyn RateLimiter>>) -> Self {
        Self { limiters: limiters.into_iter().collect() }
    }
}

impl fmt::Debug for MaxOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.limiters.len()).finish()
    }
}

impl RateLimiter for MaxOf {
    fn delay(&mut self, failures: u32, now: Duration) -> Duration {
        self.limiters.iter_mut().map(|limiter| limiter.delay(failures, now)).max().unwrap_or_default()
    }

    fn schedule(&self) -> Option<Vec<Duration>> {
        let schedules: Vec<_> = self.limiters.iter().map(RateLimiter::schedule).collect::<Option<_>>()?;
        let longest = schedules.iter().map(Vec::len).max().unwrap_or(1);
        let at = |failures: usize| {
            let delays = schedules.iter().filter_map(|delays| delays.get(failures).or(delays.last()));
            delays.max().copied().unwrap_or_default()
        };
        Some((0..longest).map(at).collect())
    }
}

/// Another limiter's delay, but never more than `max`.
#[derive(Debug, Clone)]
pub struct WithMaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L: RateLimiter> WithMaxWait<L> {
    /// Caps `limiter` at `max`.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<L: RateLimiter> RateLimiter for WithMaxWait<L> {
    fn delay(&mut self, failures: u32, now: Duration) -> Duration {
        self.limiter.delay(failures, now).min(self.max)
    }

    fn schedule(&self) -> Option<Vec<Duration>> {
        Some(self.limiter.schedule()?.into_iter().map(|delay| delay.min(self.max)).collect())
    }
}

/// Another limiter's delay, stretched by a random share of up to `fraction` of it.
///
/// Keys that failed together (because what they need was away for a moment) then come back spread out.
#[derive(Debug, Clone)]
pub struct Jittered<L> {
    limiter: L,
    fraction: f64,
    state: u64,
}

impl<L: RateLimiter> Jittered<L> {
    /// Stretches by up to `fraction` (0.5 means up to half as long again), differently in each process.
    pub fn new(limiter: L, fraction: f64) -> Self {
        Self::with_seed(limiter, fraction, RandomState::new().hash_one(0))
    }

    /// As [`Jittered::new`], with a seed that makes the delays repeatable.
    pub fn with_seed(limiter: L, fraction: f64, seed: u64) -> Self {
        let fraction = if fraction.is_finite() { fraction.max(0.0) } else { 0.0 };
        Self { limiter, fraction, state: seed }
    }

    /// A number from 0 up to 1: splitmix64, which needs no more state than its position.
    fn next_share(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let share = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
        share
    }
}

impl<L: RateLimiter> RateLimiter for Jittered<L> {
    fn delay(&mut self, failures: u32, now: Duration) -> Duration {
        let delay = self.limiter.delay(failures, now);
        let stretch = 1.0 + self.next_share() * self.fraction;
        Duration::try_from_secs_f64(delay.as_secs_f64() * stretch).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};

    fn boxed(limiter: impl RateLimiter) -> Box<dyn RateLimiter> {
        Box::new(limiter)
    }

    #[test]
    fn max_of_asks_all_and_takes_the_longest() {
        let millis = Duration::from_millis;
        let mut limiter = MaxOf::new([
            boxed(ItemFastSlow::new(millis(5), millis(3000), 3)),
            boxed(ItemExponential::new(millis(1), millis(1000))),
        ]);
        let delays: Vec<u128> =
            (0..5).map(|failures| limiter.delay(failures, Duration::ZERO).as_millis()).collect();
        assert_eq!(delays, [5, 5, 5, 3000, 3000]);
        let schedule: Vec<u128> = limiter.schedule().unwrap().iter().map(Duration::as_millis).collect();
        assert_eq!(&schedule[..5], [5, 5, 5, 3000, 3000]);
        assert_eq!(schedule.last(), Some(&3000));
        assert_eq!(MaxOf::new([]).delay(3, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn with_max_wait_caps_another_limiter() {
        let inner = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(3), 2);
        let mut limiter = WithMaxWait::new(inner, Duration::from_secs(1));
        let delays: Vec<u128> =
            (0..4).map(|failures| limiter.delay(failures, Duration::ZERO).as_millis()).collect();
        assert_eq!(delays, [5, 5, 1000, 1000]);
        assert_eq!(
            limiter.schedule(),
            Some(vec![Duration::from_millis(5), Duration::from_millis(5), Duration::from_secs(1)])
        );
    }

    #[test]
    fn jitter_stretches_within_its_fraction_and_repeats_with_its_seed() {
        let base = Duration::from_secs(8);
        let fresh = |seed| Jittered::with_seed(ItemFastSlow::new(base, base, 0), 0.5, seed);
        let draw = |seed| -> Vec<Duration> {
            let mut limiter = fresh(seed);
            (0..1000).map(|_| limiter.delay(0, Duration::ZERO)).collect()
        };
        let delays = draw(7);
        assert!(delays.iter().all(|delay| *delay >= base && *delay < base + base / 2));
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(
            *most > *least + Duration::from_millis(3900),
            "from {least:?} to {most:?} is not most of the range"
        );
        assert_eq!(delays, draw(7));
        assert_ne!(delays, draw(8));
    }

    #[test]
    fn jitter_of_the_longest_delay_does_not_overflow() {
        let inner = ItemFastSlow::new(Duration::MAX, Duration::MAX, 0);
        assert_eq!(Jittered::with_seed(inner, 1.0, 1).delay(0, Duration::ZERO), Duration::MAX);
        let unjittered = ItemFastSlow::new(Duration::from_secs(1), Duration::from_secs(1), 0);
        assert_eq!(
            Jittered::with_seed(unjittered, f64::NAN, 1).delay(0, Duration::ZERO),
            Duration::from_secs(1)
        );
    }

    #[test]
    fn the_default_is_per_key_backoff_or_ten_a_second_whichever_is_longer() {
        let mut limiter = default_controller_limiter();
        assert_eq!(limiter.delay(0, Duration::ZERO), Duration::from_millis(5));
        assert_eq!(limiter.delay(30, Duration::ZERO), Duration::from_secs(1000));
        for _ in 2..100 {
            limiter.delay(0, Duration::ZERO);
        }
        assert_eq!(limiter.delay(0, Duration::ZERO), Duration::from_millis(100), "the burst is used up");
        assert_eq!(limiter.schedule(), None, "the limit on all keys together depends on the time");
        assert_eq!(default_item_limiter().delay(0, Duration::ZERO), Duration::from_millis(1));
    }
}
