//! The writes made for one key.

use std::{collections::VecDeque, time::Duration};

use watchkeeper_informer::{ObjectKey, ResourceVersion};

use super::expectation::{CacheView, Expectation};

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

#[derive(Debug)]
struct Unseen {
    cache: usize,
    epoch: u64,
    object: ObjectKey,
    expectation: Expectation,
}

impl Ledger {
    /// Notes a write.
    pub(crate) fn wrote(&mut self, written: Written, now: Duration) {
        let expectation = match (&written.version, written.is_deletion) {
            (after, true) => Expectation::Gone { uid: written.uid.clone(), after: after.clone() },
            (Some(version), false) => Expectation::AtLeast(version.clone()),
            // An answer without a version says nothing about what to wait for.
            (None, false) => return,
        };
        let (cache, epoch, object) = (written.cache, written.epoch, written.object.clone());
        match self.unseen.iter_mut().find(|unseen| unseen.cache == cache && unseen.object == object) {
            Some(unseen) if unseen.epoch == epoch => {
                unseen.expectation = expectation.following(&unseen.expectation);
            }
            Some(unseen) => (unseen.epoch, unseen.expectation) = (epoch, expectation),
            None => self.unseen.push(Unseen { cache, epoch, object, expectation }),
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

    /// Gives up waiting for the rest.
    pub(crate) fn give_up(&mut self) {
        self.unseen.clear();
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
