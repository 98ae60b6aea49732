//! The owner references, by uid.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::controllers::object::{Owner, Uid};

/// The dependents of every owner, observed or not.
///
/// Owners that have not been observed are included, because they may be observed later or turn out not to exist. Sets are
/// ordered, so that the order of actions is reproducible.
#[derive(Debug, Default)]
pub(super) struct Edges {
    of_owner: HashMap<Uid, Dependents>,
}

/// The dependents of one owner.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    /// All dependents of the owner.
    pub(super) all: BTreeSet<Uid>,
    /// The dependents that block the owner's foreground deletion.
    pub(super) blocking: BTreeSet<Uid>,
}

impl Edges {
    /// Returns the dependents of `owner`, if any.
    pub(super) fn dependents(&self, owner: &Uid) -> Option<&Dependents> {
        self.of_owner.get(owner)
    }

    /// Returns a copy of the dependents of `owner`, so that the graph can change during an iteration.
    pub(super) fn all_dependents(&self, owner: &Uid) -> Vec<Uid> {
        self.of_owner
            .get(owner)
            .map(|dependents| dependents.all.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Returns the first dependent of `owner` after `cursor`.
    pub(super) fn dependent_after(&self, owner: &Uid, cursor: Option<&Uid>) -> Option<&Uid> {
        use std::ops::Bound::{Excluded, Unbounded};
        let all = &self.of_owner.get(owner)?.all;
        all.range::<Uid, _>((cursor.map_or(Unbounded, Excluded), Unbounded)).next()
    }

    /// Replaces the owners of `dependent`. Returns the owners it no longer blocks.
    pub(super) fn replace(&mut self, dependent: &Uid, old: &[Owner], new: &[Owner]) -> Vec<Uid> {
        // A self-reference would block forever, so it does not block.
        let blocking = |owners: &[Owner]| -> HashSet<Uid> {
            let blocking = owners.iter().filter(|owner| owner.blocks && owner.uid != *dependent);
            blocking.map(|owner| owner.uid.clone()).collect()
        };
        let (mut blocked, blocks) = (blocking(old), blocking(new));
        let kept: HashSet<&Uid> = new.iter().map(|owner| &owner.uid).collect();
        let mut unblocked = Vec::new();
        for owner in old {
            // Removed, so that an owner that is named twice is unblocked once.
            if blocked.remove(&owner.uid) && !blocks.contains(&owner.uid) {
                unblocked.push(owner.uid.clone());
            }
            if !kept.contains(&owner.uid) {
                self.remove(&owner.uid, dependent);
            }
        }
        for owner in new {
            let dependents = self.of_owner.entry(owner.uid.clone()).or_default();
            dependents.all.insert(dependent.clone());
            if blocks.contains(&owner.uid) {
                dependents.blocking.insert(dependent.clone());
            } else {
                dependents.blocking.remove(dependent);
            }
        }
        unblocked
    }

    fn remove(&mut self, owner: &Uid, dependent: &Uid) {
        if let Some(dependents) = self.of_owner.get_mut(owner) {
            dependents.all.remove(dependent);
            dependents.blocking.remove(dependent);
            if dependents.all.is_empty() {
                self.of_owner.remove(owner);
            }
        }
    }
}
