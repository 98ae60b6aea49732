//! The delays of the rate limiters.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use watchkeeper_workqueue::{
    Drained, WorkQueue,
    limiter::{
        ItemExponential, ItemFastSlow, Jittered, MaxOf, RateLimiter, TokenBucket, WithMaxWait,
        default_controller_limiter, default_item_limiter,
    },
};

#[test]
fn a_burst_is_not_delayed_and_later_keys_are_spaced_evenly() {
    let bucket = TokenBucket::new(10.0, 3);
    let delays: Vec<u128> = (0..6).map(|_| bucket.delay(&(), 0, Duration::ZERO).as_millis()).collect();
    assert_eq!(delays, [0, 0, 0, 100, 200, 300]);
}

#[test]
fn tokens_are_refilled_up_to_the_burst() {
    let bucket = TokenBucket::new(10.0, 2);
    for _ in 0..4 {
        bucket.delay(&(), 0, Duration::ZERO);
    }
    let later = Duration::from_mins(1);
    let delays: Vec<u128> = (0..3).map(|_| bucket.delay(&(), 0, later).as_millis()).collect();
    assert_eq!(delays, [0, 0, 100]);
}

#[test]
fn a_bucket_without_a_rate_delays_forever_after_its_burst() {
    for rate in [0.0, -1.0, f64::NAN] {
        let bucket = TokenBucket::new(rate, 1);
        assert_eq!(bucket.delay(&(), 0, Duration::ZERO), Duration::ZERO);
        assert!(bucket.delay(&(), 0, Duration::ZERO) > Duration::from_secs(1 << 30));
    }
}

fn delays(limiter: &impl RateLimiter<()>, failures: impl IntoIterator<Item = u32>) -> Vec<u128> {
    failures.into_iter().map(|count| limiter.delay(&(), count, Duration::ZERO).as_millis()).collect()
}

#[test]
fn exponential_doubles_from_its_base_and_stops_at_its_maximum() {
    let limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1));
    assert_eq!(delays(&limiter, 0..5), [1, 2, 4, 8, 16]);
    assert_eq!(delays(&limiter, [9, 10, 11]), [512, 1000, 1000]);
}

#[test]
fn exponential_does_not_overflow_after_any_number_of_failures() {
    let limiter = ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000));
    assert_eq!(delays(&limiter, [31, 32, 33, 1000, u32::MAX]), [1_000_000; 5]);
    let huge = ItemExponential::new(Duration::MAX, Duration::MAX);
    assert_eq!(huge.delay(&(), 7, Duration::ZERO), Duration::MAX);
}

#[test]
fn exponential_of_zero_stays_zero() {
    let limiter = ItemExponential::new(Duration::ZERO, Duration::from_secs(1));
    assert_eq!(delays(&limiter, [0, 5, 40]), [0, 0, 0]);
}

#[test]
fn fast_slow_changes_after_the_fast_attempts() {
    let limiter = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(10), 3);
    assert_eq!(delays(&limiter, 0..6), [5, 5, 5, 10_000, 10_000, 10_000]);
}

fn boxed(limiter: impl RateLimiter<()>) -> Box<dyn RateLimiter<()>> {
    Box::new(limiter)
}

#[test]
fn max_of_returns_the_longest_delay_of_all() {
    let millis = Duration::from_millis;
    let limiter = MaxOf::new([
        boxed(ItemFastSlow::new(millis(5), millis(3000), 3)),
        boxed(ItemExponential::new(millis(1), millis(1000))),
    ]);
    let delays: Vec<u128> =
        (0..5).map(|failures| limiter.delay(&(), failures, Duration::ZERO).as_millis()).collect();
    assert_eq!(delays, [5, 5, 5, 3000, 3000]);
    assert_eq!(MaxOf::new([]).delay(&(), 3, Duration::ZERO), Duration::ZERO);
}

#[test]
fn with_max_wait_limits_another_limiter() {
    let inner = ItemFastSlow::new(Duration::from_millis(5), Duration::from_secs(3), 2);
    let limiter = WithMaxWait::new(inner, Duration::from_secs(1));
    let delays: Vec<u128> =
        (0..4).map(|failures| limiter.delay(&(), failures, Duration::ZERO).as_millis()).collect();
    assert_eq!(delays, [5, 5, 1000, 1000]);
}

#[test]
fn jitter_extends_by_up_to_its_fraction_and_repeats_with_its_seed() {
    let base = Duration::from_secs(8);
    let fresh = |seed| Jittered::with_seed(ItemFastSlow::new(base, base, 0), 0.5, seed);
    let draw = |seed| -> Vec<Duration> {
        let limiter = fresh(seed);
        (0..1000).map(|_| limiter.delay(&(), 0, Duration::ZERO)).collect()
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
    assert_eq!(Jittered::with_seed(inner, 1.0, 1).delay(&(), 0, Duration::ZERO), Duration::MAX);
    let unjittered = ItemFastSlow::new(Duration::from_secs(1), Duration::from_secs(1), 0);
    assert_eq!(
        Jittered::with_seed(unjittered, f64::NAN, 1).delay(&(), 0, Duration::ZERO),
        Duration::from_secs(1)
    );
}

#[test]
fn the_default_is_per_key_backoff_or_ten_a_second_whichever_is_longer() {
    let limiter = default_controller_limiter();
    assert_eq!(limiter.delay(&(), 0, Duration::ZERO), Duration::from_millis(5));
    assert_eq!(limiter.delay(&(), 30, Duration::ZERO), Duration::from_secs(1000));
    for _ in 2..100 {
        limiter.delay(&(), 0, Duration::ZERO);
    }
    assert_eq!(limiter.delay(&(), 0, Duration::ZERO), Duration::from_millis(100), "the burst is used up");
    assert_eq!(default_item_limiter().delay(&(), 0, Duration::ZERO), Duration::from_millis(1));
}

/// A limiter whose calls for the key "slow" take from one wait of the barrier to the next.
#[derive(Debug)]
struct Slow(Arc<Barrier>);

impl RateLimiter<&'static str> for Slow {
    fn delay(&self, key: &&'static str, _failures: u32, _now: Duration) -> Duration {
        if *key == "slow" {
            self.0.wait();
            self.0.wait();
        }
        Duration::from_secs(1)
    }
}

#[tokio::test]
async fn a_slow_limiter_delays_no_other_call() {
    let slow_call = Arc::new(Barrier::new(2));
    let queue = WorkQueue::builder("limiters").rate_limiter(Slow(Arc::clone(&slow_call))).build();
    queue.add("slow");
    let slow = queue.try_get().unwrap().into_owned();
    let retrying = thread::spawn(move || slow.retry_with_delay().1);
    slow_call.wait();
    queue.add_rate_limited("other");
    queue.add_after("delayed", Duration::from_secs(1));
    assert_eq!((queue.num_requeues(&"other"), queue.waiting_len()), (1, 2));
    assert_eq!(queue.drain(Duration::ZERO).await, Drained::DeadlineReached { queued: 0, processing: 1 });
    slow_call.wait();
    assert_eq!(retrying.join().unwrap(), Duration::from_secs(1));
}
