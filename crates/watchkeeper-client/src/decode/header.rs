//! The metadata of an object that is readable without decoding.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;

/// The metadata of an object that is read without decoding the object.
///
/// The same object has the same header in every encoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// The generation of the spec; `None` if the server does not count generations of this kind.
    pub generation: Option<i64>,
    /// Whether the object has a deletionTimestamp.
    pub is_being_deleted: bool,
    /// The labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// The finalizers, in the order of the object.
    pub finalizers: Vec<Box<str>>,
    /// The owner references, in the order of the object.
    pub owners: Vec<OwnerHeader>,
    /// A digest of the annotations, for comparison with another version of the object. 0 without annotations.
    ///
    /// The digest does not depend on the order of the annotations. It is stable within one process only.
    pub annotations: u64,
}

/// An owner reference of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerHeader {
    /// The `apiVersion` of the owner.
    pub api_version: Box<str>,
    /// The kind of the owner.
    pub kind: Box<str>,
    /// The name of the owner.
    pub name: Box<str>,
    /// The uid of the owner.
    pub uid: Box<str>,
    /// Whether the owner is the managing controller.
    pub is_controller: bool,
}

impl Header {
    /// Adds an annotation to the digest.
    pub(crate) fn add_annotation(&mut self, key: &str, value: &str) {
        let hash = FixedState::default().hash_one((key, value));
        self.annotations = self.annotations.wrapping_add(hash);
    }

    /// Sorts the labels. Of labels with the same key, the last one remains.
    pub(crate) fn sort_labels(&mut self) {
        self.labels.reverse();
        self.labels.sort_by(|one, other| one.0.cmp(&other.0));
        self.labels.dedup_by(|later, earlier| later.0 == earlier.0);
    }
}
