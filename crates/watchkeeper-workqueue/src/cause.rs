//! Why a key is in the queue.

use std::{fmt, mem, slice, sync::Arc};

/// The reason for an add.
///
/// A cause is stored beside the key and is not part of it: adds of one key for two reasons lead to one run with both causes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The object was part of the initial list.
    InitialList,
    /// A periodic resync. No change is known.
    Resync,
    /// An object changed. The text names its kind or the object, for log lines.
    Event(Arc<str>),
    /// The last run failed. The number counts the failures since the last success.
    Retry(u32),
    /// The last run asked for another one after a delay.
    Requeue,
    /// Any other reason.
    Other(Arc<str>),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitialList => f.write_str("initial list"),
            Self::Resync => f.write_str("resync"),
            Self::Event(object) => write!(f, "event of {object}"),
            Self::Retry(failures) => write!(f, "retry {failures}"),
            Self::Requeue => f.write_str("requeue"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

/// The causes of all adds that were merged into one run, oldest first. Cheap to clone.
///
/// At most [`Causes::CAP`] different causes are kept; of several retries, the last. [`Causes::adds`] counts every add, so a
/// key with ten thousand events needs no more memory than one with ten.
///
/// ```
/// use watchkeeper_workqueue::{AddOptions, Cause, WorkQueue};
///
/// let queue = WorkQueue::new("pods");
/// for kind in ["Pod", "Service", "Pod"] {
///     queue.add_with("default/web", AddOptions::new().cause(Cause::Event(kind.into())));
/// }
/// let item = queue.try_get().expect("the key is queued");
/// assert_eq!(item.causes().to_string(), "event of Pod, event of Service (3 adds)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    pub(crate) set: CauseSet,
    pub(crate) adds: u32,
}

/// Different causes, oldest first. Most keys have one cause, which needs no allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CauseSet {
    #[default]
    Empty,
    One(Cause),
    Many(Arc<Vec<Cause>>),
}

impl Causes {
    /// The largest number of different causes that are kept.
    pub const CAP: usize = 8;

    /// Returns the different causes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.set.as_slice().iter()
    }

    /// Returns the number of merged adds that had a cause, including those whose cause was not kept.
    pub fn adds(&self) -> u32 {
        self.adds
    }

    /// Returns whether no add had a cause.
    pub fn is_empty(&self) -> bool {
        self.adds == 0
    }

    pub(crate) fn with(mut self, cause: Cause) -> Self {
        self.set.insert(cause);
        self.adds = self.adds.saturating_add(1);
        self
    }

    /// Adds the causes of later adds.
    pub(crate) fn append(&mut self, later: Self) {
        self.adds = self.adds.saturating_add(later.adds);
        if self.set == CauseSet::Empty {
            self.set = later.set;
        } else {
            later.iter().for_each(|cause| self.set.insert(cause.clone()));
        }
    }
}

impl CauseSet {
    /// Adds a cause, unless it is present or the set is full. A retry replaces an earlier retry.
    pub(crate) fn insert(&mut self, cause: Cause) {
        let present = self.as_slice();
        if present.contains(&cause) {
            return;
        }
        let is_retry = |cause: &Cause| matches!(cause, Cause::Retry(_));
        let replaced = present.iter().position(|present| is_retry(present) && is_retry(&cause));
        if replaced.is_none() && present.len() == Causes::CAP {
            return;
        }
        *self = match mem::take(self) {
            Self::One(first) if replaced.is_none() => Self::Many(Arc::new(vec![first, cause])),
            Self::Empty | Self::One(_) => Self::One(cause),
            Self::Many(mut causes) => {
                let list = Arc::make_mut(&mut causes);
                match replaced {
                    Some(position) => list[position] = cause,
                    None => list.push(cause),
                }
                Self::Many(causes)
            }
        };
    }

    fn as_slice(&self) -> &[Cause] {
        match self {
            Self::Empty => &[],
            Self::One(cause) => slice::from_ref(cause),
            Self::Many(causes) => causes,
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
