//! The memory policy of informers.

/// The policy by which informers keep objects: decoded, or encoded and decoded when they are read.
///
/// A decoded pod takes six times the memory of its JSON, and thirty times that of its compressed JSON. Objects that are kept
/// encoded are compressed with a dictionary that is trained on the first objects. Their metadata remains readable without
/// decoding: keys, labels, owners and finalizers.
///
/// | policy | memory | reads |
/// |---|---|---|
/// | [`Auto`](Self::Auto) | small caches as `Decoded`; large ones as `Budget`, with a budget that grows with the reads if memory is free | those of small caches and working sets as with `Decoded` |
/// | [`Decoded`](Self::Decoded) | every object decoded | never decode |
/// | [`Packed`](Self::Packed) | every object encoded | decode each time, tens of microseconds for a pod |
/// | [`Budget`](Self::Budget) | objects that were read recently are decoded, within the budget | decode what is not within the budget |
///
/// The policy of a factory applies to all its informers together: they share one budget.
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
    /// No object is kept decoded. Reads decode.
    Packed,
    /// Decoded objects may take this many bytes in total, as estimated from their encoded sizes.
    Budget(u64),
}

impl MemoryPolicy {
    /// The memory for decoded objects with which [`Auto`](Self::Auto) starts, and to which it returns: 32 MiB for all
    /// informers of a factory.
    pub const AUTO_BASE_BYTES: u64 = 32 << 20;
}
