//! From deltas to ops of the cache and notices to handlers.

use std::{fmt, sync::Arc};

use tracing::error;

use crate::{
    Applied, Object, ResourceVersion, Store, StoreError, StoreOp,
    delta_fifo::{Deltas, Popped},
    key::KeyRef,
    reflector::VersionOrder,
    store::PreparedOps,
    sync::Mutex,
    transition::{Notice, StoreChange, transition},
};

/// What deltas come to: what the cache does, and then who is told what.
#[must_use = "the cache is changed, and then handlers are told"]
pub struct Handled<K> {
    /// At most one change for each key.
    pub ops: Vec<StoreOp<K>>,
    /// In the order of the deltas.
    pub notices: Vec<Notice<K>>,
}

impl<K: Object> fmt::Debug for Handled<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events: Vec<_> = self.notices.iter().map(|notice| (&notice.event, notice.audience)).collect();
        f.debug_struct("Handled").field("ops", &self.ops).field("notices", &events).finish()
    }
}

/// Works out what the deltas of some keys, each of which occurs once, come to when the cache holds what
/// `store` does: the table of [`transition`], applied to one delta of a key after the other.
///
/// Changes nothing. Whoever applies the ops must be the only one to change these keys.
pub fn handle_deltas<K: Object>(keys: &[Deltas<K>], store: &Store<K>) -> Handled<K> {
    let mut ops = Vec::with_capacity(keys.len());
    let mut notices = Vec::with_capacity(keys.len());
    for deltas in keys {
        let object = &deltas.oldest().object;
        // What cannot be named cannot be stored. A source that names its objects lets none of these through.
        let key = match KeyRef::of(&**object).check() {
            Ok(key) => key,
            Err(error) => {
                error!(%error, "an object was left out of the cache");
                continue;
            }
        };
        let stored = store.get_in(Some(key.namespace), key.name);
        let mut current = stored.clone();
        for delta in deltas.iter() {
            match transition(delta, current.as_ref(), &mut notices) {
                StoreChange::Keep => {}
                StoreChange::Set(object) => current = Some(object),
                StoreChange::Remove => current = None,
            }
        }
        match (stored, current) {
            (None, None) => {}
            (Some(before), Some(after)) if Arc::ptr_eq(&before, &after) => {}
            // Its key was checked, so neither is refused.
            (_, Some(object)) => ops.extend(StoreOp::put(object)),
            (Some(_), None) => ops.extend(key.to_key().map(StoreOp::delete)),
        }
    }
    Handled { ops, notices }
}

/// A store, and how far each part of what feeds it has come.
pub(crate) struct Cache<K> {
    pub(crate) store: Store<K>,
    marks: Mutex<Marks>,
    pub(crate) versions: VersionOrder,
}

impl<K: Object> Cache<K> {
    pub(crate) fn new(store: Store<K>, parts: usize, versions: VersionOrder) -> Self {
        Self { store, marks: Mutex::new(Marks(vec![Mark::default(); parts])), versions }
    }

    /// What a batch comes to, ready to be applied. Runs index functions: hold no lock.
    pub(crate) fn prepare(&self, popped: &Popped<K>) -> (PreparedOps<K>, Vec<Notice<K>>) {
        let Handled { ops, notices } = handle_deltas(popped.keys(), &self.store);
        (self.store.prepare(ops), notices)
    }

    /// Applies a prepared batch, running no code of the user's. When an index was added meanwhile, it comes
    /// back, to be completed.
    pub(crate) fn commit(
        &self,
        part: usize,
        popped: &Popped<K>,
        ops: PreparedOps<K>,
    ) -> Result<Result<Committed<K>, StoreError>, PreparedOps<K>> {
        let mut marks = self.marks.lock();
        let reached = Mark { version: popped.resource_version(), epoch: popped.epoch() };
        let (version, is_new_epoch) = marks.with(part, &reached);
        // Versions that are only names say nothing about the whole.
        let version = version.filter(|version| {
            self.versions == VersionOrder::Ordered && (is_new_epoch || self.is_no_step_back(version))
        });
        let applied = self.store.apply_prepared(ops, version.as_ref(), is_new_epoch)?;
        Ok(applied.map(|applied| {
            marks.set(part, reached);
            Committed { applied, is_new_epoch }
        }))
    }

    fn is_no_step_back(&self, version: &ResourceVersion) -> bool {
        self.store.resource_version().is_none_or(|held| !held.is_ordered() || *version >= held)
    }
}

/// What applying a batch did. Holds what was replaced, to be dropped where nothing is locked.
pub(crate) struct Committed<K> {
    pub(crate) applied: Applied<K>,
    pub(crate) is_new_epoch: bool,
}

/// How far a part has come.
#[derive(Debug, Clone, Default)]
struct Mark {
    version: Option<ResourceVersion>,
    epoch: u64,
}

/// How far each part has come. All of them together have come as far as the one that has come least far.
#[derive(Debug)]
struct Marks(Vec<Mark>);

impl Marks {
    /// How far all of them have come once `part` has reached this, and whether a new epoch begins with that.
    fn with(&self, part: usize, reached: &Mark) -> (Option<ResourceVersion>, bool) {
        let others = self.0.iter().enumerate().filter(|(other, _)| *other != part).map(|(_, mark)| mark);
        let version = others.fold(reached.version.clone(), |least, mark| {
            let (least, version) = (least?, mark.version.clone()?);
            match least.partial_cmp(&version)? {
                std::cmp::Ordering::Greater => Some(version),
                _ => Some(least),
            }
        });
        (version, self.0.get(part).is_some_and(|mark| mark.epoch != reached.epoch))
    }

    fn set(&mut self, part: usize, reached: Mark) {
        if let Some(mark) = self.0.get_mut(part) {
            *mark = reached;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(version: &str, epoch: u64) -> Mark {
        Mark { version: ResourceVersion::new(version), epoch }
    }

    #[test]
    fn parts_together_have_come_as_far_as_the_one_that_has_come_least_far() {
        let mut marks = Marks(vec![Mark::default(); 2]);
        assert_eq!(marks.with(0, &mark("7", 0)), (None, false), "the other is nowhere yet");
        marks.set(0, mark("7", 0));
        assert_eq!(marks.with(1, &mark("10", 0)), (ResourceVersion::new("7"), false));
        marks.set(1, mark("10", 0));
        assert_eq!(marks.with(0, &mark("12", 0)), (ResourceVersion::new("10"), false));
        assert_eq!(marks.with(0, &mark("3", 1)), (ResourceVersion::new("3"), true), "one began anew");
        assert_eq!(marks.with(0, &mark("x", 0)), (None, false), "what has no order has no least");
    }

    #[test]
    fn one_part_alone_has_come_as_far_as_it_has() {
        let marks = Marks(vec![Mark::default()]);
        assert_eq!(marks.with(0, &mark("x", 0)), (ResourceVersion::new("x"), false));
    }
}
