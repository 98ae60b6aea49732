//! Why a key is in the queue.

use std::{fmt, mem, slice, sync::Arc};

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
/// Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes(Kept);

/// Most keys have one cause, which then needs no room of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Kept {
    #[default]
    None,
    One(Cause),
    /// Of more than one add.
    Merged(Arc<Merged>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Merged {
    causes: Vec<Cause>,
    adds: u32,
}

impl Causes {
    /// How many different causes are kept.
    pub const CAP: usize = 8;

    /// The different causes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        match &self.0 {
            Kept::None => &[],
            Kept::One(cause) => slice::from_ref(cause),
            Kept::Merged(merged) => &merged.causes,
        }
        .iter()
    }

    /// How many adds with a cause were merged, those whose cause was not kept included.
    pub fn adds(&self) -> u32 {
        match &self.0 {
            Kept::None => 0,
            Kept::One(_) => 1,
            Kept::Merged(merged) => merged.adds,
        }
    }

    /// True when nobody gave a cause.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Kept::None)
    }

    pub(crate) fn push(&mut self, cause: Cause) {
        match &mut self.0 {
            Kept::None => self.0 = Kept::One(cause),
            _ => self.merge(1, [cause]),
        }
    }

    /// Takes in the causes that arrived after these.
    pub(crate) fn append(&mut self, later: Self) {
        match later.0 {
            _ if self.is_empty() => *self = later,
            Kept::None => {}
            Kept::One(cause) => self.merge(1, [cause]),
            Kept::Merged(later) => {
                let Merged { causes, adds } = Arc::unwrap_or_clone(later);
                self.merge(adds, causes);
            }
        }
    }

    /// Takes in the causes of so many later adds.
    fn merge(&mut self, adds: u32, causes: impl IntoIterator<Item = Cause>) {
        let mut merged = match mem::take(&mut self.0) {
            Kept::None => Arc::new(Merged { causes: Vec::new(), adds: 0 }),
            Kept::One(first) => Arc::new(Merged { causes: vec![first], adds: 1 }),
            Kept::Merged(merged) => merged,
        };
        let all = Arc::make_mut(&mut merged);
        all.adds = all.adds.saturating_add(adds);
        causes.into_iter().for_each(|cause| all.keep(cause));
        self.0 = Kept::Merged(merged);
    }
}

impl Merged {
    fn keep(&mut self, cause: Cause) {
        // The third retry says all that the first two said.
        if let Cause::Retry(_) = cause
            && let Some(earlier) = self.causes.iter_mut().find(|kept| matches!(kept, Cause::Retry(_)))
        {
            *earlier = cause;
        } else if self.causes.len() < Causes::CAP && !self.causes.contains(&cause) {
            self.causes.push(cause);
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
