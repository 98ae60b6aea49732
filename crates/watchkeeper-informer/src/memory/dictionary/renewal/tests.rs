use proptest::prelude::*;

use super::*;

const OPTIONS: RenewalOptions = RenewalOptions { window: 20, required: 50, required_max: 1600 };

/// Records `count` objects of 1,000 bytes, packed to `packed`, and returns after how many a renewal is due.
fn record(renewal: &mut Renewal, count: usize, packed: usize) -> Option<usize> {
    (1..=count).find(|_| renewal.record(1000, packed) == Advice::Collect)
}

/// Returns a renewal with a baseline of `packed` bytes for 1,000.
fn watching(packed: usize) -> Renewal {
    let mut renewal = Renewal::new(OPTIONS);
    assert_eq!(record(&mut renewal, 100, packed), None);
    renewal
}

#[test]
fn a_dictionary_is_kept_while_the_ratio_is_above_two_thirds() {
    for packed in [20, 99, 100, 101, 140, 149] {
        assert_eq!(record(&mut watching(100), 100_000, packed), None, "{packed} bytes");
    }
}

#[test]
fn a_dictionary_is_renewed_after_the_required_number_of_objects_with_a_lower_ratio() {
    for packed in [160, 200, 900, 1000] {
        let due = record(&mut watching(100), 1000, packed);
        assert!(due.is_some_and(|n| (50..=75).contains(&n)), "{packed} bytes: {due:?}");
    }
}

#[test]
fn a_burst_of_other_objects_that_is_shorter_than_required_renews_nothing() {
    let mut renewal = watching(100);
    for _ in 0..1000 {
        assert_eq!(record(&mut renewal, 40, 500), None);
        assert_eq!(record(&mut renewal, 60, 100), None);
    }
}

#[test]
fn collecting_is_advised_once_until_the_dictionary_is_renewed() {
    let mut renewal = watching(100);
    assert!(record(&mut renewal, 1000, 500).is_some());
    assert_eq!(record(&mut renewal, 100_000, 900), None);
    renewal.renewed();
    assert_eq!(record(&mut renewal, 100, 100), None);
    assert!(record(&mut renewal, 1000, 500).is_some());
}

#[test]
fn a_renewal_that_does_not_help_makes_the_new_ratio_the_baseline() {
    let mut renewal = watching(100);
    assert!(record(&mut renewal, 1000, 500).is_some());
    renewal.renewed();
    assert_eq!(record(&mut renewal, 100_000, 500), None);
}

#[test]
fn the_required_number_doubles_when_renewals_do_not_help() {
    let mut renewal = watching(10);
    let mut packed = 10;
    let mut waits = Vec::new();
    for _ in 0..5 {
        packed = packed * 8 / 5;
        waits.extend(record(&mut renewal, 10_000, packed));
        renewal.renewed();
        assert_eq!(record(&mut renewal, 20, packed), None);
    }
    assert_eq!(waits.len(), 5);
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0] + 40), "{waits:?}");
}

#[test]
fn the_required_number_falls_again_after_a_long_time() {
    let mut renewal = watching(100);
    for _ in 0..4 {
        assert!(record(&mut renewal, 100_000, 500).is_some());
        renewal.renewed();
        assert_eq!(record(&mut renewal, 20, 100), None);
    }
    let raised = renewal.required;
    assert!(raised >= 400, "{raised}");
    for _ in 0..8 {
        assert_eq!(record(&mut renewal, 100_000, 100), None);
        assert!(record(&mut renewal, 100_000, 500).is_some());
        renewal.renewed();
        assert_eq!(record(&mut renewal, 20, 100), None);
    }
    assert_eq!(renewal.required, OPTIONS.required);
}

#[test]
fn objects_without_bytes_renew_nothing() {
    let mut renewal = Renewal::new(OPTIONS);
    assert!((0..1000).all(|_| renewal.record(0, 0) == Advice::Keep));
    assert!((0..1000).all(|_| renewal.record(usize::MAX, usize::MAX) == Advice::Keep));
}

proptest! {
    #[test]
    fn renewals_are_rare_whatever_the_objects_are(
        runs in prop::collection::vec((1..500_usize, 10..1000_usize), 1..200),
        fitted in 10..1000_usize,
    ) {
        let mut renewal = Renewal::new(OPTIONS);
        let (mut objects, mut renewals) = (0, 0);
        for (count, packed) in runs {
            for _ in 0..count {
                objects += 1;
                if renewal.record(1000, packed) == Advice::Collect {
                    renewals += 1;
                    renewal.renewed();
                    // The new dictionary fits some objects well, which is not always the case.
                    for _ in 0..20 {
                        objects += 1;
                        prop_assert_eq!(renewal.record(1000, fitted), Advice::Keep);
                    }
                }
            }
        }
        let doublings = (OPTIONS.required_max / OPTIONS.required).ilog2() as usize;
        let most = objects / (8 * OPTIONS.required as usize) + doublings + 2;
        prop_assert!(renewals <= most, "{} renewals in {} objects", renewals, objects);
    }
}
