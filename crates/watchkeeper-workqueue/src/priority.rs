//! The priority of a key.

use std::fmt;

/// The priority of a key: higher priorities are dequeued first, keys of one priority in the order in which they were queued.
///
/// Each value from -128 to 127 is a priority of its own; three have names. Adds that report no change (an initial list, a
/// resync) should use [`Priority::LOW`], so that they do not delay changes. Defaults to [`Priority::NORMAL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(pub i8);

impl Priority {
    /// Work that can wait: initial lists and resyncs. The value of controller-runtime's `LowPriority`.
    #[doc(alias = "LowPriority")]
    pub const LOW: Self = Self(-100);
    /// The default priority.
    pub const NORMAL: Self = Self(0);
    /// Work that is dequeued before everything else.
    pub const HIGH: Self = Self(100);
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LOW => f.write_str("low"),
            Self::NORMAL => f.write_str("normal"),
            Self::HIGH => f.write_str("high"),
            Self(level) => write!(f, "{level}"),
        }
    }
}
