//! Why a key is in the queue.

use std::{fmt, sync::Arc};

/// Why a key was added.
///
/// A cause rides beside the key and is never part of it: two adds of one key for two reasons are one piece of
/// work that knows both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The key was found by the first list of its kind.
    InitialList,
    /// A periodic resync; nothing is known to have changed.
    Resync,
    /// Something changed. Says what, in words for a log line: the kind, or the object that changed.
    Event(Arc<str>),
    /// The work failed and is tried again; this is the number of failures so far.
    Retry(u32),
    /// The work asked to be run again after a while.
    Requeue,
    /// Anything else.
    Other(Arc<str>),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitialList => f.write_str("initial list"),
            Self::Resync => f.write_str("resync"),
            Self::Event(what) => write!(f, "event of {what}"),
            Self::Retry(failures) => write!(f, "retry {failures}"),
            Self::Requeue => f.write_str("requeue"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

/// The causes of all adds that were merged into one piece of work, oldest first.
///
/// At most [`Causes::CAP`] different ones are kept; [`Causes::adds`] goes on counting, so that a key hit by ten
/// thousand events costs no more than one hit by ten, and still says so.
///
/// A handle: clones share what they show, until one of them is given another cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    /// Shared, because whoever works on a key keeps them for a retry and shows them to others. A clone of each cause would
    /// count in texts that all keys have in common, and every thread would wait for every other there.
    merged: Option<Arc<Merged>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Merged {
    /// Apart from the others, because most keys have one: it then needs no room of its own.
    first: Option<Cause>,
    others: Vec<Cause>,
    adds: u32,
}

impl Causes {
    /// How many different causes are kept.
    pub const CAP: usize = 8;

    /// The different causes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.merged.iter().flat_map(|merged| merged.iter())
    }

    /// How many adds with a cause were merged, those whose cause was not kept included.
    pub fn adds(&self) -> u32 {
        self.merged.as_ref().map_or(0, |merged| merged.adds)
    }

    /// True when nobody gave a cause.
    pub fn is_empty(&self) -> bool {
        self.merged.is_none()
    }

    pub(crate) fn push(&mut self, cause: Cause) {
        let merged = Arc::make_mut(self.merged.get_or_insert_default());
        merged.adds = merged.adds.saturating_add(1);
        merged.keep(cause);
    }

    /// Takes in the causes that arrived after these.
    pub(crate) fn append(&mut self, later: Self) {
        let Some(later) = later.merged else { return };
        let Some(merged) = &mut self.merged else {
            self.merged = Some(later);
            return;
        };
        let (merged, later) = (Arc::make_mut(merged), Arc::unwrap_or_clone(later));
        merged.adds = merged.adds.saturating_add(later.adds);
        later.first.into_iter().chain(later.others).for_each(|cause| merged.keep(cause));
    }
}

impl Merged {
    fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.first.iter().chain(&self.others)
    }

    fn keep(&mut self, cause: Cause) {
        let mut kept = self.first.iter_mut().chain(&mut self.others);
        // The third retry says all that the first two said.
        if let Cause::Retry(_) = cause
            && let Some(earlier) = kept.find(|kept| matches!(kept, Cause::Retry(_)))
        {
            *earlier = cause;
        } else if self.first.is_none() {
            self.first = Some(cause);
        } else if self.iter().count() < Causes::CAP && self.iter().all(|kept| *kept != cause) {
            self.others.push(cause);
        }
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, cause) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{cause}")?;
        }
        match self.adds() as usize {
            adds if adds > self.iter().count() => write!(f, " ({adds} adds)"),
            _ => Ok(()),
        }
    }
}
