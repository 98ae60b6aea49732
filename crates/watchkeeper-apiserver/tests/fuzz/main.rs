//! Fuzzing on a stable toolchain, for a limited time, with limits on the time and memory of each input.
//!
//! Inputs are generated from random bytes by the same functions that `cargo fuzz` runs (see `fuzz/`). Each target runs for
//! `WATCHKEEPER_FUZZ_SECONDS` seconds, 2 by default, from the seed `WATCHKEEPER_FUZZ_SEED`. A failure prints the bytes.

mod bits;
#[path = "../api/response_check.rs"]
mod response_check;
mod targets;

use std::{
    alloc::System,
    env, fs,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use targets::Target;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The maximum processor time of one input in an unoptimized build, besides the time for its size.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The maximum processor time per byte of an input. An unoptimized YAML parser takes about half of it, and a body has at
/// most three million bytes.
const MAX_TIME_PER_BYTE: Duration = Duration::from_micros(2);

/// The maximum number of bytes allocated for one input in total. The memory in use at any moment is less.
const MAX_ALLOCATED: usize = 512 * 1024 * 1024;

/// The maximum length of an input, in bytes.
const MAX_LENGTH: usize = 600;

/// The lock that runs one target at a time, because time and memory are those of the process.
static TURN: Mutex<()> = Mutex::new(());

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn fuzz(target: Target) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = setting("WATCHKEEPER_FUZZ_SECONDS", 2);
    let seed = setting("WATCHKEEPER_FUZZ_SEED", 0x5eed);
    let mut random = fastrand::Rng::with_seed(seed);
    let start = now();
    let mut count = 0_u64;
    // The first inputs always run, however slow the machine is.
    while count < 20 || start.elapsed() < Duration::from_secs(seconds) {
        let input: Vec<u8> = (0..random.usize(8..MAX_LENGTH)).map(|_| random.u8(..)).collect();
        let requests = targets::requests(target, &input);
        let bytes: usize = requests.iter().map(|request| request.body().len()).sum();
        let max_time = MAX_TIME + MAX_TIME_PER_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX);
        // The time for generating large requests from few bytes is not measured.
        let (before, region) = (processor_time(), Region::new(ALLOCATOR));
        targets::send(requests);
        let (time, allocated) = (processor_time().saturating_sub(before), region.change().bytes_allocated);
        assert!(time < max_time, "{target:?} took {time:?} for {bytes} bytes made of {input:?}");
        assert!(allocated < MAX_ALLOCATED, "{target:?} allocated {allocated} bytes for {input:?}");
        count += 1;
    }
}

#[expect(clippy::disallowed_methods, reason = "bounds how long the test runs")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the processor time of the process; zero on systems that do not report it.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain spaces.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[test]
fn arbitrary_bodies_are_decoded_or_rejected_in_bounded_time_and_memory() {
    fuzz(Target::Decode);
}

#[test]
fn arbitrary_patches_are_applied_or_rejected_in_bounded_time_and_memory() {
    fuzz(Target::Patch);
}

#[test]
fn arbitrary_selectors_are_matched_or_rejected_in_bounded_time_and_memory() {
    fuzz(Target::Selectors);
}

#[test]
fn arbitrary_rules_are_evaluated_or_rejected_in_bounded_time_and_memory() {
    fuzz(Target::Rules);
}

#[test]
fn arbitrary_schemas_are_validated_or_rejected_in_bounded_time_and_memory() {
    fuzz(Target::Schemas);
}
