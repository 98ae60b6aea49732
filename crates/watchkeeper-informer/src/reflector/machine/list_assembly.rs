//! The objects of a list while it is being read.

use std::{hash::BuildHasher, mem};

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table};
use watchkeeper_client::decode::Identity;

use crate::{
    Cached,
    reflector::{
        ReceivedObject, VersionOrder,
        intake::{Incoming, ObjectRejection},
    },
    resource_version,
};

/// The objects of a list so far, each marked with the last attempt that received it.
///
/// A list that breaks off and starts again reuses the objects of earlier attempts instead of decoding them.
/// At the end, objects that the last attempt did not receive are dropped. Objects that the cache contains are
/// shared with it, so this is not a second copy of the cache.
#[derive(Debug)]
pub(super) struct ListAssembly<K> {
    entries: Vec<Entry<K>>,
    /// The positions in `entries`, by key.
    places: HashTable<usize>,
    hasher: RandomState,
    attempt: u32,
    /// The number of entries that the current attempt has received.
    marked: usize,
}

#[derive(Debug)]
struct Entry<K> {
    identity: Identity,
    /// The object, or `None` if a later event of the stream deleted it.
    object: Option<Result<Cached<K>, ObjectRejection>>,
    attempt: u32,
}

/// The result of adding an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// The first object with its key in this attempt.
    First,
    /// Replaced an object that this attempt received before.
    Again,
    /// Dropped, because this attempt has a newer version.
    Older(Identity),
}

/// A complete list.
#[derive(Debug)]
pub(super) struct AssembledList<K> {
    pub(super) objects: Vec<ReceivedObject<K>>,
    pub(super) rejected: Vec<(Identity, ObjectRejection)>,
}

/// The number of attempts for which an object that is not received again is remembered.
const ATTEMPTS_REMEMBERED: u32 = 2;

impl<K> Default for ListAssembly<K> {
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

impl<K> ListAssembly<K> {
    /// Starts an attempt. Objects of earlier attempts can be recalled, and are not part of this attempt until
    /// they are received again.
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

    /// Returns the number of objects of the current attempt.
    pub(super) fn len(&self) -> usize {
        self.marked
    }

    /// Returns the object, if any attempt received exactly this version.
    pub(super) fn recall(&self, identity: &Identity) -> Option<Cached<K>> {
        identity.uid().and(identity.resource_version())?;
        let entry = &self.entries[self.find(identity.key())?];
        let object = entry.object.as_ref()?.as_ref().ok()?;
        (entry.identity == *identity).then(|| object.clone())
    }

    /// Adds an object to the current attempt.
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

    /// Removes an object from the current attempt: it was deleted while the list was being sent.
    pub(super) fn remove(&mut self, key: &str) {
        if let Some(place) = self.find(key) {
            let entry = &mut self.entries[place];
            if entry.object.take().is_some() && entry.attempt == self.attempt {
                self.marked -= 1;
            }
        }
    }

    /// Completes the list and returns the objects of the current attempt, in the order in which they were
    /// first received.
    pub(super) fn finish(&mut self) -> AssembledList<K> {
        let Self { entries, attempt, .. } = mem::take(self);
        let mut rejected = Vec::new();
        // The peak of the memory use is here, with all objects in memory, so the objects are collected in
        // place.
        let objects =
            entries.into_iter().filter_map(|Entry { identity, object, attempt: seen }| {
                match object.filter(|_| seen == attempt)? {
                    Ok(object) => Some(ReceivedObject { identity, object }),
                    Err(rejection) => {
                        rejected.push((identity, rejection));
                        None
                    }
                }
            });
        AssembledList { objects: objects.collect(), rejected }
    }

    fn find(&self, key: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(key);
        self.places.find(hash, |place| self.entries[*place].identity.key() == key).copied()
    }

    fn insert(&mut self, identity: Identity, object: Result<Cached<K>, ObjectRejection>) {
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

/// Returns whether `a` is an older version of the same object.
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
        quarantine::QuarantineCause,
    };

    fn named(key: &str, version: &str) -> Identity {
        Identity::new("", key, &format!("uid of {key}"), version)
    }

    fn incoming(key: &str, version: &str) -> Incoming<String> {
        Incoming {
            identity: named(key, version),
            object: Ok(Cached::from(format!("{key}@{version}"))),
            content: None,
        }
    }

    fn finish(assembly: &mut ListAssembly<String>) -> Vec<String> {
        assembly.finish().objects.iter().map(|object| object.object.decoded().unwrap().to_string()).collect()
    }

    #[test]
    fn only_objects_of_the_last_attempt_remain_in_the_order_received() {
        let mut assembly = ListAssembly::default();
        assembly.begin();
        for key in ["c", "a", "b"] {
            assert_eq!(assembly.put(incoming(key, "1"), Ordered), Put::First);
        }
        assembly.begin();
        assert_eq!(assembly.len(), 0);
        assert_eq!(assembly.put(incoming("b", "2"), Ordered), Put::First);
        assert_eq!(assembly.put(incoming("c", "1"), Ordered), Put::First);
        assert_eq!(assembly.put(incoming("d", "3"), Ordered), Put::First);
        assert_eq!(assembly.len(), 3);
        assert_eq!(finish(&mut assembly), ["c@1", "b@2", "d@3"]);
        assert_eq!(assembly.len(), 0);
        assert_eq!(finish(&mut assembly), [""; 0], "and then nothing is");
    }

    #[test]
    fn objects_of_an_earlier_attempt_are_recalled_for_a_limited_number_of_attempts() {
        let mut assembly = ListAssembly::default();
        assembly.begin();
        assembly.put(incoming("a", "1"), Ordered);
        assembly.begin();
        let recalled = assembly.recall(&named("a", "1"));
        assert_eq!(recalled.and_then(|object| object.decoded()).as_deref().map(String::as_str), Some("a@1"));
        assert!(assembly.recall(&named("a", "2")).is_none(), "another version");
        assert!(assembly.recall(&Identity::new("", "a", "another", "1")).is_none(), "another object");
        assert!(assembly.recall(&named("b", "1")).is_none());
        assembly.begin();
        assert!(assembly.recall(&named("a", "1")).is_some());
        assembly.begin();
        assert!(assembly.recall(&named("a", "1")).is_none(), "not seen for too many attempts");
    }

    #[test]
    fn an_older_version_of_an_object_does_not_replace_a_newer_one() {
        let mut assembly = ListAssembly::default();
        assembly.begin();
        assembly.put(incoming("a", "10"), Ordered);
        assert_eq!(assembly.put(incoming("a", "9"), Ordered), Put::Older(named("a", "9")));
        assert_eq!(assembly.put(incoming("a", "9"), Opaque), Put::Again, "unless versions do not compare");
        let identity = Identity::new("", "a", "u2", "3");
        let reborn = Incoming { identity, object: Ok(Cached::from("u2".to_owned())), content: None };
        assert_eq!(assembly.put(reborn, Ordered), Put::Again, "or it is another object");
        assert_eq!(finish(&mut assembly), ["u2"]);
    }

    #[test]
    fn an_object_deleted_during_the_list_is_absent_until_it_is_received_again() {
        let mut assembly = ListAssembly::default();
        assembly.begin();
        assembly.put(incoming("a", "1"), Ordered);
        assembly.put(incoming("b", "2"), Ordered);
        assembly.remove("a");
        assembly.remove("a");
        assembly.remove("never there");
        assert_eq!(assembly.len(), 1);
        assert!(assembly.recall(&named("a", "1")).is_none());
        assert_eq!(assembly.put(incoming("b", "3"), Ordered), Put::Again);
        assembly.remove("b");
        assert_eq!(assembly.put(incoming("b", "4"), Ordered), Put::First);
        assert_eq!(finish(&mut assembly), ["b@4"]);
    }

    #[test]
    fn a_rejected_object_is_returned_separately() {
        let mut assembly = ListAssembly::<String>::default();
        assembly.begin();
        let rejection = ObjectRejection::new(QuarantineCause::Decode, "no".to_owned());
        assembly.put(Incoming { identity: named("a", "1"), object: Err(rejection), content: None }, Ordered);
        assembly.put(incoming("b", "1"), Ordered);
        assert!(assembly.recall(&named("a", "1")).is_none());
        let assembled = assembly.finish();
        assert_eq!((assembled.objects.len(), assembled.rejected.len()), (1, 1));
        assert_eq!(assembled.rejected[0].0.key(), "a");
    }
}
