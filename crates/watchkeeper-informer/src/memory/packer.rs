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
    cached::{Entry, EntryMetadata, Format, SharedMetadataTable, decoded_bytes},
    reflector::{Keep, ObjectRejection, Transform, decoded, transformed},
    sync::Mutex,
};

/// The default number of samples from which a dictionary is trained.
pub(crate) const MIN_SAMPLES: usize = 256;

/// The bytes of samples from which a dictionary is trained, whatever their number.
const MIN_SAMPLE_BYTES: usize = 1 << 20;

/// The maximum capacity of a buffer that is kept for the next object.
const KEPT_PLAIN_BYTES: usize = 64 << 10;

thread_local! {
    /// A buffer for the bytes of an object that are kept, reused between objects.
    static PLAIN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Keeps received objects as entries: their encoded bytes, and the decoded object where the budget has room.
///
/// While all objects fit into the budget, their bytes are stored uncompressed, and no dictionary is trained.
pub(crate) struct Packer<K> {
    memory: Arc<ObjectMemory>,
    transform: Option<Transform<K>>,
    state: Mutex<PackerState<K>>,
}

struct PackerState<K> {
    format: Option<Arc<Format<K>>>,
    shared: SharedMetadataTable,
    compression: Compression<K>,
}

/// The progress of compression.
enum Compression<K> {
    /// Nothing is compressed.
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
    /// Creates a packer that trains a dictionary on `min_samples` objects.
    pub(crate) fn new(
        memory: Arc<ObjectMemory>,
        transform: Option<Transform<K>>,
        min_samples: usize,
    ) -> Self {
        let compression = Compression::Plain(PlainEntries::new(min_samples));
        let state = PackerState { format: None, shared: SharedMetadataTable::default(), compression };
        Self { memory, transform, state: Mutex::new(state) }
    }

    fn pack(
        &self,
        identity: Identity,
        received: &[u8],
        decoder: &Arc<dyn Decode<K>>,
        plain: &mut Vec<u8>,
    ) -> Result<Cached<K>, ObjectRejection> {
        decoder.retain(received, plain).map_err(|error| ObjectRejection::decode(&error))?;
        let has_room = self.memory.pool().accepts(decoded_bytes::<K>(plain.len()), Read::Scan);
        // A transform may reject the object and change its metadata.
        let object = if has_room || self.transform.is_some() {
            let object = decoder.decode(plain).map_err(|error| ObjectRejection::decode(&error))?;
            Some(transformed(self.transform.as_ref(), Arc::new(object))?)
        } else {
            None
        };
        let (identity, header) = match &object {
            Some(object) => metadata_of(&**object, identity, self.transform.is_some()),
            None => (identity, decoder.header(plain).map_err(|error| ObjectRejection::decode(&error))?),
        };
        let entry = self.state.lock().entry(self, identity, &header, decoder, plain, has_room);
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
        packer: &Packer<K>,
        identity: Identity,
        header: &Header,
        decoder: &Arc<dyn Decode<K>>,
        plain: &[u8],
        has_room: bool,
    ) -> Arc<Entry<K>> {
        let metadata = EntryMetadata::new(identity, header, self.shared.share(header));
        let format = self.format(packer, decoder);
        match &mut self.compression {
            Compression::Plain(entries) => {
                let entry = Entry::plain(metadata, format, plain);
                entries.push(&entry, plain.len());
                if !has_room && entries.are_enough() {
                    self.compression = Compression::Active(Box::new(entries.compress(&packer.memory)));
                }
                entry
            }
            Compression::Active(active) => active.entry(metadata, format, plain),
        }
    }

    fn format(&mut self, packer: &Packer<K>, decoder: &Arc<dyn Decode<K>>) -> Arc<Format<K>> {
        if let Some(format) = self.format.as_ref().filter(|format| Arc::ptr_eq(&format.decoder, decoder)) {
            return Arc::clone(format);
        }
        let format = Arc::new(Format {
            decoder: Arc::clone(decoder),
            transform: packer.transform.clone(),
            memory: Arc::clone(&packer.memory),
        });
        self.format = Some(Arc::clone(&format));
        format
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
