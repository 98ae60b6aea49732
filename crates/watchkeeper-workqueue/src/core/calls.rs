//! What goes into the state machine and what comes out of it.

use super::slots::SlotId;
use crate::{Admission, Cause, Causes, Priority};

/// When a key is to be handed out next.
///
/// A key has one pending hand-out at a time. Two of them merge into the lesser, and the order of the variants is
/// the rule: the upper one wins, and between two times of the same kind the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// Now, and no backoff may hold it.
    Immediate,
    /// After a failure, not before this time. An ordinary add neither shortens nor lengthens it.
    Backoff(u64),
    /// Now. Takes a scheduled copy with it, because the work done now covers what was planned for later.
    Now,
    /// At this time.
    Scheduled(u64),
}

impl Pending {
    pub(super) fn at(self) -> Option<u64> {
        match self {
            Self::Immediate | Self::Now => None,
            Self::Backoff(at) | Self::Scheduled(at) => Some(at),
        }
    }
}

/// How long a key waits after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backoff {
    /// Until this time: the limiter was asked.
    Until(u64),
    /// From this time on for as long as the queue's schedule says.
    Since(u64),
}

/// What an add asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To be handed out then.
    Pending(Pending),
    /// To be tried again: counts as a failure.
    Retry(Backoff),
}

/// Permission to finish the work on a key, once.
///
/// One word, written and read as such: a processor waits a dozen cycles for two halves it has just written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

impl Token {
    #[inline]
    pub(super) fn new(slot: SlotId, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(slot))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(super) fn slot(self) -> SlotId {
        self.0 as u32
    }

    #[inline]
    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// How often the work on a key failed and how urgent it is. One word, for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing(u32);

impl Standing {
    #[inline]
    pub(super) fn new(failures: u16, priority: Priority) -> Self {
        Self(u32::from(priority.0.cast_unsigned()) << 16 | u32::from(failures))
    }

    pub(crate) fn failures(self) -> u32 {
        self.0 & u32::from(u16::MAX)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the third byte")]
    pub(crate) fn priority(self) -> Priority {
        Priority(((self.0 >> 16) as u8).cast_signed())
    }
}

/// What becomes of a key when its work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing said: finished, failures stay counted while the key stays in the queue.
    Done,
    /// Success: failures are forgotten.
    Forget,
    /// Failure: again, after its backoff, with the causes it had.
    Retry(Backoff),
    /// Success, and again at this time.
    RequeueAt(u64),
    /// Not worked on: again at this time, as if it had not been handed out.
    PutBack(u64),
}

/// A key that is handed out.
#[derive(Debug)]
pub(crate) struct Popped<K> {
    pub(crate) key: K,
    pub(crate) causes: Causes,
    pub(crate) token: Token,
    pub(crate) standing: Standing,
}

/// What finishing a key came to.
#[derive(Debug)]
pub(crate) struct Finished<K> {
    /// Where the key is now. `None` when it left the queue.
    pub(crate) admission: Option<Admission>,
    /// The key, if it left, to be dropped where no lock is held.
    pub(crate) released: Option<K>,
}

/// An add, all but its key.
#[derive(Debug)]
pub(crate) struct Add {
    pub(crate) wish: Wish,
    pub(crate) priority: Priority,
    pub(crate) cause: Option<Cause>,
}

impl Add {
    /// The commonest: now, at normal priority, nobody says why.
    pub(crate) const PLAIN: Self =
        Self { wish: Wish::Pending(Pending::Now), priority: Priority::NORMAL, cause: None };

    /// Whether it can wait in the inbox: there is one order there, and one priority.
    #[inline]
    pub(crate) fn can_be_posted(&self) -> bool {
        self.priority == Self::PLAIN.priority
    }

    pub(super) fn is_failure(&self) -> bool {
        matches!(self.wish, Wish::Retry(_))
    }
}

/// A key as its owner offers it: by value, or by reference to be cloned if the queue wants it.
///
/// What is not taken stays with the owner, so that it is dropped where no lock is held.
pub(crate) trait Offered<K> {
    fn key(&self) -> Option<&K>;
    fn take(&mut self) -> Option<K>;
}

impl<K> Offered<K> for Option<K> {
    #[inline]
    fn key(&self) -> Option<&K> {
        self.as_ref()
    }

    #[inline]
    fn take(&mut self) -> Option<K> {
        self.take()
    }
}

impl<K: Clone> Offered<K> for &K {
    #[inline]
    fn key(&self) -> Option<&K> {
        Some(self)
    }

    #[inline]
    fn take(&mut self) -> Option<K> {
        Some(K::clone(self))
    }
}
