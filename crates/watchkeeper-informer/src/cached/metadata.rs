//! Borrowed metadata of a cached object.

use std::fmt;

use kube_core::{Expression, ObjectMeta, Selector};
use watchkeeper_client::decode::Header;

use super::entry::EntryMetadata;

/// The metadata of a cached object, borrowed without decoding the object.
///
/// As in the Kubernetes API, empty strings count as absent. Annotations are not included, because they can be large:
/// [`Cached::get`](super::Cached::get) returns the whole object, and
/// [`has_same_annotations`](Self::has_same_annotations) compares them.
#[derive(Clone, Copy)]
pub struct MetadataRef<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Object(&'a ObjectMeta),
    Entry(&'a EntryMetadata),
}

/// An owner of a cached object, borrowed from its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerRef<'a> {
    /// The `apiVersion` of the owner.
    pub api_version: &'a str,
    /// The kind of the owner.
    pub kind: &'a str,
    /// The name of the owner.
    pub name: &'a str,
    /// The uid of the owner.
    pub uid: &'a str,
    /// Whether the owner is the controller of the object.
    pub is_controller: bool,
}

impl<'a> MetadataRef<'a> {
    pub(crate) fn of(metadata: &'a ObjectMeta) -> Self {
        Self(Source::Object(metadata))
    }

    pub(super) fn of_entry(metadata: &'a EntryMetadata) -> Self {
        Self(Source::Entry(metadata))
    }

    /// Returns the name. Empty if the object has none.
    pub fn name(self) -> &'a str {
        match self.0 {
            Source::Object(metadata) => metadata.name.as_deref().unwrap_or_default(),
            Source::Entry(metadata) => metadata.identity.name(),
        }
    }

    /// Returns the namespace, or `None` for cluster-scoped objects.
    pub fn namespace(self) -> Option<&'a str> {
        match self.0 {
            Source::Object(metadata) => present(metadata.namespace.as_deref()),
            Source::Entry(metadata) => metadata.identity.namespace(),
        }
    }

    /// Returns the uid, which distinguishes an object from an earlier one of the same name.
    pub fn uid(self) -> Option<&'a str> {
        match self.0 {
            Source::Object(metadata) => present(metadata.uid.as_deref()),
            Source::Entry(metadata) => metadata.identity.uid(),
        }
    }

    /// Returns the resourceVersion, as text.
    pub fn resource_version(self) -> Option<&'a str> {
        match self.0 {
            Source::Object(metadata) => present(metadata.resource_version.as_deref()),
            Source::Entry(metadata) => metadata.identity.resource_version(),
        }
    }

    /// Returns the generation, which increases with each change of the desired state. Some kinds have none.
    pub fn generation(self) -> Option<i64> {
        match self.0 {
            Source::Object(metadata) => metadata.generation,
            Source::Entry(metadata) => metadata.generation,
        }
    }

    /// Returns whether the object has a deletion timestamp: it is being deleted, and waits for finalizers or a grace
    /// period.
    pub fn is_being_deleted(self) -> bool {
        match self.0 {
            Source::Object(metadata) => metadata.deletion_timestamp.is_some(),
            Source::Entry(metadata) => metadata.is_being_deleted,
        }
    }

    /// Returns the value of a label.
    pub fn label(self, key: &str) -> Option<&'a str> {
        match self.0 {
            Source::Object(metadata) => metadata.labels.as_ref()?.get(key).map(String::as_str),
            Source::Entry(metadata) => {
                metadata.shared.labels().find(|(name, _)| *name == key).map(|(_, value)| value)
            }
        }
    }

    /// Returns an iterator over the labels, sorted by key.
    pub fn labels(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (object, entry) = self.sources();
        let of_object = object.and_then(|metadata| metadata.labels.as_ref()).into_iter().flatten();
        let of_object = of_object.map(|(key, value)| (key.as_str(), value.as_str()));
        of_object.chain(entry.into_iter().flat_map(|metadata| metadata.shared.labels()))
    }

    /// Returns an iterator over the finalizers.
    pub fn finalizers(self) -> impl Iterator<Item = &'a str> {
        let (object, entry) = self.sources();
        let of_object = object.and_then(|metadata| metadata.finalizers.as_ref()).into_iter().flatten();
        let of_object = of_object.map(String::as_str);
        of_object.chain(entry.into_iter().flat_map(|metadata| metadata.shared.finalizers()))
    }

    /// Returns an iterator over the owners.
    pub fn owner_references(self) -> impl Iterator<Item = OwnerRef<'a>> {
        let (object, entry) = self.sources();
        let of_object = object.and_then(|metadata| metadata.owner_references.as_ref()).into_iter().flatten();
        let of_object = of_object.map(|owner| OwnerRef {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
            uid: &owner.uid,
            is_controller: owner.controller == Some(true),
        });
        of_object.chain(entry.into_iter().flat_map(|metadata| metadata.shared.owners()))
    }

    /// Returns whether both objects have the same annotations. Packed objects are compared by a digest of 64 bits.
    pub fn has_same_annotations(self, other: MetadataRef<'_>) -> bool {
        match (self.0, other.0) {
            (Source::Object(one), Source::Object(other)) => {
                one.annotations.iter().flatten().eq(other.annotations.iter().flatten())
            }
            _ => self.annotations_digest() == other.annotations_digest(),
        }
    }

    fn annotations_digest(self) -> u64 {
        match self.0 {
            Source::Object(metadata) => Header::of(metadata).annotations,
            Source::Entry(metadata) => metadata.annotations,
        }
    }

    /// Returns the source of the metadata, which is one of both.
    fn sources(self) -> (Option<&'a ObjectMeta>, Option<&'a EntryMetadata>) {
        match self.0 {
            Source::Object(metadata) => (Some(metadata), None),
            Source::Entry(metadata) => (None, Some(metadata)),
        }
    }
}

fn present(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// A label selector that is evaluated on borrowed metadata, without decoding objects.
///
/// ```
/// use kube_core::{Expression, Selector};
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper_informer::{Cached, LabelFilter};
///
/// let filter = LabelFilter::from(Selector::from(Expression::DoesNotExist("hidden".into())));
/// assert!(filter.matches(Cached::from(Pod::default()).metadata()));
/// ```
#[derive(Debug, Clone)]
pub struct LabelFilter(Vec<Expression>);

impl From<Selector> for LabelFilter {
    fn from(selector: Selector) -> Self {
        Self(selector.into_iter().collect())
    }
}

impl LabelFilter {
    /// Returns whether the labels of an object match the selector.
    pub fn matches(&self, metadata: MetadataRef<'_>) -> bool {
        self.0.iter().all(|expression| match expression {
            Expression::In(key, values) => metadata.label(key).is_some_and(|value| values.contains(value)),
            Expression::NotIn(key, values) => {
                !metadata.label(key).is_some_and(|value| values.contains(value))
            }
            Expression::Equal(key, value) => metadata.label(key) == Some(value),
            Expression::NotEqual(key, value) => metadata.label(key) != Some(value),
            Expression::Exists(key) => metadata.label(key).is_some(),
            Expression::DoesNotExist(key) => metadata.label(key).is_none(),
        })
    }
}

impl fmt::Debug for MetadataRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataRef")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("resource_version", &self.resource_version())
            .finish_non_exhaustive()
    }
}
