//! What controllers need of the server they are part of.

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;

use super::{
    garbage::{Live, Propagation},
    object::{Meta, Place, Uid},
};
use crate::{kinds::GroupVersionKind, status::ApiError, strategy::Part};

/// A kind whose objects can be listed and deleted, in the version they are stored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    /// The kind.
    pub(crate) kind: Arc<GroupVersionKind>,
    /// The name in paths.
    pub(crate) plural: Box<str>,
    /// Its objects live in namespaces.
    pub(crate) is_namespaced: bool,
}

/// What a deletion asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// The object must be this one.
    pub(crate) uid: Uid,
    /// It must be in this state.
    pub(crate) resource_version: Option<Box<str>>,
    /// What becomes of its dependents.
    pub(crate) propagation: Propagation,
    /// It need not be given time to stop.
    pub(crate) is_immediate: bool,
}

/// The server's objects, read and written under the rules every client meets: defaults, validation, finalizers,
/// optimistic concurrency. A read is of what is stored at that moment.
pub(crate) trait Objects: Live {
    /// What is served, each kind once.
    fn kinds(&self) -> Vec<Served>;
    /// The objects of a kind, in one namespace or in all.
    fn list(&self, kind: &Arc<GroupVersionKind>, namespace: Option<&str>) -> Vec<Meta>;
    /// How many objects of a kind there are.
    fn count(&self, kind: &Arc<GroupVersionKind>) -> usize;
    /// The whole object at `place`.
    fn read(&self, place: &Place) -> Option<Value>;
    /// Creates an object.
    fn create(&self, place: &Place, object: Value) -> Result<(), ApiError>;
    /// Replaces a part of an object; `object` carries the resourceVersion it was read with.
    fn replace(&self, place: &Place, part: Part<'_>, object: Value) -> Result<(), ApiError>;
    /// Applies a configuration as `manager` and takes its fields over from other managers.
    fn apply(&self, place: &Place, manager: &str, configuration: Value) -> Result<(), ApiError>;
    /// Deletes an object.
    fn delete(&self, place: &Place, deletion: &Deletion) -> Result<(), ApiError>;
    /// Restores the objects the server makes about itself; false if that has to be tried again.
    fn publish(&self) -> bool;
    /// The date.
    fn now(&self) -> SystemTime;
}

/// Something that happened to an object or to the server.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// An object is new or has changed.
    Seen(Meta),
    /// An object is gone; this is the last of it.
    Gone(Meta),
    /// So much happened to a kind that only its present objects are known.
    Relisted(Arc<GroupVersionKind>, Vec<Meta>),
    /// Other kinds are served than before.
    Kinds,
    /// The server is vouched for by these authorities, in PEM.
    Trusted(Arc<str>),
}

/// How a write went, as far as a controller cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is done.
    Done,
    /// The object is not there, or another one is.
    Absent,
    /// Something else was written first, or the server refused: try again.
    Failed,
}

impl Written {
    /// What the answer to a write means. A refusal is logged: it is not expected of the server's own controllers.
    pub(crate) fn of(answer: Result<(), ApiError>, place: &Place) -> Self {
        match answer {
            Ok(()) => Self::Done,
            Err(error) if error.code == 404 => Self::Absent,
            Err(error) if error.reason == "Conflict" => Self::Failed,
            Err(error) => {
                tracing::debug!(
                    kind = place.kind.kind,
                    namespace = &*place.namespace,
                    name = &*place.name,
                    reason = error.reason,
                    code = error.code,
                    "a write of a controller was refused and will be retried",
                );
                Self::Failed
            }
        }
    }
}
