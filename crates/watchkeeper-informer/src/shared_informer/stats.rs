//! An informer in numbers.

use std::{collections::BTreeMap, sync::Arc};

use crate::{ResourceVersion, status::CountersSnapshot};

/// What an informer has done and how it stands, in numbers, as it was when asked: ready to be exported as
/// metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InformerStats {
    /// Objects in the cache.
    pub objects: usize,
    /// The version up to which nothing is missing from the cache.
    pub resource_version: Option<ResourceVersion>,
    /// How often the server's history began anew.
    pub epoch: u64,
    /// Keys with changes that are read and not yet in the cache.
    pub queued_keys: usize,
    /// Those changes.
    pub queued_changes: usize,
    /// Handlers, those included whose last call has not returned. How each is doing, its
    /// [`Registration`](crate::processor::Registration) tells.
    pub handlers: usize,
    /// Lists, watches, events and failures of each source: by namespace, or under none if there is one source
    /// for all.
    pub sources: BTreeMap<Option<Arc<str>>, CountersSnapshot>,
}
