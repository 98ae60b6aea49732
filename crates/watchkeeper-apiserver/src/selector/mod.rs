//! Selectors of lists and watches.

mod field;
mod label;
mod object;

pub(crate) use field::FieldSelector;
pub(crate) use label::{LabelSelector, SelectorError};
pub(crate) use object::{of_object, selector_text};

use crate::storage::{Content, Object};

/// A label selector and a field selector. An object must match both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// The label selector.
    pub(crate) labels: LabelSelector,
    /// The field selector.
    pub(crate) fields: FieldSelector,
}

impl Selector {
    /// Returns whether the selector matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether `object` matches.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.matches_content(&object.content)
    }

    fn matches_content(&self, content: &Content) -> bool {
        self.labels.matches(content) && self.fields.matches(content)
    }
}
