use std::thread;

use proptest::prelude::*;

use super::*;

#[test]
fn reservations_of_several_threads_never_exceed_the_capacity() {
    let ledger = Ledger::new();
    thread::scope(|scope| {
        for n in 0..4_u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                let mut reservation = ledger.open(0);
                for step in 0..5000 {
                    let granted = reservation.resize((step * (n + 7)) % 60, Some(100));
                    assert!(granted <= 100);
                    assert!(ledger.reserved() <= 100);
                    reservation.set_used(granted);
                }
            });
        }
    });
    assert_eq!((ledger.reserved(), ledger.used()), (0, 0));
}

#[test]
fn a_reservation_is_opened_whatever_the_capacity_is_and_does_not_grow_beyond_it() {
    let ledger = Ledger::new();
    let mut one = ledger.open(80);
    let mut other = ledger.open(80);
    assert_eq!(one.resize(100, Some(100)), 80);
    assert_eq!(other.resize(10, Some(100)), 10);
    assert!(one.fits(90, 100) && !one.fits(91, 100));
    assert_eq!(one.resize(100, Some(100)), 90);
    assert_eq!(one.resize(u64::MAX, None), u64::MAX - 10);
    drop(one);
    assert_eq!(other.resize(100, Some(100)), 100);
}

proptest! {
    #[test]
    fn the_sums_are_those_of_the_reservations(
        steps in prop::collection::vec((0..3_usize, any::<u64>(), prop::option::of(any::<u64>()), any::<u64>()), 1..50),
    ) {
        let ledger = Ledger::new();
        let mut all: Vec<_> = (0..3).map(|_| ledger.open(5)).collect();
        for (n, target, capacity, used) in steps {
            let before = all[n].bytes();
            let granted = all[n].resize(target, capacity);
            prop_assert!(granted <= target);
            let sum: u64 = all.iter().map(Reservation::bytes).sum();
            prop_assert!(granted <= before || capacity.is_none_or(|capacity| sum <= capacity));
            prop_assert_eq!(ledger.reserved(), sum);
            let sum = all[n].set_used(used);
            prop_assert_eq!(sum, all.iter().map(|reservation| reservation.used).sum::<u64>());
            prop_assert_eq!(sum, ledger.used());
        }
    }
}
