//! The memory policy of informers.

use std::{fmt, str::FromStr};

use super::limit::{AmountError, MemoryAmount};

/// The policy by which informers keep objects: decoded, or encoded and decoded when they are read.
///
/// A decoded pod takes about six times the memory of its JSON, and its compressed JSON a small part of that. Objects that are kept
/// encoded are compressed with a dictionary that is trained on the first objects. Their metadata remains readable without
/// decoding: keys, labels, owners and finalizers.
///
/// | policy | memory | reads |
/// |---|---|---|
/// | [`Auto`](Self::Auto) | small caches as `Decoded`; large ones as `Budget`, with a budget that grows with the reads if memory is free | those of small caches and working sets as with `Decoded` |
/// | [`Decoded`](Self::Decoded) | every object decoded | never decode |
/// | [`Packed`](Self::Packed) | every object encoded | decode each time, tens of microseconds for a pod |
/// | [`Budget`](Self::Budget), [`Share`](Self::Share) | objects that were read recently are decoded, within the budget | decode what is not within the budget |
///
/// The policy of a factory applies to all its informers together: they share one budget.
///
/// A policy is parsed from text: `auto`, `decoded`, `packed`, an amount such as `512Mi`, or a share such as `25%`.
///
/// ```
/// use watchkeeper_informer::MemoryPolicy;
///
/// assert_eq!("auto".parse(), Ok(MemoryPolicy::Auto));
/// assert_eq!("512Mi".parse(), Ok(MemoryPolicy::Budget(512 << 20)));
/// assert_eq!("25%".parse(), Ok(MemoryPolicy::Share(25)));
/// assert!("much".parse::<MemoryPolicy>().is_err());
/// ```
///
/// Objects of custom [decoders](watchkeeper_client::decode::Decode) that cannot be kept encoded are always kept decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryPolicy {
    /// A budget that starts at [`AUTO_BASE_BYTES`](Self::AUTO_BASE_BYTES), grows while reads decode often and the process is
    /// below its memory limit, and shrinks when memory becomes scarce or reads become rare.
    #[default]
    Auto,
    /// Every object is kept decoded.
    Decoded,
    /// Every object is kept encoded, and decoded by each read.
    Packed,
    /// Decoded objects may take this many bytes in total, as estimated from their encoded sizes.
    Budget(u64),
    /// Decoded objects may take this many percent of the memory limit in total: that of the cgroup, or the memory of the
    /// machine.
    Share(u8),
}

impl MemoryPolicy {
    /// The memory for decoded objects with which [`Auto`](Self::Auto) starts, and to which it returns: 16 MiB for all
    /// informers of a factory.
    pub const AUTO_BASE_BYTES: u64 = 16 << 20;
}

impl FromStr for MemoryPolicy {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        Ok(match text.trim() {
            "auto" => Self::Auto,
            "decoded" => Self::Decoded,
            "packed" => Self::Packed,
            amount => match amount.parse()? {
                MemoryAmount::Bytes(bytes) => Self::Budget(bytes),
                MemoryAmount::Percent(percent) => Self::Share(percent),
            },
        })
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Decoded => f.write_str("decoded"),
            Self::Packed => f.write_str("packed"),
            Self::Budget(bytes) => write!(f, "{bytes}"),
            Self::Share(percent) => write!(f, "{percent}%"),
        }
    }
}
