//! What controllers look at in an object: where it is, who it is, whose it is.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::{kinds::GroupVersionKind, storage::Object};

/// The name of one life of an object: an object created again under the same name has another.
pub(crate) type Uid = Arc<str>;

/// Keeps an owner until the dependents that block it are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until its dependents no longer refer to it.
pub(crate) const ORPHAN: &str = "orphan";

/// Where an object is. The namespace is empty for kinds that live in none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Its kind; shared, since there are many objects of few kinds.
    pub(crate) kind: Arc<GroupVersionKind>,
    /// Its namespace.
    pub(crate) namespace: Box<str>,
    /// Its name.
    pub(crate) name: Box<str>,
}

/// An owner as a dependent names it. It is the owner only if the uid is right as well.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// Group and version, such as `apps/v1`.
    pub(crate) api_version: Box<str>,
    /// Its kind.
    pub(crate) kind: Box<str>,
    /// Its name, in the namespace of the dependent or in none.
    pub(crate) name: Box<str>,
    /// Its uid.
    pub(crate) uid: Uid,
    /// The owner's foreground deletion waits for this dependent.
    pub(crate) blocks: bool,
}

/// The metadata of an object that decides what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Where it is.
    pub(crate) place: Place,
    /// Which one it is.
    pub(crate) uid: Uid,
    /// Which state of it this is.
    pub(crate) resource_version: Box<str>,
    /// Whose it is.
    pub(crate) owners: Vec<Owner>,
    /// What keeps it once it is deleted.
    pub(crate) finalizers: Vec<Box<str>>,
    /// When it is, or was, to be gone; set by its deletion.
    pub(crate) deletion_timestamp: Option<Box<str>>,
}

/// What an object is waiting for between its deletion and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It is not being deleted, or on nobody here.
    Nothing,
    /// The dependents that block it.
    DependentsGone,
    /// Dependents that let go of it.
    DependentsOrphaned,
}

impl Place {
    /// The place of an object of a kind that is known by name.
    pub(crate) fn new(group: &str, version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let kind =
            GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
        Self { kind: Arc::new(kind), namespace: namespace.into(), name: name.into() }
    }

    /// It is an object of this kind, in any version.
    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        self.kind.group == group && self.kind.kind == kind
    }
}

/// The same kind, in whatever versions.
pub(crate) fn is_same_kind(one: &GroupVersionKind, other: &GroupVersionKind) -> bool {
    one.kind == other.kind && one.group == other.group
}

impl Meta {
    /// The metadata of `object`, an object of `kind`; none when it has no name or uid, as stored objects always do.
    pub(crate) fn of(kind: &Arc<GroupVersionKind>, object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let text = |member: &str| metadata.get(member).and_then(Value::as_str);
        let list = |member: &str| metadata.get(member).and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            place: Place {
                kind: Arc::clone(kind),
                namespace: text("namespace").unwrap_or_default().into(),
                name: text("name")?.into(),
            },
            uid: text("uid")?.into(),
            resource_version: text("resourceVersion").unwrap_or_default().into(),
            owners: list("ownerReferences").filter_map(Owner::of).collect(),
            finalizers: list("finalizers").filter_map(Value::as_str).map(Into::into).collect(),
            deletion_timestamp: text("deletionTimestamp").map(Into::into),
        })
    }

    /// The metadata of a stored object of `kind`. Only its metadata is read.
    pub(crate) fn of_stored(kind: &Arc<GroupVersionKind>, object: &Object) -> Self {
        let content = &object.content;
        // What the server has stored reads back; were it not so, an object without owners is one nobody touches.
        let read: StoredMetadata = content.metadata().unwrap_or_default();
        Self {
            place: Place {
                kind: Arc::clone(kind),
                namespace: content.namespace.clone(),
                name: content.name.clone(),
            },
            uid: (*content.uid).into(),
            resource_version: object.version.to_string().into(),
            owners: read.owner_references.iter().filter_map(Owner::of).collect(),
            finalizers: read.finalizers,
            deletion_timestamp: read.deletion_timestamp,
        }
    }

    /// It has been deleted and something still keeps it.
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// One of its finalizers is `finalizer`.
    pub(crate) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|one| &**one == finalizer)
    }

    /// What it is waiting for. Letting dependents go comes before deleting them.
    pub(crate) fn waits_for(&self) -> Wait {
        if !self.is_being_deleted() {
            Wait::Nothing
        } else if self.has_finalizer(ORPHAN) {
            Wait::DependentsOrphaned
        } else if self.has_finalizer(FOREGROUND) {
            Wait::DependentsGone
        } else {
            Wait::Nothing
        }
    }

    /// `owner`, as an object in `namespace` has it, names this object in all but the version.
    pub(crate) fn is_named_by(&self, owner: &Owner, namespace: &str) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.uid == self.uid
            && owner.name == self.place.name
            && *owner.kind == *self.place.kind.kind
            && group == self.place.kind.group
            && (self.place.namespace.is_empty() || *self.place.namespace == *namespace)
    }
}

/// What is read of the metadata of a stored object, beside what storage knows itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StoredMetadata {
    owner_references: Vec<Value>,
    finalizers: Vec<Box<str>>,
    deletion_timestamp: Option<Box<str>>,
}

impl Owner {
    fn of(reference: &Value) -> Option<Self> {
        let text = |member: &str| reference.get(member).and_then(Value::as_str);
        Some(Self {
            api_version: text("apiVersion").unwrap_or_default().into(),
            kind: text("kind").unwrap_or_default().into(),
            name: text("name").unwrap_or_default().into(),
            uid: text("uid")?.into(),
            blocks: reference.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or_default(),
        })
    }
}
