//! Objects that are newer than their list.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use watchkeeper_client::decode::Identity;

use crate::{reflector::ReceivedObject, resource_version::is_older};

/// The objects of a list that are newer than the version of the list.
///
/// A consistent list has none. A list whose later pages were read later has some, and a watch from the
/// version of the list repeats their history. These events are already contained in the list and must not
/// revert the objects.
#[derive(Debug, Default)]
pub(super) struct NewerThanList {
    versions: HashMap<Box<str>, Box<str>, RandomState>,
}

impl NewerThanList {
    pub(super) fn of<K>(objects: &[ReceivedObject<K>], list_version: &str) -> Self {
        let newer = objects.iter().filter_map(|ReceivedObject { identity, .. }| {
            let version = identity.resource_version()?;
            is_older(list_version, version).then(|| (identity.key().into(), version.into()))
        });
        Self { versions: newer.collect() }
    }

    /// Returns whether the list already contained the change of this event.
    pub(super) fn covers(&mut self, identity: &Identity) -> bool {
        if self.versions.is_empty() {
            return false;
        }
        let (Some(listed), Some(found)) = (self.versions.get(identity.key()), identity.resource_version())
        else {
            return false;
        };
        let is_covered = is_older(found, listed);
        if !is_covered {
            self.versions.remove(identity.key());
        }
        is_covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cached;

    fn named(key: &str, version: &str) -> Identity {
        Identity::new("", key, "uid", version)
    }

    #[test]
    fn events_the_list_already_had_are_covered_until_the_first_that_it_had_not() {
        let object =
            |key, version| ReceivedObject { identity: named(key, version), object: Cached::from(()) };
        let mut ahead = NewerThanList::of(&[object("a", "9"), object("b", "15"), object("c", "x")], "10");
        assert!(!ahead.covers(&named("a", "11")), "a was not newer than the list");
        assert!(!ahead.covers(&named("c", "11")), "the version of c has no order");
        assert!(ahead.covers(&named("b", "11")));
        assert!(ahead.covers(&named("b", "14")));
        assert!(!ahead.covers(&named("b", "15")));
        assert!(!ahead.covers(&named("b", "14")), "it is past that");
    }
}
