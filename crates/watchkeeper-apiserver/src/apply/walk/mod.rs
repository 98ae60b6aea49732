//! Walks over an object beside its type: what is in it, what differs, two put together, parts taken out.

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
    remove::{Emptied, remove},
};

/// Something in an object that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    path: String,
    message: String,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }

    /// The same fault, seen from one step further up.
    fn below(mut self, step: &impl fmt::Display) -> Self {
        self.path.insert_str(0, &step.to_string());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for Fault {}
