//! Memory limits of a response.

/// The memory limits of one response, regardless of what the server sends.
///
/// Exceeding a limit is a typed error that names the limit and the request. A watch ends, and its owner
/// resumes or relists; a list fails, is retried in pages, and is then reported. The defaults allow the
/// largest objects that a real API server stores (etcd rejects writes over about 1.5 MiB).
///
/// A limit guards memory, not totals. A list that is decoded while it streams
/// ([`ListWatch`](crate::list_watch::ListWatch)) may be of any size: each object, the decompression ratio and
/// the time without progress ([`Timeouts::list_progress`](crate::list_watch::Timeouts::list_progress)) are
/// limited instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of one watch event in bytes, without its newline. Defaults to 16 MiB.
    pub event_bytes: usize,
    /// The maximum size of one object in bytes: a list item, or the whole body of a get. Defaults to
    /// 16 MiB.
    pub object_bytes: usize,
    /// The maximum size in bytes of a list that is read into memory as a whole, such as by
    /// [`ResourceClient::list`](crate::rest::ResourceClient::list). Does not apply to streamed lists. Defaults
    /// to 256 MiB.
    pub page_bytes: u64,
    /// The maximum ratio between the decompressed and the compressed size of a body. The ratio is checked
    /// once a body exceeds [`Limits::decompression_floor_bytes`], because small bodies of repetitive JSON
    /// exceed any sensible ratio. Defaults to 200.
    pub decompression_ratio: u32,
    /// The decompressed size in bytes below which the ratio is not checked. Defaults to 1 MiB.
    pub decompression_floor_bytes: u64,
    /// The maximum nesting depth of a JSON document. Parsing uses stack in proportion to the depth, so a
    /// limit of thousands needs a larger stack. Defaults to 128.
    pub json_depth: usize,
    /// The maximum size of the response head in bytes: status line and headers. Defaults to 64 KiB.
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
