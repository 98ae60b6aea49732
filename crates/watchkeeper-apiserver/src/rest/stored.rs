//! Conversion of objects between the requested version and the stored version.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use crate::{
    convert::convert,
    kinds::{Kind, Kinds},
    status::ApiError,
    storage::{Content, Object},
};

/// Writes numbers without a fraction as integers: `1.0` becomes `1`, as when Go writes a number.
fn whole_numbers(value: &mut Value) {
    /// The bound up to which every whole number of 64 bits is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < EXACT);
            if let Some(whole) = whole {
                #[expect(clippy::cast_possible_truncation, reason = "the number is whole and within bounds")]
                let whole = whole as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// A kind, and the kind its objects are stored as.
#[derive(Debug, Clone)]
pub(crate) struct ServedKind {
    /// The served kind.
    pub(crate) kind: Arc<Kind>,
    /// The stored kind; usually the same.
    stored: Arc<Kind>,
}

impl ServedKind {
    /// Creates the pair for a served kind.
    pub(crate) fn new(kind: &Arc<Kind>, kinds: &Kinds) -> Self {
        Self { kind: Arc::clone(kind), stored: Arc::clone(kinds.storage_of(kind)) }
    }

    /// Returns whether objects are sent in their stored form.
    pub(crate) fn is_stored_form(&self) -> bool {
        let has_changed = self.kind.custom.as_ref().is_some_and(|custom| custom.has_changed);
        self.kind.gvk == self.kind.storage && !has_changed
    }

    /// Returns a stored object in the served version, with a resourceVersion.
    pub(crate) fn read(&self, content: &Content, version: u64) -> Value {
        let stored = content.to_value(&self.stored.api_version(), &self.stored.gvk.kind, version);
        convert(stored, &self.stored, &self.kind)
    }

    /// Returns a stored object in the served version.
    pub(crate) fn object(&self, object: &Object) -> Value {
        self.read(&object.content, object.version)
    }

    /// Returns `object` as it would be read after storing it. Custom resources keep only the fields of the stored version,
    /// with the defaults of that version.
    pub(crate) fn as_stored(&self, object: Value) -> Value {
        if self.kind.custom.is_none() {
            return object;
        }
        let mut object = object;
        whole_numbers(&mut object);
        if self.kind.gvk == self.stored.gvk {
            return object;
        }
        convert(convert(object, &self.kind, &self.stored), &self.stored, &self.kind)
    }

    /// Returns the content to store: the object in its stored version, with the selectable fields.
    pub(crate) fn content(&self, object: &Value) -> Result<Content, ApiError> {
        let object = if self.kind.gvk == self.stored.gvk {
            Cow::Borrowed(object)
        } else {
            Cow::Owned(convert(object.clone(), &self.kind, &self.stored))
        };
        let fields = self.stored.selectable_fields(&object).into();
        Content::new(&object, fields).map_err(|error| ApiError::internal(error.to_string()))
    }
}
