//! Samples, and the training of a dictionary.

use super::codec::Codec;

/// The limits of a [`Trainer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrainerOptions {
    /// The maximum number of samples. Defaults to 512.
    pub(crate) samples: usize,
    /// The maximum sum of their lengths, in bytes. Defaults to 3 MiB.
    pub(crate) sample_bytes: usize,
    /// The number of objects among which the samples are selected. Defaults to 4,096.
    pub(crate) observed: usize,
    /// The maximum length of the dictionary, in bytes. Defaults to 32 KiB.
    pub(crate) dictionary_bytes: usize,
}

impl Default for TrainerOptions {
    fn default() -> Self {
        Self { samples: 512, sample_bytes: 3 << 19, observed: 4096, dictionary_bytes: 32 << 10 }
    }
}

/// The length of the part of an object that is a sample. Repeated fields occur in it.
const SAMPLE_BYTES: usize = 32 << 10;

/// The samples are at least this many times longer than the dictionary. A dictionary that is longer in proportion is
/// fitted to its samples, and compresses other objects at a third of the ratio.
const SAMPLES_PER_DICTIONARY: usize = 8;

/// The smallest number of samples that zstd accepts.
const MIN_SAMPLES: usize = 8;

/// The samples of a collection, in bounded memory, from which a dictionary is trained.
///
/// The first half of the samples are the first objects, so that a small collection has a dictionary as well. The second
/// half is a uniform sample of the objects after them ("reservoir"), because a list is sorted and its first objects
/// resemble each other. The choice depends on the seed and the objects only.
///
/// The memory is at most [`TrainerOptions::sample_bytes`], and the dictionary.
#[derive(Debug)]
pub(crate) struct Trainer {
    options: TrainerOptions,
    samples: Vec<Box<[u8]>>,
    bytes: usize,
    observed: usize,
    rng: fastrand::Rng,
}

impl Trainer {
    /// Returns a trainer without samples.
    pub(crate) fn new(options: TrainerOptions, seed: u64) -> Self {
        Self { options, samples: Vec::new(), bytes: 0, observed: 0, rng: fastrand::Rng::with_seed(seed) }
    }

    /// Offers an object as a sample. Ignored when the trainer is [complete](Self::is_complete).
    pub(crate) fn offer(&mut self, plain: &[u8]) {
        if plain.is_empty() || self.is_complete() {
            return;
        }
        self.observed += 1;
        let sample = &plain[..plain.len().min(SAMPLE_BYTES)];
        let fits = self.bytes + sample.len() <= self.options.sample_bytes;
        if fits && self.samples.len() < self.options.samples {
            self.bytes += sample.len();
            self.samples.push(sample.into());
            return;
        }
        let fixed = self.samples.len() / 2;
        let Some(slot) = self.reservoir_slot(fixed) else { return };
        let replaced = self.samples[slot].len();
        if self.bytes - replaced + sample.len() <= self.options.sample_bytes {
            self.bytes = self.bytes - replaced + sample.len();
            self.samples[slot] = sample.into();
        }
    }

    /// Returns the sample that the current object replaces, if it becomes one (algorithm R).
    fn reservoir_slot(&mut self, fixed: usize) -> Option<usize> {
        let drawn = fixed + self.rng.usize(..self.observed.saturating_sub(fixed).max(1));
        (drawn < self.samples.len()).then_some(drawn)
    }

    /// Returns whether further objects are ignored.
    pub(crate) fn is_complete(&self) -> bool {
        self.observed >= self.options.observed
    }

    /// Returns the number of samples.
    #[cfg(test)]
    pub(crate) fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Returns the bytes that the samples occupy.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + self.samples.capacity() * size_of::<Box<[u8]>>()
    }

    /// Trains a dictionary and returns the codec that uses it.
    ///
    /// This takes about 50 ms of CPU with the default limits. It happens once for a cache that exceeds its budget, and when
    /// the dictionary is renewed. The codec has no dictionary if the samples are fewer than eight, too short, too similar,
    /// or too large for a dictionary to shorten them.
    pub(crate) fn train(self) -> Codec {
        self.dictionary().map_or_else(Codec::without_dictionary, |bytes| Codec::with_dictionary(&bytes))
    }

    fn dictionary(self) -> Option<Vec<u8>> {
        let longest = self.options.dictionary_bytes.min(self.bytes / SAMPLES_PER_DICTIONARY);
        let has_small_objects = self.bytes / self.samples.len().max(1) <= self.options.dictionary_bytes / 2;
        if self.samples.len() < MIN_SAMPLES || longest == 0 || !has_small_objects {
            return None;
        }
        let lengths: Vec<usize> = self.samples.iter().map(|sample| sample.len()).collect();
        let mut contents = Vec::with_capacity(self.bytes);
        for sample in self.samples {
            contents.extend_from_slice(&sample);
        }
        zstd::dict::from_continuous(&contents, &lengths, longest).ok().filter(|bytes| !bytes.is_empty())
    }
}

#[cfg(test)]
mod tests;
