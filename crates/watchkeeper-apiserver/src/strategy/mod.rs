//! What differs between kinds when an object is created or changed.
//!
//! The request path is the same for every kind; where kinds differ it asks the kind's [`Strategy`]. In order, for a write:
//! decode, [`Strategy::set_defaults`], prepare, validate, store.

mod allocator;
mod at;
mod builtin;
pub(crate) mod edit;
mod formats;
mod gates;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod quantity;
mod table;

use std::{fmt, sync::Arc};

use serde_json::Value;

pub(crate) use self::allocator::{Claim, ServiceAllocator};
pub(crate) use self::at::{At, Errors};
use crate::{auth::user::User, field::FieldError};

/// The part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The object; its status stays as it was where the kind has a status subresource.
    Main,
    /// The subresource of this name.
    Subresource(&'a str),
}

/// The time and the user of the request that a write belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteContext<'a> {
    /// The time of the request, as objects carry it.
    pub(crate) now: &'a str,
    /// The user the request is made by.
    pub(crate) user: &'a User,
}

/// Rules of a kind that are a yes or a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of yes and no")]
pub(crate) struct Rules {
    /// A PUT of an object that does not exist creates it.
    pub creates_on_update: bool,
    /// A PUT without a resourceVersion is taken.
    pub takes_unconditional_update: bool,
    /// A DELETE answers with the object instead of a `Status`.
    pub delete_returns_object: bool,
    /// `metadata.generation` counts changes; [`Strategy::prepare_for_create`] and [`Strategy::prepare_for_update`] count.
    pub counts_generations: bool,
    /// Seconds an object keeps living after a DELETE that does not say; none for kinds without graceful deletion.
    pub grace_period_seconds: Option<u32>,
}

/// What is particular to a kind. Objects are whole, with apiVersion, kind and metadata, in the version of the kind.
pub(crate) trait Strategy: fmt::Debug + Send + Sync {
    /// The yes-and-no rules.
    fn rules(&self) -> Rules;
    /// Fills in what was left out, and for custom resources drops what the schema does not know.
    fn set_defaults(&self, object: &mut Value);
    /// Fills in what was left out of an object that an apply made. Custom resources keep all other members: apply has
    /// checked them against the schema already, and validation reports nulls that are not allowed.
    fn set_defaults_of_applied(&self, object: &mut Value) {
        self.set_defaults(object);
    }
    /// Fills in times that were left out and that the writer manages, as all defaults are. `now` returns the time of the
    /// request.
    fn set_timed_defaults(&self, _object: &mut Value, _now: &dyn Fn() -> String) {}
    /// Drops what the schema of a custom resource does not know.
    fn prune(&self, _object: &mut Value) {}
    /// Resets what a client may not set when it creates (a status, an allocated address).
    fn prepare_for_create(&self, object: &mut Value);
    /// Takes from `old` what a client may not change through `part`.
    fn prepare_for_update(&self, part: Part<'_>, object: &mut Value, old: &Value);
    /// Sets what depends on the request rather than on the object: times and users. Runs after the object was prepared; `old`
    /// is absent for a new object.
    fn stamp(&self, _part: Part<'_>, _object: &mut Value, _old: Option<&Value>, _context: &WriteContext<'_>) {
    }
    /// What is wrong with a new object, `metadata` included.
    fn validate_create(&self, object: &Value) -> Vec<FieldError>;
    /// What is wrong with a changed object, immutable fields included.
    fn validate_update(&self, part: Part<'_>, object: &Value, old: &Value) -> Vec<FieldError>;
    /// What to tell the client in `Warning` headers although it is right.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }
    /// What to tell every client of the kind, readers too: that it is on its way out.
    fn deprecation(&self) -> Option<String> {
        None
    }
    /// Seconds `object` keeps living after a DELETE that does not say; none for kinds without graceful deletion.
    fn grace_period_seconds(&self, _object: &Value) -> Option<u32> {
        self.rules().grace_period_seconds
    }
}

/// The strategy of a built-in kind. A kind without rules of its own has those all objects share.
pub(crate) fn for_builtin(group: &str, version: &str, kind: &str) -> Arc<dyn Strategy> {
    Arc::new(builtin::Builtin::of(group, version, kind))
}
