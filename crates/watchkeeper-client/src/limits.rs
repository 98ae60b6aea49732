//! Limits on the memory a response may use.

/// Limits on the memory one response may use, whatever the server sends.
///
/// Exceeding a limit is a typed error that names the limit and the request. A watch ends and is resumed or relisted by
/// its owner; a list fails, is tried again in pages, and is then reported. The defaults allow the largest
/// objects a real API server stores (etcd rejects writes over about 1.5 MiB).
///
/// A limit guards memory, not totals. A list that is decoded while it streams
/// ([`ListWatch`](crate::list_watch::ListWatch)) may be of any size: each object, the decompression ratio and the time
/// without progress ([`Timeouts::list_progress`](crate::list_watch::Timeouts::list_progress)) are limited instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one watch event, its newline not counted.
    pub event_bytes: usize,
    /// Bytes of one object: a list item, or the whole body of a get.
    pub object_bytes: usize,
    /// Bytes of a list that is read into memory as a whole, such as by
    /// [`ResourceClient::list`](crate::rest::ResourceClient::list). Does not apply to streamed lists.
    pub page_bytes: u64,
    /// How many times larger than its compressed form a body may become. Checked once a body has grown past
    /// [`Limits::decompression_floor_bytes`], because small bodies of repetitive JSON exceed any sane ratio.
    pub decompression_ratio: u32,
    /// Bytes of decompressed body below which the ratio is not looked at.
    pub decompression_floor_bytes: u64,
    /// Nesting of arrays and objects in one JSON document. Reading one takes stack in proportion to its depth, so
    /// thousands need a larger stack as well.
    pub json_depth: usize,
    /// Bytes of response head: status line and headers.
    pub header_bytes: usize,
}

impl Limits {
    pub(crate) const DEFAULT: Self = Self {
        event_bytes: 16 << 20,
        object_bytes: 16 << 20,
        page_bytes: 256 << 20,
        decompression_ratio: 200,
        decompression_floor_bytes: 1 << 20,
        json_depth: 128,
        header_bytes: 64 << 10,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
