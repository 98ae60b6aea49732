//! Objects that are kept encoded, and decoded while the memory budget allows.

use std::{cell::Cell, sync::Arc};

use watchkeeper_client::decode::{Decode, Encoding, Header, Identity};

use super::{Undecodable, shared_metadata::SharedMetadata};
use crate::{
    memory::{Charge, Codec, Compressor, Evict, ObjectMemory, Read, Residence, Resident},
    reflector::{ObjectRejection, QuarantineCause, Transform, transformed},
    sync::Mutex,
};

/// An object in one version: its metadata, its encoded bytes, and the decoded object while it is resident.
///
/// Everything but the residency and the compression of the bytes is immutable. Objects are decoded without a lock, so two
/// concurrent reads may decode the same object; the first result is kept.
pub(crate) struct Entry<K> {
    pub(super) metadata: EntryMetadata,
    format: Arc<Format<K>>,
    residence: Residence,
    state: Mutex<State<K>>,
}

/// The metadata of an entry, which is read without decoding the object.
#[derive(Debug)]
pub(crate) struct EntryMetadata {
    pub(super) identity: Identity,
    pub(super) generation: Option<i64>,
    pub(super) is_being_deleted: bool,
    pub(super) annotations: u64,
    pub(super) shared: Arc<SharedMetadata>,
}

/// The way from encoded bytes to objects, common to the entries of a source.
pub(crate) struct Format<K> {
    pub(crate) decoder: Arc<dyn Decode<K>>,
    /// Whether the bytes are the JSON that a narrow type retains, not the object as received.
    pub(crate) is_retained: bool,
    pub(crate) expansion: Expansion,
    pub(crate) transform: Option<Transform<K>>,
    pub(crate) memory: Arc<ObjectMemory>,
}

struct State<K> {
    decoded: Option<Decoded<K>>,
    payload: Payload,
}

/// A resident object and its share of the budget.
struct Decoded<K> {
    object: Arc<K>,
    charge: Charge,
}

/// The encoded bytes of an object. Cloning shares them.
#[derive(Clone)]
enum Payload {
    Plain(Arc<[u8]>),
    Compressed { codec: Arc<Codec>, bytes: Arc<[u8]>, plain_len: usize },
}

thread_local! {
    /// A buffer for unpacked objects, reused between reads.
    static PLAIN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The maximum capacity of a buffer that is kept for the next read.
const KEPT_PLAIN_BYTES: usize = 64 << 10;

impl EntryMetadata {
    pub(crate) fn new(identity: Identity, header: &Header, shared: Arc<SharedMetadata>) -> Self {
        let Header { generation, is_being_deleted, annotations, .. } = *header;
        Self { identity, generation, is_being_deleted, annotations, shared }
    }
}

impl Payload {
    fn len(&self) -> usize {
        match self {
            Self::Plain(bytes) | Self::Compressed { bytes, .. } => bytes.len(),
        }
    }

    fn plain_len(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Compressed { plain_len, .. } => *plain_len,
        }
    }
}

impl<K: Send + Sync + 'static> Entry<K> {
    /// Creates an entry with uncompressed bytes.
    pub(crate) fn plain(metadata: EntryMetadata, format: Arc<Format<K>>, bytes: &[u8]) -> Arc<Self> {
        Self::new(metadata, format, Payload::Plain(bytes.into()))
    }

    /// Creates an entry with bytes that `codec` has compressed from `plain_len` bytes.
    pub(crate) fn compressed(
        metadata: EntryMetadata,
        format: Arc<Format<K>>,
        codec: &Arc<Codec>,
        bytes: &[u8],
        plain_len: usize,
    ) -> Arc<Self> {
        let payload = Payload::Compressed { codec: Arc::clone(codec), bytes: bytes.into(), plain_len };
        Self::new(metadata, format, payload)
    }

    fn new(metadata: EntryMetadata, format: Arc<Format<K>>, payload: Payload) -> Arc<Self> {
        format.memory.entry_created(payload.len(), format.expansion.decoded_bytes::<K>(payload.plain_len()));
        let state = Mutex::new(State { decoded: None, payload });
        Arc::new(Self { metadata, format, residence: Residence::default(), state })
    }

    /// Compresses the bytes, unless they are compressed.
    pub(crate) fn compress(&self, codec: &Arc<Codec>, compressor: &mut Compressor) {
        let Payload::Plain(plain) = self.payload() else { return };
        let bytes: Arc<[u8]> = codec.compress(&plain, compressor).into();
        self.format.memory.recompressed(plain.len(), bytes.len());
        let payload = Payload::Compressed { codec: Arc::clone(codec), bytes, plain_len: plain.len() };
        self.state.lock().payload = payload;
    }

    /// Calls `visit` with the uncompressed bytes, if they are still uncompressed.
    pub(crate) fn visit_plain(&self, visit: impl FnOnce(&[u8])) {
        if let Payload::Plain(plain) = self.payload() {
            visit(&plain);
        }
    }

    /// Returns the decoded object if it is resident, without counting a read.
    pub(super) fn resident(&self) -> Option<Arc<K>> {
        self.state.lock().decoded.as_ref().map(|decoded| Arc::clone(&decoded.object))
    }

    /// Returns the decoded object, and decodes it if it is not resident.
    pub(super) fn get(self: &Arc<Self>, read: Read) -> Result<Arc<K>, Undecodable> {
        let memory = &self.format.memory;
        let payload = {
            let state = self.state.lock();
            if let Some(Decoded { object, .. }) = &state.decoded {
                let object = Arc::clone(object);
                drop(state);
                if read == Read::ByKey {
                    self.residence.mark_read();
                }
                memory.hit();
                return Ok(object);
            }
            state.payload.clone()
        };
        let started = memory.now();
        let object = self.decode(&payload).inspect_err(|error| memory.quarantine(self.address(), error))?;
        memory.decoded(started);
        Ok(self.admit(object, payload.plain_len(), read))
    }

    /// Makes an object that was just received resident, if it fits into the budget.
    pub(crate) fn admit_new(self: &Arc<Self>, object: Arc<K>, plain_len: usize) {
        self.admit(object, plain_len, Read::Scan);
    }

    /// Makes a decoded object resident, if the budget allows. Returns the resident object, or this one.
    fn admit(self: &Arc<Self>, object: Arc<K>, plain_len: usize, read: Read) -> Arc<K> {
        let memory = &self.format.memory;
        let (pool, bytes) = (memory.pool(), self.format.expansion.decoded_bytes::<K>(plain_len));
        if read == Read::Transient || !pool.accepts(bytes, read) {
            return object;
        }
        {
            let mut state = self.state.lock();
            if let Some(resident) = &state.decoded {
                return Arc::clone(&resident.object);
            }
            let entry: Arc<dyn Evict> = Arc::clone(self) as _;
            let Some(charge) = pool.admit(&entry, bytes) else { return object };
            memory.became_resident(bytes);
            state.decoded = Some(Decoded { object: Arc::clone(&object), charge });
        }
        pool.evict();
        object
    }

    fn decode(&self, payload: &Payload) -> Result<Arc<K>, Undecodable> {
        match payload {
            Payload::Plain(plain) => self.decode_plain(plain),
            Payload::Compressed { codec, bytes, plain_len } => {
                let mut plain = PLAIN.take();
                let object = match codec.decompress(bytes, *plain_len, &mut plain) {
                    Ok(()) => self.decode_plain(&plain),
                    Err(error) => Err(self.undecodable(QuarantineCause::Decode, &error.to_string())),
                };
                if plain.capacity() <= KEPT_PLAIN_BYTES {
                    PLAIN.set(plain);
                }
                object
            }
        }
    }

    fn decode_plain(&self, plain: &[u8]) -> Result<Arc<K>, Undecodable> {
        let object = self.format.decoder.decode(plain).map(Arc::new);
        object
            .map_err(ObjectRejection::from)
            .and_then(|object| transformed(self.format.transform.as_ref(), object))
            .map_err(|rejection| self.undecodable(rejection.cause(), rejection.reason()))
    }

    fn undecodable(&self, cause: QuarantineCause, reason: &str) -> Undecodable {
        let identity = &self.metadata.identity;
        Undecodable {
            key: identity.key().into(),
            resource_version: identity.resource_version().map(Into::into),
            cause,
            reason: reason.into(),
        }
    }
}

impl<K> Entry<K> {
    /// Returns the address of the entry, which identifies it as long as it exists.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn payload(&self) -> Payload {
        self.state.lock().payload.clone()
    }

    /// Takes the decoded object, to be dropped without the lock.
    fn take_decoded(&self) -> Option<Decoded<K>> {
        let decoded = self.state.lock().decoded.take()?;
        self.format.memory.left_residence(decoded.charge.bytes());
        Some(decoded)
    }
}

/// The ratio between the memory of a decoded object, without its fixed part, and its encoded bytes, as measured for pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expansion(usize);

impl Expansion {
    /// Returns the ratio of objects of a wide type.
    pub(crate) fn of(encoding: &Encoding) -> Self {
        Self(if matches!(encoding, Encoding::Protobuf(_)) { 10 } else { 6 })
    }

    /// Returns the ratio of what narrow types retain, which is mostly text.
    pub(crate) fn of_retained() -> Self {
        Self(2)
    }

    /// Returns an estimate of the memory of a decoded object with this number of encoded bytes.
    pub(crate) fn decoded_bytes<K>(self, encoded: usize) -> usize {
        size_of::<K>().saturating_add(encoded.saturating_mul(self.0))
    }
}

impl<K: Send + Sync + 'static> Resident for Entry<K> {
    fn residence(&self) -> &Residence {
        &self.residence
    }
}

impl<K: Send + Sync + 'static> Evict for Entry<K> {
    fn evict(&self) {
        if self.take_decoded().is_some() {
            self.format.memory.evicted();
        }
    }
}

impl<K> Drop for Entry<K> {
    fn drop(&mut self) {
        drop(self.take_decoded());
        let payload = self.payload();
        let decodable = self.format.expansion.decoded_bytes::<K>(payload.plain_len());
        self.format.memory.entry_dropped(self.address(), payload.len(), decodable);
    }
}
