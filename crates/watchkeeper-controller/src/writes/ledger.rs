//! The writes made for one key.

use std::{collections::VecDeque, mem, time::Duration};

use watchkeeper_informer::{ObjectKey, ResourceVersion};

use super::expectation::{CacheView, Coverage, Expectation};

/// How many of a key's own writes are remembered, to know their events by.
const REMEMBERED: usize = 32;

/// A write that went well, as one cache is to see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// Which of the controller's caches.
    pub(crate) cache: usize,
    pub(crate) object: ObjectKey,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    pub(crate) is_deletion: bool,
    /// The epoch of the cache when it was written.
    pub(crate) epoch: u64,
    /// Whether the informer of the cache selects the object.
    pub(crate) coverage: Coverage,
}

/// An event that had a key looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub(crate) cache: usize,
    pub(crate) object: ObjectKey,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) uid: Option<String>,
    pub(crate) is_deletion: bool,
}

/// The writes made for one key: which of them the caches have not shown yet, and what their events will look like.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    unseen: Vec<Unseen>,
    own: VecDeque<(Duration, Written)>,
}

/// A write that a cache has not shown yet.
#[derive(Debug)]
pub(crate) struct Unseen {
    pub(crate) cache: usize,
    pub(crate) object: ObjectKey,
    pub(crate) coverage: Coverage,
    epoch: u64,
    expectation: Expectation,
}

impl Ledger {
    /// Records a write.
    pub(crate) fn wrote(&mut self, written: Written, now: Duration) {
        let expectation = match (&written.version, written.coverage) {
            (Some(version), Coverage::Outside) => {
                Expectation::Outside { version: version.clone(), after: None }
            }
            (after, _) if written.is_deletion => {
                Expectation::Gone { uid: written.uid.clone(), after: after.clone() }
            }
            (Some(version), _) => Expectation::AtLeast(version.clone()),
            // A response without a version does not tell what to wait for.
            (None, _) => return,
        };
        let Written { cache, epoch, coverage, .. } = written;
        let object = written.object.clone();
        match self.unseen.iter_mut().find(|unseen| unseen.cache == cache && unseen.object == object) {
            Some(unseen) => {
                let is_same_history = unseen.epoch == epoch;
                let expectation =
                    if is_same_history { expectation.following(&unseen.expectation) } else { expectation };
                *unseen = Unseen { cache, object, coverage, epoch, expectation };
            }
            None => self.unseen.push(Unseen { cache, object, coverage, epoch, expectation }),
        }
        if self.own.len() == REMEMBERED {
            self.own.pop_front();
        }
        self.own.push_back((now, written));
    }

    /// Forgets the writes that the caches show. True when all of them do.
    pub(crate) fn settle<'a>(&mut self, cache: impl Fn(usize) -> Option<&'a dyn CacheView>) -> bool {
        self.unseen.retain(|unseen| {
            let Some(cache) = cache(unseen.cache) else { return false };
            // In a new history the version means something else, and would be waited for in vain.
            cache.epoch() == unseen.epoch && !unseen.expectation.is_met(&unseen.object, cache)
        });
        self.unseen.is_empty()
    }

    /// Ends the wait for the writes that the caches do not show, and returns them.
    pub(crate) fn give_up(&mut self) -> Vec<Unseen> {
        mem::take(&mut self.unseen)
    }

    /// Whether an event is of one of the key's own writes: it shows the version one of them made, or the end of an object
    /// that one of them deleted.
    pub(crate) fn is_own(&self, trigger: &Trigger) -> bool {
        self.own.iter().any(|(_, written)| {
            let is_same_object = written.cache == trigger.cache && written.object == trigger.object;
            let is_made_by_it = if trigger.is_deletion {
                written.is_deletion && written.uid.is_some() && written.uid == trigger.uid
            } else {
                written.version.is_some() && written.version == trigger.version
            };
            is_same_object && is_made_by_it
        })
    }

    /// The version the key's last write of an object made.
    pub(crate) fn last_version(&self, cache: usize, object: &ObjectKey) -> Option<&ResourceVersion> {
        let own = self.own.iter().rev().find(|(_, own)| own.cache == cache && own.object == *object);
        own.and_then(|(_, written)| written.version.as_ref())
    }

    /// Forgets the writes of before, whose events have long come.
    pub(crate) fn expire(&mut self, before: Duration) {
        while self.own.front().is_some_and(|(at, _)| *at < before) {
            self.own.pop_front();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unseen.is_empty() && self.own.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::expectation::Held, *};

    /// A cache with these versions of objects.
    #[derive(Default)]
    struct Cache {
        held: BTreeMap<ObjectKey, ResourceVersion>,
        epoch: u64,
    }

    impl Cache {
        fn of(objects: &[(&str, &str)], epoch: u64) -> Self {
            let held = objects.iter().map(|(name, number)| (object(name), version(number)));
            Self { held: held.collect(), epoch }
        }
    }

    impl CacheView for Cache {
        fn held(&self, object: &ObjectKey) -> Option<Held> {
            let version = self.held.get(object)?.clone();
            Some(Held { version: Some(version), ..Held::default() })
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

    fn written(cache: usize, name: &str, number: &str) -> Written {
        Written {
            cache,
            object: object(name),
            version: Some(version(number)),
            uid: None,
            is_deletion: false,
            epoch: 0,
            coverage: Coverage::Inside,
        }
    }

    fn event(cache: usize, name: &str, number: &str) -> Trigger {
        Trigger { cache, object: object(name), version: Some(version(number)), uid: None, is_deletion: false }
    }

    fn ledger(writes: impl IntoIterator<Item = Written>) -> Ledger {
        let mut ledger = Ledger::default();
        writes.into_iter().for_each(|written| ledger.wrote(written, Duration::ZERO));
        ledger
    }

    /// The state of two caches, and the writes that they do not show.
    type Case = ([Cache; 2], &'static [(usize, &'static str)]);

    /// The writes that the caches do not show.
    fn unseen(ledger: &mut Ledger, caches: &[Cache]) -> Vec<(usize, String)> {
        let is_settled = ledger.settle(|cache| caches.get(cache).map(|cache| cache as &dyn CacheView));
        let unseen = ledger.give_up().into_iter().map(|unseen| (unseen.cache, unseen.object.to_string()));
        let unseen: Vec<_> = unseen.collect();
        assert_eq!(is_settled, unseen.is_empty());
        unseen
    }

    #[test]
    fn only_the_newest_own_writes_are_remembered() {
        let numbers: Vec<String> = (1..=REMEMBERED + 1).map(|number| number.to_string()).collect();
        let mut ledger = ledger(numbers[..REMEMBERED].iter().map(|number| written(0, "a", number)));
        let are_own = |ledger: &Ledger| {
            numbers.iter().map(|number| ledger.is_own(&event(0, "a", number))).collect::<Vec<_>>()
        };
        let mut expected = vec![true; REMEMBERED];
        expected.push(false);
        assert_eq!(are_own(&ledger), expected, "as many as are remembered");
        ledger.wrote(written(0, "a", &numbers[REMEMBERED]), Duration::ZERO);
        expected.rotate_right(1);
        assert_eq!(are_own(&ledger), expected, "one more, and the oldest is forgotten");
    }

    #[test]
    fn each_object_of_each_cache_is_waited_for_on_its_own_and_in_its_newest_version() {
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
            assert_eq!(unseen(&mut ledger(writes()), &caches), expected, "case {number}");
        }
    }

    #[test]
    fn a_write_in_a_new_history_replaces_one_of_the_old_history() {
        let later = || Written { epoch: 1, ..written(0, "a", "5") };
        // The old history is over: its version, which is higher, means nothing in the new one.
        let mut both = ledger([written(0, "a", "100"), later()]);
        assert_eq!(unseen(&mut both, &[Cache::of(&[("a", "4")], 1)]), [(0, "a".to_owned())]);
        let mut both = ledger([written(0, "a", "100"), later()]);
        assert_eq!(unseen(&mut both, &[Cache::of(&[("a", "5")], 1)]), []);
        let mut old = ledger([written(0, "a", "100")]);
        assert_eq!(unseen(&mut old, &[Cache::of(&[("a", "4")], 1)]), []);
    }

    #[test]
    fn a_deletion_is_waited_for_until_the_object_is_gone() {
        for version in [None, Some(version("5"))] {
            let deletion = || Written { version: version.clone(), is_deletion: true, ..written(0, "a", "5") };
            assert_eq!(
                unseen(&mut ledger([deletion()]), &[Cache::of(&[("a", "5")], 0)]),
                [(0, "a".to_owned())]
            );
        }
        let deletion = Written { version: None, is_deletion: true, ..written(0, "a", "5") };
        assert_eq!(unseen(&mut ledger([deletion]), &[Cache::default()]), []);
    }

    #[test]
    fn the_event_of_an_own_deletion_is_recognised_by_the_uid() {
        let uid = |uid: &str| Some(uid).filter(|uid| !uid.is_empty()).map(ToOwned::to_owned);
        let cases = [
            // what was written and what the event is of: cache, object, uid, deletion; whether the event is of the write
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
            let write = Written { uid: uid(write_uid), is_deletion, ..written(cache, name, "5") };
            let ledger = ledger([write]);
            let (cache, name, event_uid, is_deletion) = event;
            let trigger = Trigger { uid: uid(event_uid), is_deletion, ..self::event(cache, name, "6") };
            assert_eq!(ledger.is_own(&trigger), is_own, "{trigger:?}");
        }
    }

    #[test]
    fn the_event_of_an_own_change_is_recognised_by_the_version() {
        let ledger = ledger([written(0, "a", "5")]);
        assert!(ledger.is_own(&event(0, "a", "5")));
        for other in [event(0, "a", "6"), event(0, "b", "5"), event(1, "a", "5")] {
            assert!(!ledger.is_own(&other), "{other:?}");
        }
        assert!(!ledger.is_own(&Trigger { version: None, ..event(0, "a", "5") }));
    }

    #[test]
    fn the_last_version_is_that_of_the_newest_write_of_the_object_in_the_cache() {
        let writes = [written(0, "a", "5"), written(0, "b", "6"), written(1, "a", "7"), written(0, "a", "8")];
        let ledger = ledger(writes);
        let last = |cache, name| ledger.last_version(cache, &object(name)).map(ResourceVersion::as_str);
        assert_eq!(
            [last(0, "a"), last(0, "b"), last(1, "a"), last(1, "b")],
            [Some("8"), Some("6"), Some("7"), None]
        );
    }

    #[test]
    fn writes_expire_by_their_time() {
        let mut ledger = Ledger::default();
        for second in 1..=3 {
            ledger.wrote(written(0, "a", &second.to_string()), Duration::from_secs(second));
        }
        ledger.expire(Duration::from_secs(2));
        assert!(!ledger.is_own(&event(0, "a", "1")));
        assert!(ledger.is_own(&event(0, "a", "2")), "not before its time");
        ledger.give_up();
        assert!(!ledger.is_empty());
        ledger.expire(Duration::from_secs(4));
        assert!(ledger.is_empty());
    }
}
