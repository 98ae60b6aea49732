//! Which objects a list or a watch is about.

mod field;
mod label;
mod object;

pub(crate) use field::FieldSelector;
pub(crate) use label::{LabelSelector, SelectorError};
pub(crate) use object::{of_object, selector_text};

use crate::storage::{Content, Object};

/// A label selector and a field selector: an object must fit both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// By label.
    pub(crate) labels: LabelSelector,
    /// By field.
    pub(crate) fields: FieldSelector,
}

impl Selector {
    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether `object` is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.matches_content(&object.content)
    }

    fn matches_content(&self, content: &Content) -> bool {
        self.labels.matches(content) && self.fields.matches(content)
    }
}
