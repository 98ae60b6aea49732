//! How urgent a key is.

use std::fmt;

/// How urgent a key is: higher goes first, equals go in order of arrival.
///
/// Any value from -128 to 127 is a level of its own; three have names. Work that repeats what is already known
/// (an initial list, a resync) belongs at [`Priority::LOW`], so that it never holds up what has just changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(pub i8);

impl Priority {
    /// Work that can wait: initial lists, resyncs.
    pub const LOW: Self = Self(-100);
    /// What everything is unless it says otherwise.
    pub const NORMAL: Self = Self(0);
    /// Work that must overtake the rest.
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
