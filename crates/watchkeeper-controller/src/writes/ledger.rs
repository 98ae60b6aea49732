//! The writes made for one key.

use std::{collections::VecDeque, mem, time::Duration};

use watchkeeper_informer::{ObjectKey, ResourceVersion};

use super::{CacheView, Coverage, expectation::Expectation};

/// The number of own writes per key that are kept to recognize their events.
const MAX_WRITES: usize = 32;

/// A successful write of an object that one of the controller's caches contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WriteRecord {
    /// The index of the cache among the controller's caches.
    pub(crate) cache: usize,
    pub(crate) object: ObjectKey,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    pub(crate) is_deletion: bool,
    /// The epoch of the cache at the time of the write.
    pub(crate) epoch: u64,
    /// Whether the informer of the cache selects the object.
    pub(crate) coverage: Coverage,
}

/// An event that enqueued a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TriggerEvent {
    /// The index of the cache among the controller's caches.
    pub(crate) cache: usize,
    pub(crate) object: ObjectKey,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    pub(crate) is_deletion: bool,
}

/// The writes made for one key: those that the caches do not show yet, and the recent ones, to recognize their events.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    unobserved: Vec<UnobservedWrite>,
    recent: VecDeque<(Duration, WriteRecord)>,
}

/// A write that a cache does not show yet.
#[derive(Debug)]
pub(super) struct UnobservedWrite {
    pub(crate) cache: usize,
    pub(crate) object: ObjectKey,
    pub(crate) coverage: Coverage,
    epoch: u64,
    expectation: Expectation,
}

impl Ledger {
    /// Records a write. A write of the same object in the same cache replaces the earlier one.
    pub(super) fn record(&mut self, written: WriteRecord, now: Duration) {
        let expectation = match (&written.version, written.coverage) {
            (Some(version), Coverage::Outside) => {
                Expectation::Outside { version: version.clone(), after: None }
            }
            (after, _) if written.is_deletion => {
                Expectation::Gone { uid: written.uid.clone(), after: after.clone() }
            }
            (Some(version), _) => Expectation::AtLeast(version.clone()),
            // A response without a version does not determine a state to wait for.
            (None, _) => return,
        };
        let WriteRecord { cache, epoch, coverage, .. } = written;
        let object = written.object.clone();
        match self.unobserved.iter_mut().find(|write| write.cache == cache && write.object == object) {
            Some(write) => {
                let is_same_history = write.epoch == epoch;
                let expectation =
                    if is_same_history { expectation.following(&write.expectation) } else { expectation };
                *write = UnobservedWrite { cache, object, coverage, epoch, expectation };
            }
            None => self.unobserved.push(UnobservedWrite { cache, object, coverage, epoch, expectation }),
        }
        if self.recent.len() == MAX_WRITES {
            self.recent.pop_front();
        }
        self.recent.push_back((now, written));
    }

    /// Removes the writes that the caches show. Returns whether no write is left to be observed.
    pub(super) fn remove_observed<'a>(&mut self, cache: impl Fn(usize) -> Option<&'a dyn CacheView>) -> bool {
        self.unobserved.retain(|write| {
            let Some(cache) = cache(write.cache) else { return false };
            // In a new history the version identifies another state, which may never be reached.
            cache.epoch() == write.epoch && !write.expectation.is_met(&write.object, cache)
        });
        self.unobserved.is_empty()
    }

    /// Ends the wait for the writes that the caches do not show, and returns these writes.
    pub(super) fn take_unobserved(&mut self) -> Vec<UnobservedWrite> {
        mem::take(&mut self.unobserved)
    }

    /// Returns whether an event stems from one of the key's own writes: it carries the version that the write created, or
    /// it is the deletion of an object that the write deleted.
    pub(super) fn is_own(&self, event: &TriggerEvent) -> bool {
        self.recent.iter().any(|(_, written)| {
            let is_same_object = written.cache == event.cache && written.object == event.object;
            let is_its_effect = if event.is_deletion {
                written.is_deletion && written.uid.is_some() && written.uid == event.uid
            } else {
                written.version.is_some() && written.version == event.version
            };
            is_same_object && is_its_effect
        })
    }

    /// Returns the version that the key's last write of an object created.
    pub(super) fn last_version(&self, cache: usize, object: &ObjectKey) -> Option<&ResourceVersion> {
        let last =
            self.recent.iter().rev().find(|(_, write)| write.cache == cache && write.object == *object);
        last.and_then(|(_, write)| write.version.as_ref())
    }

    /// Removes recent writes that are older than `before`, whose events have been delivered by now.
    pub(super) fn expire(&mut self, before: Duration) {
        while self.recent.front().is_some_and(|(at, _)| *at < before) {
            self.recent.pop_front();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unobserved.is_empty() && self.recent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::CachedState, *};

    /// A cache with these versions of objects.
    #[derive(Default)]
    struct Cache {
        objects: BTreeMap<ObjectKey, ResourceVersion>,
        epoch: u64,
    }

    impl Cache {
        fn of(objects: &[(&str, &str)], epoch: u64) -> Self {
            let objects = objects.iter().map(|(name, number)| (object(name), version(number)));
            Self { objects: objects.collect(), epoch }
        }
    }

    impl CacheView for Cache {
        fn state_of(&self, object: &ObjectKey) -> Option<CachedState> {
            let version = self.objects.get(object)?.clone();
            Some(CachedState { version: Some(version), ..CachedState::default() })
        }

        fn complete_to(&self) -> Option<ResourceVersion> {
            None
        }

        fn epoch(&self) -> u64 {
            self.epoch
        }
    }

    fn object(name: &str) -> ObjectKey {
        name.parse().unwrap()
    }

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::new(text).unwrap()
    }

    fn written(cache: usize, name: &str, number: &str) -> WriteRecord {
        WriteRecord {
            cache,
            object: object(name),
            version: Some(version(number)),
            uid: None,
            is_deletion: false,
            epoch: 0,
            coverage: Coverage::Inside,
        }
    }

    fn event(cache: usize, name: &str, number: &str) -> TriggerEvent {
        TriggerEvent {
            cache,
            object: object(name),
            version: Some(version(number)),
            uid: None,
            is_deletion: false,
        }
    }

    fn ledger(writes: impl IntoIterator<Item = WriteRecord>) -> Ledger {
        let mut ledger = Ledger::default();
        writes.into_iter().for_each(|written| ledger.record(written, Duration::ZERO));
        ledger
    }

    /// The state of two caches, and the writes that they do not show.
    type Case = ([Cache; 2], &'static [(usize, &'static str)]);

    /// The writes that the caches do not show.
    fn unobserved(ledger: &mut Ledger, caches: &[Cache]) -> Vec<(usize, String)> {
        let is_fresh = ledger.remove_observed(|cache| caches.get(cache).map(|cache| cache as &dyn CacheView));
        let writes = ledger.take_unobserved().into_iter();
        let writes: Vec<_> = writes.map(|write| (write.cache, write.object.to_string())).collect();
        assert_eq!(is_fresh, writes.is_empty());
        writes
    }

    #[test]
    fn only_the_most_recent_own_writes_are_kept() {
        let numbers: Vec<String> = (1..=MAX_WRITES + 1).map(|number| number.to_string()).collect();
        let mut ledger = ledger(numbers[..MAX_WRITES].iter().map(|number| written(0, "a", number)));
        let are_own = |ledger: &Ledger| {
            numbers.iter().map(|number| ledger.is_own(&event(0, "a", number))).collect::<Vec<_>>()
        };
        let mut expected = vec![true; MAX_WRITES];
        expected.push(false);
        assert_eq!(are_own(&ledger), expected, "at the limit");
        ledger.record(written(0, "a", &numbers[MAX_WRITES]), Duration::ZERO);
        expected.rotate_right(1);
        assert_eq!(are_own(&ledger), expected, "above the limit the oldest is removed");
    }

    #[test]
    fn each_object_in_each_cache_is_waited_for_separately_in_its_latest_version() {
        let writes =
            || [written(0, "a", "5"), written(0, "b", "6"), written(1, "a", "7"), written(0, "a", "8")];
        let cases: [Case; 5] = [
            ([Cache::default(), Cache::default()], &[(0, "a"), (0, "b"), (1, "a")]),
            ([Cache::of(&[("a", "5"), ("b", "6")], 0), Cache::default()], &[(0, "a"), (1, "a")]),
            ([Cache::of(&[("a", "8")], 0), Cache::of(&[("a", "7")], 0)], &[(0, "b")]),
            ([Cache::of(&[("b", "6")], 0), Cache::of(&[("a", "7")], 0)], &[(0, "a")]),
            ([Cache::of(&[("a", "8"), ("b", "6")], 0), Cache::of(&[("a", "7")], 0)], &[]),
        ];
        for (number, (caches, expected)) in cases.into_iter().enumerate() {
            let expected: Vec<_> =
                expected.iter().map(|(cache, name)| (*cache, (*name).to_owned())).collect();
            assert_eq!(unobserved(&mut ledger(writes()), &caches), expected, "case {number}");
        }
    }

    #[test]
    fn a_write_in_a_new_history_replaces_one_of_the_old_history() {
        let later = || WriteRecord { epoch: 1, ..written(0, "a", "5") };
        // The version of the old history is higher, and has no meaning in the new one.
        let mut both = ledger([written(0, "a", "100"), later()]);
        assert_eq!(unobserved(&mut both, &[Cache::of(&[("a", "4")], 1)]), [(0, "a".to_owned())]);
        let mut both = ledger([written(0, "a", "100"), later()]);
        assert_eq!(unobserved(&mut both, &[Cache::of(&[("a", "5")], 1)]), []);
        let mut old = ledger([written(0, "a", "100")]);
        assert_eq!(unobserved(&mut old, &[Cache::of(&[("a", "4")], 1)]), []);
    }

    #[test]
    fn a_deletion_is_waited_for_until_the_object_is_gone() {
        for version in [None, Some(version("5"))] {
            let deletion =
                || WriteRecord { version: version.clone(), is_deletion: true, ..written(0, "a", "5") };
            assert_eq!(
                unobserved(&mut ledger([deletion()]), &[Cache::of(&[("a", "5")], 0)]),
                [(0, "a".to_owned())]
            );
        }
        let deletion = WriteRecord { version: None, is_deletion: true, ..written(0, "a", "5") };
        assert_eq!(unobserved(&mut ledger([deletion]), &[Cache::default()]), []);
    }

    #[test]
    fn the_event_of_an_own_deletion_is_recognized_by_its_uid() {
        let uid = |uid: &str| Some(uid).filter(|uid| !uid.is_empty()).map(ToOwned::to_owned);
        let cases = [
            // the write and the event, each as (cache, object, uid, is_deletion); whether the event stems from the write
            ((0, "a", "u", true), (0, "a", "u", true), true),
            ((0, "a", "u", true), (0, "a", "w", true), false),
            ((0, "a", "u", true), (0, "a", "", true), false),
            ((0, "a", "", true), (0, "a", "", true), false),
            ((0, "a", "u", false), (0, "a", "u", true), false),
            ((0, "a", "u", true), (1, "a", "u", true), false),
            ((0, "a", "u", true), (0, "b", "u", true), false),
        ];
        for (write, event, is_own) in cases {
            let (cache, name, write_uid, is_deletion) = write;
            let write = WriteRecord { uid: uid(write_uid), is_deletion, ..written(cache, name, "5") };
            let ledger = ledger([write]);
            let (cache, name, event_uid, is_deletion) = event;
            let trigger = TriggerEvent { uid: uid(event_uid), is_deletion, ..self::event(cache, name, "6") };
            assert_eq!(ledger.is_own(&trigger), is_own, "{trigger:?}");
        }
    }

    #[test]
    fn the_event_of_an_own_change_is_recognized_by_its_version() {
        let ledger = ledger([written(0, "a", "5")]);
        assert!(ledger.is_own(&event(0, "a", "5")));
        for other in [event(0, "a", "6"), event(0, "b", "5"), event(1, "a", "5")] {
            assert!(!ledger.is_own(&other), "{other:?}");
        }
        assert!(!ledger.is_own(&TriggerEvent { version: None, ..event(0, "a", "5") }));
    }

    #[test]
    fn the_last_version_is_that_of_the_latest_write_of_the_object_in_the_cache() {
        let writes = [written(0, "a", "5"), written(0, "b", "6"), written(1, "a", "7"), written(0, "a", "8")];
        let ledger = ledger(writes);
        let last = |cache, name| ledger.last_version(cache, &object(name)).map(ResourceVersion::as_str);
        assert_eq!(
            [last(0, "a"), last(0, "b"), last(1, "a"), last(1, "b")],
            [Some("8"), Some("6"), Some("7"), None]
        );
    }

    #[test]
    fn writes_expire_by_age() {
        let mut ledger = Ledger::default();
        for second in 1..=3 {
            ledger.record(written(0, "a", &second.to_string()), Duration::from_secs(second));
        }
        ledger.expire(Duration::from_secs(2));
        assert!(!ledger.is_own(&event(0, "a", "1")));
        assert!(ledger.is_own(&event(0, "a", "2")), "not older than the limit");
        ledger.take_unobserved();
        assert!(!ledger.is_empty());
        ledger.expire(Duration::from_secs(4));
        assert!(ledger.is_empty());
    }
}
