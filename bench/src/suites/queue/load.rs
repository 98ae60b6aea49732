//! What the rows of this suite have in common: keys, delays, runtimes. The Go side makes the same ones.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// A key as a controller has it: shared, so that passing it on copies no text.
pub(super) type Key = Arc<str>;

const HOUR: Duration = Duration::from_hours(1);

/// The first `count` keys.
pub(super) fn keys(count: u64) -> Vec<Key> {
    (0..count).map(|index| format!("namespace-{:03}/pod-name-{index:08}", index % 1000).into()).collect()
}

/// The index a key was made from.
pub(super) fn index_of(key: &str) -> Option<usize> {
    key.get(key.len().checked_sub(8)?..)?.parse().ok()
}

/// The part of `count` keys that producer number `producer` of `producers` adds.
pub(super) fn part(count: usize, producer: usize, producers: usize) -> Range<usize> {
    producer * count / producers..(producer + 1) * count / producers
}

/// A delay within `window`, spread evenly over the indexes: `SplitMix64` of the index, the same on both sides.
pub(super) fn spread(index: u64, window: Duration) -> Duration {
    let mut mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos(mixed % window)
}

/// A delay of 1 to 2 hours: nothing comes due while it is measured.
pub(super) fn far_delay(index: u64) -> Duration {
    HOUR + spread(index, HOUR)
}

/// The runtime of the rows with several tasks: two workers, as the peer has two processors on the machines these
/// rows were made for, and the same everywhere.
pub(super) fn two_workers() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_time().build()
}

/// The runtime of the rows with one task.
pub(super) fn one_thread() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_carry_their_index() {
        let keys = keys(1002);
        assert_eq!(&*keys[1001], "namespace-001/pod-name-00001001");
        assert_eq!(index_of(&keys[1001]), Some(1001));
        assert_eq!(index_of("short"), None);
    }

    #[test]
    fn producers_share_all_keys_without_overlap() {
        for (count, producers) in [(10, 1), (10, 4), (3, 4), (1_000_000, 4)] {
            let mut next = 0;
            for producer in 0..producers {
                let part = part(count, producer, producers);
                assert_eq!(part.start, next, "{count} keys, {producers} producers");
                next = part.end;
            }
            assert_eq!(next, count);
        }
    }

    #[test]
    fn delays_are_those_of_the_peer() {
        let window = Duration::from_secs(5);
        let some = [0, 1, 999_999].map(|index| spread(index, window).as_nanos());
        assert_eq!(some, [1_658_607_535, 2_194_355_700, 1_996_442_353]);
    }
}
