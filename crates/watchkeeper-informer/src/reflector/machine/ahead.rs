//! Objects that are newer than the list they came in.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use watchkeeper_client::decode::Identity;

use crate::{reflector::Object, resource_version::is_older};

/// Objects of a list that are newer than the list says it is.
///
/// A list of one moment has none. A list whose later pages were read at a later time has some, and a watch from the list's
/// version tells their history again. Those events are already in the list, and must not take the objects back.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    versions: HashMap<Box<str>, Box<str>, RandomState>,
}

impl Ahead {
    pub(super) fn of<K>(objects: &[Object<K>], list_version: &str) -> Self {
        let newer = objects.iter().filter_map(|Object { identity, .. }| {
            let version = identity.resource_version()?;
            is_older(list_version, version).then(|| (identity.key().into(), version.into()))
        });
        Self { versions: newer.collect() }
    }

    /// Whether the list already had what this event tells.
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
    use std::sync::Arc;

    use super::*;

    fn named(key: &str, version: &str) -> Identity {
        Identity::new("", key, "uid", version)
    }

    #[test]
    fn events_the_list_already_had_are_covered_until_the_first_that_it_had_not() {
        let object = |key, version| Object { identity: named(key, version), object: Arc::new(()) };
        let mut ahead = Ahead::of(&[object("a", "9"), object("b", "15"), object("c", "x")], "10");
        assert!(!ahead.covers(&named("a", "11")), "a was not newer than the list");
        assert!(!ahead.covers(&named("c", "11")), "nobody knows about c");
        assert!(ahead.covers(&named("b", "11")));
        assert!(ahead.covers(&named("b", "14")));
        assert!(!ahead.covers(&named("b", "15")));
        assert!(!ahead.covers(&named("b", "14")), "it is past that");
    }
}
