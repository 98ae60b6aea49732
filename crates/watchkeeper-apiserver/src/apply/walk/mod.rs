//! Walks over an object along its type: content, differences, merge, removal.

mod check;
mod compare;
mod item;
mod merge;
mod owned;
mod remove;

use std::fmt;

pub(crate) use self::{
    check::check,
    compare::{Changes, compare},
    merge::merge,
    owned::owned,
    remove::{EmptiedMember, remove},
};

/// A mismatch between an object and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaMismatch {
    path: String,
    message: String,
}

impl SchemaMismatch {
    fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }

    /// Prefixes the path of the mismatch with a step.
    fn below(mut self, step: &impl fmt::Display) -> Self {
        self.path.insert_str(0, &step.to_string());
        self
    }
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for SchemaMismatch {}
