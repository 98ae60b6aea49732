//! The objects of a list, while it is being read.

use std::{hash::BuildHasher, mem, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table};
use watchkeeper_client::decode::Identity;

use crate::{
    reflector::{
        Object, VersionOrder,
        intake::{Incoming, Rejection},
    },
    resource_version,
};

/// What a list has brought so far, each object marked with the attempt that saw it last.
///
/// A list that breaks off and begins again does not begin with nothing: what an earlier attempt brought is recalled instead
/// of decoded. At the end what the last attempt did not mark is swept. Nothing here is a second copy of the cache:
/// objects the cache holds already are the same `Arc`s.
#[derive(Debug)]
pub(super) struct Gathering<K> {
    entries: Vec<Entry<K>>,
    /// Places in `entries`, by key.
    places: HashTable<usize>,
    hasher: RandomState,
    attempt: u32,
    /// How many entries the present attempt has marked.
    marked: usize,
}

#[derive(Debug)]
struct Entry<K> {
    identity: Identity,
    /// None when a later event of the stream deleted it.
    object: Option<Result<Arc<K>, Rejection>>,
    attempt: u32,
}

/// What became of an object that was put in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The first of its key in this attempt.
    First,
    /// Replaced what this attempt had of the key.
    Again,
    /// Left out, because this attempt has a newer version of it.
    Older(Identity),
}

/// A list that was read whole.
#[derive(Debug)]
pub(super) struct Gathered<K> {
    pub(super) objects: Vec<Object<K>>,
    pub(super) rejected: Vec<(Identity, Rejection)>,
}

/// For how many attempts an object that is not seen again is still remembered.
const ATTEMPTS_REMEMBERED: u32 = 2;

impl<K> Default for Gathering<K> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            places: HashTable::new(),
            hasher: RandomState::default(),
            attempt: 0,
            marked: 0,
        }
    }
}

impl<K> Gathering<K> {
    /// Begins an attempt. What earlier ones brought can be recalled, and is no part of this one until it is seen again.
    pub(super) fn begin(&mut self) {
        self.attempt += 1;
        self.marked = 0;
        let oldest = self.attempt.saturating_sub(ATTEMPTS_REMEMBERED);
        self.entries.retain(|entry| entry.attempt >= oldest && entry.object.is_some());
        self.places.clear();
        for (place, entry) in self.entries.iter().enumerate() {
            let hasher = |place: &usize| self.hasher.hash_one(self.entries[*place].identity.key());
            self.places.insert_unique(self.hasher.hash_one(entry.identity.key()), place, hasher);
        }
    }

    /// How many objects the present attempt has.
    pub(super) fn len(&self) -> usize {
        self.marked
    }

    /// The object, if any attempt brought this very version of it.
    pub(super) fn recall(&self, identity: &Identity) -> Option<Arc<K>> {
        identity.uid().and(identity.resource_version())?;
        let entry = &self.entries[self.find(identity.key())?];
        let object = entry.object.as_ref()?.as_ref().ok()?;
        (entry.identity == *identity).then(|| Arc::clone(object))
    }

    /// Takes an object of the present attempt.
    pub(super) fn put(&mut self, incoming: Incoming<K>, versions: VersionOrder) -> Put {
        let Incoming { identity, object, .. } = incoming;
        let Some(place) = self.find(identity.key()) else {
            self.insert(identity, object);
            self.marked += 1;
            return Put::First;
        };
        let entry = &mut self.entries[place];
        let is_marked = entry.attempt == self.attempt && entry.object.is_some();
        if is_marked && versions == VersionOrder::Ordered && is_older(&identity, &entry.identity) {
            return Put::Older(identity);
        }
        *entry = Entry { identity, object: Some(object), attempt: self.attempt };
        if is_marked {
            return Put::Again;
        }
        self.marked += 1;
        Put::First
    }

    /// Takes an object out of the present attempt again: it was deleted while the list was being sent.
    pub(super) fn remove(&mut self, key: &str) {
        if let Some(place) = self.find(key) {
            let entry = &mut self.entries[place];
            if entry.object.take().is_some() && entry.attempt == self.attempt {
                self.marked -= 1;
            }
        }
    }

    /// Ends the list: what this attempt marked, in the order it came first. Everything else is forgotten.
    pub(super) fn finish(&mut self) -> Gathered<K> {
        let Self { entries, attempt, .. } = mem::take(self);
        let mut rejected = Vec::new();
        // Every object of the list is in memory now, so this is where the most is: the objects move into the memory the
        // entries were in.
        let objects =
            entries.into_iter().filter_map(|Entry { identity, object, attempt: seen }| {
                match object.filter(|_| seen == attempt)? {
                    Ok(object) => Some(Object { identity, object }),
                    Err(rejection) => {
                        rejected.push((identity, rejection));
                        None
                    }
                }
            });
        Gathered { objects: objects.collect(), rejected }
    }

    fn find(&self, key: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        self.places.find(hash, |place| self.entries[*place].identity.key() == key).copied()
    }

    fn insert(&mut self, identity: Identity, object: Result<Arc<K>, Rejection>) {
        let Self { entries, places, hasher, attempt, .. } = self;
        let hash = hasher.hash_one(identity.key());
        let vacant =
            places.entry(hash, |_| false, |place: &usize| hasher.hash_one(entries[*place].identity.key()));
        if let hash_table::Entry::Vacant(vacant) = vacant {
            vacant.insert(entries.len());
        }
        entries.push(Entry { identity, object: Some(object), attempt: *attempt });
    }
}

/// Whether `a` is an older version of the same object.
fn is_older(a: &Identity, b: &Identity) -> bool {
    match (a.resource_version(), b.resource_version()) {
        (Some(a_version), Some(b_version)) => {
            a.uid() == b.uid() && resource_version::is_older(a_version, b_version)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflector::{
        VersionOrder::{Opaque, Ordered},
        quarantine::Cause,
    };

    fn named(key: &str, version: &str) -> Identity {
        Identity::new("", key, &format!("uid of {key}"), version)
    }

    fn incoming(key: &str, version: &str) -> Incoming<String> {
        Incoming {
            identity: named(key, version),
            object: Ok(Arc::new(format!("{key}@{version}"))),
            content: None,
        }
    }

    fn finish(gathering: &mut Gathering<String>) -> Vec<String> {
        gathering.finish().objects.iter().map(|object| String::clone(&object.object)).collect()
    }

    #[test]
    fn only_what_the_last_attempt_saw_is_left_and_in_the_order_it_came() {
        let mut gathering = Gathering::default();
        gathering.begin();
        for key in ["c", "a", "b"] {
            assert_eq!(gathering.put(incoming(key, "1"), Ordered), Put::First);
        }
        gathering.begin();
        assert_eq!(gathering.len(), 0);
        assert_eq!(gathering.put(incoming("b", "2"), Ordered), Put::First);
        assert_eq!(gathering.put(incoming("c", "1"), Ordered), Put::First);
        assert_eq!(gathering.put(incoming("d", "3"), Ordered), Put::First);
        assert_eq!(gathering.len(), 3);
        assert_eq!(finish(&mut gathering), ["c@1", "b@2", "d@3"]);
        assert_eq!(gathering.len(), 0);
        assert_eq!(finish(&mut gathering), [""; 0], "and then nothing is");
    }

    #[test]
    fn what_an_earlier_attempt_brought_is_recalled_and_not_for_ever() {
        let mut gathering = Gathering::default();
        gathering.begin();
        gathering.put(incoming("a", "1"), Ordered);
        gathering.begin();
        let recalled = gathering.recall(&named("a", "1"));
        assert_eq!(recalled.as_deref().map(String::as_str), Some("a@1"));
        assert!(gathering.recall(&named("a", "2")).is_none(), "another version");
        assert!(gathering.recall(&Identity::new("", "a", "another", "1")).is_none(), "another object");
        assert!(gathering.recall(&named("b", "1")).is_none());
        gathering.begin();
        assert!(gathering.recall(&named("a", "1")).is_some());
        gathering.begin();
        assert!(gathering.recall(&named("a", "1")).is_none(), "not seen for too many attempts");
    }

    #[test]
    fn an_older_version_of_an_object_does_not_replace_a_newer_one() {
        let mut gathering = Gathering::default();
        gathering.begin();
        gathering.put(incoming("a", "10"), Ordered);
        assert_eq!(gathering.put(incoming("a", "9"), Ordered), Put::Older(named("a", "9")));
        assert_eq!(gathering.put(incoming("a", "9"), Opaque), Put::Again, "unless versions do not compare");
        let identity = Identity::new("", "a", "u2", "3");
        let reborn = Incoming { identity, object: Ok(Arc::new("u2".into())), content: None };
        assert_eq!(gathering.put(reborn, Ordered), Put::Again, "or it is another object");
        assert_eq!(finish(&mut gathering), ["u2"]);
    }

    #[test]
    fn an_object_deleted_on_the_way_is_gone_until_it_comes_again() {
        let mut gathering = Gathering::default();
        gathering.begin();
        gathering.put(incoming("a", "1"), Ordered);
        gathering.put(incoming("b", "2"), Ordered);
        gathering.remove("a");
        gathering.remove("a");
        gathering.remove("never there");
        assert_eq!(gathering.len(), 1);
        assert!(gathering.recall(&named("a", "1")).is_none());
        assert_eq!(gathering.put(incoming("b", "3"), Ordered), Put::Again);
        gathering.remove("b");
        assert_eq!(gathering.put(incoming("b", "4"), Ordered), Put::First);
        assert_eq!(finish(&mut gathering), ["b@4"]);
    }

    #[test]
    fn an_object_that_cannot_be_had_is_told_apart() {
        let mut gathering = Gathering::<String>::default();
        gathering.begin();
        let rejection = Rejection::new(Cause::Decode, "no".to_owned());
        gathering.put(Incoming { identity: named("a", "1"), object: Err(rejection), content: None }, Ordered);
        gathering.put(incoming("b", "1"), Ordered);
        assert!(gathering.recall(&named("a", "1")).is_none());
        let gathered = gathering.finish();
        assert_eq!((gathered.objects.len(), gathered.rejected.len()), (1, 1));
        assert_eq!(gathered.rejected[0].0.key(), "a");
    }
}
