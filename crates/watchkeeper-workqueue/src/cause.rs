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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    /// Apart from the others, because most keys have one: it then needs no room of its own.
    first: Option<Cause>,
    others: Vec<Cause>,
    adds: u32,
}

impl Causes {
    /// How many different causes are kept.
    pub const CAP: usize = 8;

    /// No causes.
    pub(crate) const NONE: &'static Self = &Self { first: None, others: Vec::new(), adds: 0 };

    /// The different causes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.first.iter().chain(&self.others)
    }

    /// How many adds with a cause were merged, those whose cause was not kept included.
    pub fn adds(&self) -> u32 {
        self.adds
    }

    /// True when nobody gave a cause.
    pub fn is_empty(&self) -> bool {
        self.adds == 0
    }

    pub(crate) fn push(&mut self, cause: Cause) {
        self.adds = self.adds.saturating_add(1);
        self.keep(cause);
    }

    /// Takes in the causes that arrived after these.
    pub(crate) fn append(&mut self, later: Self) {
        self.adds = self.adds.saturating_add(later.adds);
        later.first.into_iter().chain(later.others).for_each(|cause| self.keep(cause));
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
        } else if self.iter().count() < Self::CAP && self.iter().all(|kept| *kept != cause) {
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
        match self.adds as usize {
            adds if adds > self.iter().count() => write!(f, " ({adds} adds)"),
            _ => Ok(()),
        }
    }
}
