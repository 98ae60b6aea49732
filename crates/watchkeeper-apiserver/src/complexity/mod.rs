//! Tests that work grows in proportion to the input: each test runs one algorithm on an input and on one four times as
//! large.

mod growth;

use std::{fmt::Display, time::Duration};

/// The largest accepted ratio of run times for four times the input. Linear work takes 4 times as long, sorting a little
/// more, comparing every item with every other one 16 times.
const LARGEST_RATIO: f64 = 10.0;

/// The shortest run that is compared. The ratio of shorter runs would be dominated by interruptions.
const SHORTEST: Duration = Duration::from_millis(2);

/// The number of measurements after which a ratio is accepted.
const FEWEST_ROUNDS: u32 = 3;

/// The number of measurements after which a ratio is rejected.
const ROUNDS: u32 = 12;

/// Panics if `work` takes much more than four times as long on an input of `size * 4` as on one of `size`.
///
/// The fastest of several runs counts, in processor time, so that other processes on the machine do not matter.
pub(crate) fn assert_linear<I, R>(
    what: impl Display,
    size: usize,
    input: impl Fn(usize) -> I,
    work: impl Fn(&I) -> R,
) {
    let (few, many) = (input(size), input(size * 4));
    if let Err((small, large)) = compare(|| work(&few), || work(&many)) {
        panic!("{what}: {size} items took {small:?}, four times as many took {large:?}");
    }
}

/// Panics if `many` takes several times as long as `few`.
pub(crate) fn assert_no_growth<R>(what: impl Display, few: impl Fn() -> R, many: impl Fn() -> R) {
    if let Err((small, large)) = compare(few, many) {
        panic!("{what}: few terms took {small:?}, many took {large:?}");
    }
}

/// Returns the fastest runs of both if their ratio exceeds [`LARGEST_RATIO`] after all rounds.
///
/// A busy machine makes single runs slower, never faster. The runs alternate and the fastest counts, so more rounds
/// correct a disturbed measurement, while quadratic work fails in every round.
fn compare<R>(few: impl Fn() -> R, many: impl Fn() -> R) -> Result<(), (Duration, Duration)> {
    let (mut small, mut large) = (Duration::MAX, Duration::MAX);
    for round in 1..=ROUNDS {
        small = small.min(time(&few));
        large = large.min(time(&many));
        let ratio = large.max(SHORTEST).as_secs_f64() / small.max(SHORTEST).as_secs_f64();
        if round >= FEWEST_ROUNDS && ratio < LARGEST_RATIO {
            return Ok(());
        }
    }
    Err((small, large))
}

fn time<R>(work: impl Fn() -> R) -> Duration {
    let start = processor_time();
    std::hint::black_box(work());
    processor_time().saturating_sub(start)
}

/// Returns the processor time of this thread, or wall time on systems that do not report processor time.
#[expect(clippy::disallowed_methods, reason = "measures how long work really takes")]
fn processor_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let start = START.get_or_init(std::time::Instant::now);
    let reported = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = reported.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}
