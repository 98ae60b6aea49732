//! One generation of a dictionary.

use std::{cell::RefCell, fmt};

use zstd::zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, SafeResult, compress_bound};

/// The compression level. Lower levels save less than 3 µs for each object and need half as much memory again; higher
/// levels need twice the memory for the dictionary.
const LEVEL: i32 = 1;

/// The size up to which the buffers and the context of a [`Compressor`] are kept between two objects.
const RETAINED_BYTES: usize = 256 << 10;

/// A generation of a dictionary, which packs objects and unpacks the ones that it packed.
///
/// A packed object can be unpacked only by the codec that packed it, so whatever stores packed bytes stores an
/// `Arc<Codec>` with them. A codec never changes. It needs no memory besides [`memory_bytes`](Self::memory_bytes).
///
/// An object that does not become smaller is stored as it is. The packed bytes are therefore never longer than the
/// plain ones, and equally long only if they are the plain ones.
pub(crate) struct Codec {
    dictionary: Option<Dictionary>,
}

struct Dictionary {
    compression: CDict<'static>,
    decompression: DDict<'static>,
}

/// The packed bytes are not what the codec made of an object of the given length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("packed object is corrupt: {packed_bytes} bytes do not unpack to {plain_bytes}")]
pub(crate) struct CorruptPacked {
    /// The length of the packed object.
    pub(crate) packed_bytes: usize,
    /// The length that the unpacked object has to have.
    pub(crate) plain_bytes: usize,
}

impl Codec {
    /// Returns a codec that compresses without a dictionary.
    pub(crate) fn without_dictionary() -> Self {
        Self { dictionary: None }
    }

    /// Returns a codec with a dictionary, trained or any representative bytes.
    ///
    /// If zstd rejects the dictionary, the codec compresses without one.
    pub(crate) fn with_dictionary(dictionary: &[u8]) -> Self {
        let compression = CDict::try_create(dictionary, LEVEL);
        let decompression = DDict::try_create(dictionary);
        let dictionary = compression
            .zip(decompression)
            .filter(|_| !dictionary.is_empty())
            .map(|(compression, decompression)| Dictionary { compression, decompression });
        Self { dictionary }
    }

    /// Returns whether the codec has a dictionary.
    pub(crate) fn has_dictionary(&self) -> bool {
        self.dictionary.is_some()
    }

    /// Returns the bytes that the codec occupies.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let dictionary = self
            .dictionary
            .as_ref()
            .map_or(0, |dictionary| dictionary.compression.sizeof() + dictionary.decompression.sizeof());
        size_of::<Self>() + dictionary
    }

    /// Packs an object.
    pub(crate) fn compress(&self, plain: &[u8], scratch: &mut Compressor) -> Box<[u8]> {
        match scratch.compress(plain, self.dictionary.as_ref()) {
            Some(packed) if packed.len() < plain.len() => packed,
            _ => plain.into(),
        }
    }

    /// Replaces the contents of `out` by the object, whose length is `len`.
    ///
    /// # Errors
    /// Returns [`CorruptPacked`] if `packed` is not an object of that length, packed by this codec. `out` is then
    /// empty.
    pub(crate) fn decompress(
        &self,
        packed: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CorruptPacked> {
        out.clear();
        if packed.len() == len {
            out.extend_from_slice(packed);
            return Ok(());
        }
        out.reserve_exact(len);
        let written = with_decompressor(|context| match &self.dictionary {
            Some(dictionary) => context.decompress_using_ddict(out, packed, &dictionary.decompression),
            None => context.decompress(out, packed),
        });
        if written == Some(Ok(len)) && out.len() == len {
            return Ok(());
        }
        out.clear();
        Err(CorruptPacked { packed_bytes: packed.len(), plain_bytes: len })
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").field("has_dictionary", &self.has_dictionary()).finish_non_exhaustive()
    }
}

/// The context and the buffer with which one writer packs objects, for any number of codecs.
///
/// Both are reused. They are released after an object that made them grow beyond 256 KiB.
#[derive(Default)]
pub(crate) struct Compressor {
    context: Option<CCtx<'static>>,
    packed: Vec<u8>,
}

impl Compressor {
    /// Returns a compressor. Its context is created with the first object.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes that the compressor occupies between two objects.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.packed.capacity() + self.context.as_ref().map_or(0, CCtx::sizeof)
    }

    /// Returns the packed object, or `None` if it does not fit into memory.
    fn compress(&mut self, plain: &[u8], dictionary: Option<&Dictionary>) -> Option<Box<[u8]>> {
        if self.context.is_none() {
            self.context = new_context();
        }
        let context = self.context.as_mut()?;
        self.packed.clear();
        self.packed.reserve_exact(compress_bound(plain.len()));
        let referenced = dictionary.map_or(Ok(0), |dictionary| context.ref_cdict(&dictionary.compression));
        let result = referenced.and_then(|_| context.compress2(&mut self.packed, plain));
        // The context must not refer to the dictionary of a codec that may be dropped before the next object.
        let dereferenced = context.disable_dictionary();
        let packed = result.is_ok().then(|| Box::from(self.packed.as_slice()));

        if dereferenced.is_err() || context.sizeof() > RETAINED_BYTES {
            self.context = None;
        }
        if self.packed.capacity() > RETAINED_BYTES {
            self.packed = Vec::new();
        }
        packed
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("memory_bytes", &self.memory_bytes()).finish_non_exhaustive()
    }
}

/// Returns a context for frames without the length and the dictionary's number: both are known from the entry.
fn new_context() -> Option<CCtx<'static>> {
    let mut context = CCtx::try_create()?;
    for parameter in [
        CParameter::CompressionLevel(LEVEL),
        CParameter::ContentSizeFlag(false),
        CParameter::DictIdFlag(false),
        CParameter::ChecksumFlag(false),
    ] {
        context.set_parameter(parameter).ok()?;
    }
    Some(context)
}

thread_local! {
    /// The decompression context of a thread. It takes 94 KiB from the first read of a packed object on.
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Runs `decompress` with a context. Returns `None` if there is not enough memory for one.
fn with_decompressor(decompress: impl FnOnce(&mut DCtx<'static>) -> SafeResult) -> Option<SafeResult> {
    let mut decompress = Some(decompress);
    let on_thread = DECOMPRESSOR.try_with(|slot| {
        let mut slot = slot.try_borrow_mut().ok()?;
        if slot.is_none() {
            *slot = DCtx::try_create();
        }
        Some(decompress.take()?(slot.as_mut()?))
    });
    match (on_thread, decompress) {
        (Ok(Some(result)), _) => Some(result),
        // The thread is ending, and its context is gone.
        (_, Some(decompress)) => Some(decompress(&mut DCtx::try_create()?)),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests;
