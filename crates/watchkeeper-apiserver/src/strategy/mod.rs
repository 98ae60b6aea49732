//! The differences between kinds when an object is created or changed.
//!
//! The request path is the same for every kind and calls the kind's [`Strategy`] where kinds differ. The steps of a write
//! are: decode, [`Strategy::set_defaults`], prepare, validate, store.

mod allocator;
mod builtin;
mod cursor;
pub(crate) mod edit;
mod formats;
mod gates;
pub(crate) mod metadata;
pub(crate) mod names;
mod path;
pub(crate) mod quantity;
mod table;

use std::{fmt, sync::Arc};

use serde_json::Value;

pub(crate) use self::allocator::{Allocation, ServiceAllocator};
pub(crate) use self::cursor::{Cursor, Errors};
use crate::{auth::user::User, field::FieldError};

/// The part of an object that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The object itself. The status is kept if the kind has a status subresource.
    Main,
    /// The subresource with this name.
    Subresource(&'a str),
}

/// The time and the user of the request that a write belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteContext<'a> {
    /// The time of the request, formatted as in objects.
    pub(crate) now: &'a str,
    /// The user of the request.
    pub(crate) user: &'a User,
}

/// The boolean rules and the grace period of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of boolean settings")]
pub(crate) struct StrategySettings {
    /// Whether a PUT of an object that does not exist creates it.
    pub creates_on_update: bool,
    /// Whether a PUT without a resourceVersion is accepted.
    pub takes_unconditional_update: bool,
    /// Whether a DELETE returns the object instead of a `Status`.
    pub delete_returns_object: bool,
    /// Whether `metadata.generation` counts changes. [`Strategy::prepare_for_create`] and [`Strategy::prepare_for_update`]
    /// do the counting.
    pub counts_generations: bool,
    /// The default grace period of a DELETE, in seconds; none for kinds without graceful deletion.
    pub grace_period_seconds: Option<u32>,
}

/// The rules of a kind. Objects are complete, with apiVersion, kind and metadata, in the version of the kind.
pub(crate) trait Strategy: fmt::Debug + Send + Sync {
    /// Returns the boolean rules and the grace period.
    fn settings(&self) -> StrategySettings;
    /// Sets defaults, and prunes unknown fields of custom resources.
    fn set_defaults(&self, object: &mut Value);
    /// Sets the defaults of an object that results from an apply. Custom resources keep all other members, because apply has
    /// already checked them against the schema, and validation reports nulls that are not allowed.
    fn set_defaults_of_applied(&self, object: &mut Value) {
        self.set_defaults(object);
    }
    /// Fills in times that were left out and that the writer manages, as all defaults are. `now` returns the time of the
    /// request.
    fn set_timed_defaults(&self, _object: &mut Value, _now: &dyn Fn() -> String) {}
    /// Drops the fields that the schema of a custom resource does not declare.
    fn prune(&self, _object: &mut Value) {}
    /// Resets fields that a client may not set on create (a status, an allocated address).
    fn prepare_for_create(&self, object: &mut Value);
    /// Restores from `old` the fields that a client may not change through `part`.
    fn prepare_for_update(&self, part: Part<'_>, object: &mut Value, old: &Value);
    /// Sets the fields that depend on the request rather than on the object: times and users. Runs after the object was
    /// prepared; `old` is absent for a new object.
    fn set_request_fields(
        &self,
        _part: Part<'_>,
        _object: &mut Value,
        _old: Option<&Value>,
        _context: &WriteContext<'_>,
    ) {
    }
    /// Validates a new object, including `metadata`.
    fn validate_create(&self, object: &Value) -> Vec<FieldError>;
    /// Validates a changed object, including immutable fields.
    fn validate_update(&self, part: Part<'_>, object: &Value, old: &Value) -> Vec<FieldError>;
    /// Returns the warnings about a valid object, for `Warning` headers.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }
    /// Returns the deprecation warning for all requests to the kind, including reads.
    fn deprecation(&self) -> Option<String> {
        None
    }
    /// Returns the default grace period of `object`, in seconds. None for kinds without graceful deletion.
    fn grace_period_seconds(&self, _object: &Value) -> Option<u32> {
        self.settings().grace_period_seconds
    }
}

/// Returns the strategy of a built-in kind. A kind without specific rules has the common ones.
pub(crate) fn for_builtin(group: &str, version: &str, kind: &str) -> Arc<dyn Strategy> {
    Arc::new(builtin::Builtin::of(group, version, kind))
}
