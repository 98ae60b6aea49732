//! The interface of controllers to the server they are part of.

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;

use super::{
    garbage::LiveReads,
    object::{Meta, ObjectRef, Uid},
};
use crate::{kinds::GroupVersionKind, rest::Propagation, status::ApiError, strategy::Part};

/// A kind whose objects can be listed and deleted, in its storage version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListableKind {
    /// The kind in its storage version.
    pub(crate) kind: Arc<GroupVersionKind>,
    /// The path name (plural).
    pub(crate) plural: Box<str>,
    /// Whether objects of the kind live in namespaces.
    pub(crate) is_namespaced: bool,
}

/// The parameters of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// The required uid of the object.
    pub(crate) uid: Uid,
    /// The required resourceVersion of the object, if any.
    pub(crate) resource_version: Option<Box<str>>,
    /// The propagation policy for the dependents.
    pub(crate) propagation: Propagation,
    /// Whether to delete without a grace period.
    pub(crate) is_immediate: bool,
}

/// The server's objects, with the rules that apply to every client: defaults, validation, finalizers, optimistic
/// concurrency. A read returns the state stored at that moment.
pub(crate) trait Objects: LiveReads {
    /// Returns the served kinds, each once.
    fn kinds(&self) -> Vec<ListableKind>;
    /// Returns the objects of a kind, in one namespace or in all.
    fn list(&self, kind: &Arc<GroupVersionKind>, namespace: Option<&str>) -> Vec<Meta>;
    /// Returns the number of objects of a kind.
    fn count(&self, kind: &Arc<GroupVersionKind>) -> usize;
    /// Returns the complete object at `object_ref`.
    fn read(&self, object_ref: &ObjectRef) -> Option<Value>;
    /// Creates an object.
    fn create(&self, object_ref: &ObjectRef, object: Value) -> Result<(), ApiError>;
    /// Replaces a part of an object. `object` carries the resourceVersion it was read with.
    fn replace(&self, object_ref: &ObjectRef, part: Part<'_>, object: Value) -> Result<(), ApiError>;
    /// Applies a configuration as `manager`, taking its fields over from other managers.
    fn apply(&self, object_ref: &ObjectRef, manager: &str, configuration: Value) -> Result<(), ApiError>;
    /// Deletes an object.
    fn delete(&self, object_ref: &ObjectRef, deletion: &Deletion) -> Result<(), ApiError>;
    /// Restores the objects that the server publishes about itself. Returns false if this must be retried.
    fn publish(&self) -> bool;
    /// Returns the date.
    fn now(&self) -> SystemTime;
}

/// A change of an object or of the server.
#[derive(Debug, Clone)]
pub(crate) enum ServerEvent {
    /// An object was created or changed.
    Observed(Meta),
    /// An object was deleted. Carries the last state.
    Deleted(Meta),
    /// The history of a kind was trimmed before it was read. Carries the current objects of the kind.
    Relisted(Arc<GroupVersionKind>, Vec<Meta>),
    /// The served kinds changed.
    Kinds,
    /// The certificate authorities of the server changed. Carries them in PEM.
    CertificateAuthority(Arc<str>),
}

/// The result of a controller's write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// The write succeeded.
    Done,
    /// The object does not exist, or another object has its name.
    Absent,
    /// The write conflicted with another one or was rejected, and should be retried.
    Failed,
}

impl WriteOutcome {
    /// Maps the response of a write to its result. A rejection is logged, because the server's own controllers do not expect
    /// any.
    pub(crate) fn of(result: Result<(), ApiError>, object_ref: &ObjectRef) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(error) if error.code == 404 => Self::Absent,
            Err(error) if error.reason == "Conflict" => Self::Failed,
            Err(error) => {
                tracing::debug!(
                    kind = object_ref.kind.kind,
                    namespace = &*object_ref.namespace,
                    name = &*object_ref.name,
                    reason = error.reason,
                    code = error.code,
                    "controller write rejected; retrying",
                );
                Self::Failed
            }
        }
    }
}
