//! Figures of the memory of an informer.

use std::time::Duration;

/// The memory of the objects of an informer at one moment, for metrics and the status.
///
/// Objects that an informer keeps decoded only, as with [`MemoryPolicy::Decoded`](super::MemoryPolicy::Decoded), are not
/// counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The number of objects whose encoded bytes are kept: those in the cache, and earlier versions that events or callers
    /// hold.
    pub encoded_objects: u64,
    /// The encoded bytes that are kept, compressed or not.
    pub encoded_bytes: u64,
    /// The number of these objects that are also kept decoded.
    pub decoded_objects: u64,
    /// The estimated memory of the objects that are kept decoded.
    pub decoded_bytes: u64,
    /// The memory that decoded objects may take. Shared with the other informers of a factory.
    pub budget_bytes: u64,
    /// The number of reads that decoded an object.
    pub decodes: u64,
    /// The time that these reads took.
    pub decode_time: Duration,
    /// The number of reads of objects that were kept decoded.
    pub hits: u64,
    /// The number of decoded objects that were dropped to keep within the budget.
    pub evictions: u64,
    /// The bytes that were compressed with the current dictionary, before compression.
    pub plain_bytes: u64,
    /// The bytes that were compressed with the current dictionary, after compression.
    pub compressed_bytes: u64,
    /// The number of dictionaries that were trained.
    pub dictionaries: u64,
    /// The time since the current dictionary was trained, if there is one.
    pub dictionary_age: Option<Duration>,
}

impl MemoryStats {
    /// Returns the compression ratio with the current dictionary, such as 8.0, or `None` before anything was compressed.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn compression_ratio(&self) -> Option<f64> {
        (self.compressed_bytes > 0).then(|| self.plain_bytes as f64 / self.compressed_bytes as f64)
    }

    /// Returns the share of reads that decoded nothing, between 0 and 1, or `None` before the first read.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn hit_rate(&self) -> Option<f64> {
        let reads = self.hits + self.decodes;
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }
}
