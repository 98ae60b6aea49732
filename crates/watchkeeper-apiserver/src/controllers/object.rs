//! The metadata of an object that controllers use: location, identity, owners.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    kinds::GroupVersionKind,
    rest::{FOREGROUND, ORPHAN},
    storage::Object,
};

/// The uid of an object. An object that is created again under the same name has another uid.
pub(crate) type Uid = Arc<str>;

/// The location of an object. The namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectRef {
    /// The kind; shared, because many objects have the same kind.
    pub(crate) kind: Arc<GroupVersionKind>,
    /// The namespace of the object.
    pub(crate) namespace: Box<str>,
    /// The name of the object.
    pub(crate) name: Box<str>,
}

/// An owner reference. The uid must match as well.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// The group and version, such as `apps/v1`.
    pub(crate) api_version: Box<str>,
    /// The kind of the owner.
    pub(crate) kind: Box<str>,
    /// The name of the owner, in the namespace of the dependent or cluster-scoped.
    pub(crate) name: Box<str>,
    /// The uid of the owner.
    pub(crate) uid: Uid,
    /// Whether the dependent blocks the owner's foreground deletion.
    pub(crate) blocks: bool,
}

/// The metadata of an object that controllers decide on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The location of the object.
    pub(crate) object_ref: ObjectRef,
    /// The uid of the object.
    pub(crate) uid: Uid,
    /// The resourceVersion of this state of the object.
    pub(crate) resource_version: Box<str>,
    /// The owner references of the object.
    pub(crate) owners: Vec<Owner>,
    /// The finalizers of the object.
    pub(crate) finalizers: Vec<Box<str>>,
    /// The deletionTimestamp; none if the object is not being deleted.
    pub(crate) deletion_timestamp: Option<Box<str>>,
}

/// The dependents that an object waits for between its deletion request and its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependentWait {
    /// The object is not being deleted, or does not wait for dependents.
    Nothing,
    /// The object waits until its blocking dependents are deleted.
    DependentsDeleted,
    /// The object waits until its dependents are orphaned.
    DependentsOrphaned,
}

impl ObjectRef {
    /// Creates a reference to an object.
    pub(crate) fn new(group: &str, version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let kind =
            GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
        Self { kind: Arc::new(kind), namespace: namespace.into(), name: name.into() }
    }

    /// Returns whether the object is of this kind, in any version.
    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        self.kind.group == group && self.kind.kind == kind
    }
}

/// Returns whether two kinds are the same, ignoring the version.
pub(crate) fn is_same_kind(one: &GroupVersionKind, other: &GroupVersionKind) -> bool {
    one.kind == other.kind && one.group == other.group
}

impl Meta {
    /// Returns the metadata of `object`, an object of `kind`. None if it has no name or uid, which stored objects always
    /// have.
    pub(crate) fn of(kind: &Arc<GroupVersionKind>, object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let text = |member: &str| metadata.get(member).and_then(Value::as_str);
        let list = |member: &str| metadata.get(member).and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            object_ref: ObjectRef {
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

    /// Returns the metadata of a stored object of `kind`. Only the metadata is parsed.
    pub(crate) fn of_stored(kind: &Arc<GroupVersionKind>, object: &Object) -> Self {
        let content = &object.content;
        // Stored metadata always parses. The fallback, an object without owners, is safe because no controller acts on it.
        let read: StoredMetadata = content.metadata().unwrap_or_default();
        Self {
            object_ref: ObjectRef {
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

    /// Returns whether the object is being deleted.
    pub(crate) fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns whether the object has `finalizer`.
    pub(crate) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|one| &**one == finalizer)
    }

    /// Returns the dependents that the object waits for. Orphaning precedes deleting.
    pub(crate) fn waits_for(&self) -> DependentWait {
        if !self.is_being_deleted() {
            DependentWait::Nothing
        } else if self.has_finalizer(ORPHAN) {
            DependentWait::DependentsOrphaned
        } else if self.has_finalizer(FOREGROUND) {
            DependentWait::DependentsDeleted
        } else {
            DependentWait::Nothing
        }
    }

    /// Returns whether `owner`, in an object in `namespace`, names this object. The version is ignored.
    pub(crate) fn is_named_by(&self, owner: &Owner, namespace: &str) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.uid == self.uid
            && owner.name == self.object_ref.name
            && *owner.kind == *self.object_ref.kind.kind
            && group == self.object_ref.kind.group
            && (self.object_ref.namespace.is_empty() || *self.object_ref.namespace == *namespace)
    }
}

/// The parsed metadata of a stored object, apart from the parts that storage keeps separately.
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
