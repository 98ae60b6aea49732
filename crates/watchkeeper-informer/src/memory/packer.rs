//! Received objects on their way into the cache: kept decoded, encoded, or both.

use std::{
    cell::Cell,
    sync::{Arc, Weak},
};

use watchkeeper_client::{
    decode::{Decode, Header, Identity},
    list_watch::ReceivedItem,
};

use super::{
    Codec, Compressor, ObjectMemory, Read,
    dictionary::{
        renewal::{Advice, Renewal, RenewalOptions},
        trainer::{Trainer, TrainerOptions},
    },
};
use crate::{
    Cached, Object,
    cached::{Entry, EntryMetadata, Expansion, Format, SharedMetadataTable},
    reflector::{Keep, ObjectRejection, Transform, decoded, transformed},
    sync::Mutex,
};

/// The settings of a [`Packer`], which tests with few objects change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackerOptions {
    /// The number of objects on which a dictionary is trained. Defaults to 256.
    pub(crate) min_samples: usize,
    /// The number of objects that are decoded to find out how much of them their type reads. Defaults to 8. Zero for a type
    /// that reads all of them.
    pub(crate) measured_objects: u32,
}

impl Default for PackerOptions {
    fn default() -> Self {
        Self { min_samples: 256, measured_objects: 8 }
    }
}

/// The bytes of samples from which a dictionary is trained, whatever their number.
const MIN_SAMPLE_BYTES: usize = 1 << 20;

/// The maximum capacity of a buffer that is kept for the next object.
const KEPT_PLAIN_BYTES: usize = 64 << 10;

thread_local! {
    /// A buffer for the bytes of an object that are kept, reused between objects.
    static PLAIN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Keeps received objects as entries: their encoded bytes, and the decoded object if it fits into the budget.
///
/// While all objects fit into the budget, their bytes are stored uncompressed, and no dictionary is trained.
pub(crate) struct Packer<K> {
    memory: Arc<ObjectMemory>,
    transform: Option<Transform<K>>,
    state: Mutex<PackerState<K>>,
}

struct PackerState<K> {
    /// The format of the last object, and the decoder that it was received with.
    format: Option<LastFormat<K>>,
    width: Width,
    shared: SharedMetadataTable,
    compression: Compression<K>,
}

struct LastFormat<K> {
    received_with: Arc<dyn Decode<K>>,
    format: Arc<Format<K>>,
}

/// The progress of compression.
enum Compression<K> {
    /// The bytes of all entries are uncompressed.
    Plain(PlainEntries<K>),
    /// New objects are compressed.
    Active(Box<ActiveCompression>),
}

/// The entries whose bytes are not compressed.
struct PlainEntries<K> {
    min_samples: usize,
    entries: Vec<Weak<Entry<K>>>,
    bytes: usize,
    /// The number of entries at which dropped ones are removed.
    sweep_at: usize,
}

struct ActiveCompression {
    codec: Arc<Codec>,
    compressor: Compressor,
    renewal: Renewal,
    /// The samples for the next dictionary, while it is being renewed.
    trainer: Option<Trainer>,
    /// The seed of the next trainer.
    seed: u64,
}

impl<K: Object> Packer<K> {
    /// Creates a packer.
    pub(crate) fn new(
        memory: Arc<ObjectMemory>,
        transform: Option<Transform<K>>,
        options: PackerOptions,
    ) -> Self {
        let compression = Compression::Plain(PlainEntries::new(options.min_samples.max(1)));
        let width = Width::new(options.measured_objects);
        let state = PackerState { format: None, width, shared: SharedMetadataTable::default(), compression };
        Self { memory, transform, state: Mutex::new(state) }
    }

    fn pack(
        &self,
        identity: Identity,
        received: &[u8],
        decoder: &Arc<dyn Decode<K>>,
        plain: &mut Vec<u8>,
    ) -> Result<Cached<K>, ObjectRejection> {
        let width = self.state.lock().width;
        let object = match width {
            Width::Narrow => Some(decoder.decode_retaining(received, plain).map_err(ObjectRejection::from)?),
            Width::Unknown(measured) => {
                let object = decoder.decode_retaining(received, plain).map_err(ObjectRejection::from)?;
                let retained = plain.len();
                plain.clear();
                decoder.retain(received, plain).map_err(ObjectRejection::from)?;
                self.state.lock().width = measured.and(retained, plain.len());
                Some(object)
            }
            Width::Wide => {
                decoder.retain(received, plain).map_err(ObjectRejection::from)?;
                None
            }
        };
        let bytes = expansion(decoder, width).decoded_bytes::<K>(plain.len());
        let has_room = self.memory.pool().accepts(bytes, Read::Scan);
        let object = match object {
            // A transform may reject the object and change its metadata.
            None if has_room || self.transform.is_some() => {
                Some(decoder.decode(plain).map_err(ObjectRejection::from)?)
            }
            object => object,
        };
        let object =
            object.map(|object| transformed(self.transform.as_ref(), Arc::new(object))).transpose()?;
        let (identity, header) = match &object {
            Some(object) => metadata_of(&**object, identity, self.transform.is_some()),
            None => (identity, decoder.header(plain).map_err(ObjectRejection::from)?),
        };
        let entry = {
            let mut state = self.state.lock();
            let format = state.format(self, decoder, width);
            state.entry(identity, &header, format, plain, has_room)
        };
        if let Some(object) = object.filter(|_| has_room) {
            entry.admit_new(object, plain.len());
        }
        Ok(Cached::from(entry))
    }
}

impl<K: Object> Keep<K> for Packer<K> {
    fn keep(&self, item: ReceivedItem<K>) -> Result<Cached<K>, ObjectRejection> {
        self.memory.pool().observe(self.memory.now());
        let (Some(received), Some(decoder)) = (item.bytes(), item.decoder()) else {
            return transformed(self.transform.as_ref(), decoded(item)?).map(Cached::from);
        };
        if !decoder.can_retain() {
            return transformed(self.transform.as_ref(), decoded(item)?).map(Cached::from);
        }
        let mut plain = PLAIN.take();
        plain.clear();
        let kept = self.pack(item.identity().clone(), received, decoder, &mut plain);
        if plain.capacity() <= KEPT_PLAIN_BYTES {
            PLAIN.set(plain);
        }
        kept
    }
}

fn expansion<K>(decoder: &Arc<dyn Decode<K>>, width: Width) -> Expansion {
    match width {
        Width::Narrow => Expansion::of_retained(),
        Width::Unknown(_) | Width::Wide => Expansion::of(&decoder.encoding()),
    }
}

/// Returns the metadata of a decoded object. A transform may have changed it.
fn metadata_of<K: Object>(object: &K, received: Identity, is_transformed: bool) -> (Identity, Header) {
    let meta = object.meta();
    let header = Header::of(meta);
    if !is_transformed {
        return (received, header);
    }
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    let identity = Identity::new(
        received.namespace().unwrap_or_default(),
        received.name(),
        &text(&meta.uid),
        &text(&meta.resource_version),
    );
    (identity, header)
}

impl<K: Object> PackerState<K> {
    fn entry(
        &mut self,
        identity: Identity,
        header: &Header,
        format: Arc<Format<K>>,
        plain: &[u8],
        has_room: bool,
    ) -> Arc<Entry<K>> {
        let metadata = EntryMetadata::new(identity, header, self.shared.share(header));
        match &mut self.compression {
            Compression::Plain(entries) => {
                let memory = Arc::clone(&format.memory);
                let entry = Entry::plain(metadata, format, plain);
                entries.push(&entry, plain.len());
                if !has_room && entries.are_enough() {
                    self.compression = Compression::Active(Box::new(entries.compress(&memory)));
                }
                entry
            }
            Compression::Active(active) => active.entry(metadata, format, plain),
        }
    }

    /// Returns the format of bytes that were received with this decoder, or of what a narrow type retains of them.
    fn format(&mut self, packer: &Packer<K>, decoder: &Arc<dyn Decode<K>>, width: Width) -> Arc<Format<K>> {
        let is_retained = matches!(width, Width::Narrow);
        if let Some(LastFormat { received_with, format }) = &self.format
            && Arc::ptr_eq(received_with, decoder)
            && format.is_retained == is_retained
        {
            return Arc::clone(format);
        }
        let retained = if is_retained { decoder.retained_decoder() } else { None };
        let format = Arc::new(Format {
            decoder: retained.unwrap_or_else(|| Arc::clone(decoder)),
            is_retained,
            expansion: expansion(decoder, width),
            transform: packer.transform.clone(),
            memory: Arc::clone(&packer.memory),
        });
        self.format = Some(LastFormat { received_with: Arc::clone(decoder), format: Arc::clone(&format) });
        format
    }
}

/// The share of the objects that their type reads.
#[derive(Debug, Clone, Copy)]
enum Width {
    /// The first objects are being measured.
    Unknown(Measured),
    /// The type reads less than half of the objects. The rest is not kept.
    Narrow,
    /// The type reads most of the objects, so they need not be decoded to be kept.
    Wide,
}

impl Width {
    fn new(measured_objects: u32) -> Self {
        match measured_objects {
            0 => Self::Wide,
            missing => Self::Unknown(Measured { missing, retained: 0, plain: 0 }),
        }
    }
}

/// The bytes of the first objects, and those that the type reads.
#[derive(Debug, Clone, Copy)]
struct Measured {
    /// The number of objects that have not been measured.
    missing: u32,
    retained: usize,
    plain: usize,
}

impl Measured {
    /// Adds an object.
    fn and(self, retained: usize, plain: usize) -> Width {
        let measured = Self {
            missing: self.missing.saturating_sub(1),
            retained: self.retained.saturating_add(retained),
            plain: self.plain.saturating_add(plain),
        };
        if measured.missing > 0 {
            Width::Unknown(measured)
        } else if measured.retained < measured.plain / 2 {
            Width::Narrow
        } else {
            Width::Wide
        }
    }
}

impl<K> PlainEntries<K> {
    fn new(min_samples: usize) -> Self {
        Self { min_samples, entries: Vec::new(), bytes: 0, sweep_at: min_samples }
    }
}

impl<K: Object> PlainEntries<K> {
    fn push(&mut self, entry: &Arc<Entry<K>>, bytes: usize) {
        if self.entries.len() >= self.sweep_at {
            // A weak reference keeps the memory of an entry allocated.
            self.entries.retain(|entry| entry.strong_count() > 0);
            self.sweep_at = (2 * self.entries.len()).max(self.min_samples);
        }
        self.entries.push(Arc::downgrade(entry));
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn are_enough(&self) -> bool {
        self.entries.len() >= self.min_samples || self.bytes >= MIN_SAMPLE_BYTES
    }

    /// Trains a dictionary on the entries and compresses them.
    fn compress(&mut self, memory: &ObjectMemory) -> ActiveCompression {
        let entries: Vec<_> = self.entries.drain(..).filter_map(|entry| entry.upgrade()).collect();
        let mut trainer = Trainer::new(TrainerOptions::default(), 0);
        for entry in &entries {
            entry.visit_plain(|plain| trainer.offer(plain));
        }
        let mut active = ActiveCompression {
            codec: Arc::new(trainer.train()),
            compressor: Compressor::new(),
            renewal: Renewal::new(RenewalOptions::default()),
            trainer: None,
            seed: 1,
        };
        memory.trained();
        for entry in entries {
            entry.compress(&active.codec, &mut active.compressor);
        }
        active
    }
}

impl ActiveCompression {
    fn entry<K: Object>(
        &mut self,
        metadata: EntryMetadata,
        format: Arc<Format<K>>,
        plain: &[u8],
    ) -> Arc<Entry<K>> {
        let memory = Arc::clone(&format.memory);
        let packed = self.codec.compress(plain, &mut self.compressor);
        memory.compressed(plain.len(), packed.len());
        if let Advice::Collect = self.renewal.record(plain.len(), packed.len()) {
            self.trainer = Some(Trainer::new(TrainerOptions::default(), self.seed));
        }
        let entry = Entry::compressed(metadata, format, &self.codec, &packed, plain.len());
        if let Some(trainer) = &mut self.trainer {
            trainer.offer(plain);
            if trainer.is_complete()
                && let Some(trainer) = self.trainer.take()
            {
                self.codec = Arc::new(trainer.train());
                self.seed += 1;
                self.renewal.renewed();
                memory.trained();
            }
        }
        entry
    }
}
