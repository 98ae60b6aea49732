//! The forms of objects: whole, metadata only, or rows of a table.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use super::stored::ServedKind;
use crate::{
    kinds::{GroupVersionKind, Kind},
    schema::{TypeRef, builtin, write_empty},
    storage::{Content, Object},
    table,
};

/// The form of objects in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectForm {
    /// Objects as a whole.
    Plain,
    /// Metadata only, in this version of `meta.k8s.io`.
    Metadata {
        /// The version: `v1` or `v1beta1`.
        version: String,
        /// Whether the client requested a list by name.
        is_list: bool,
    },
    /// Rows of a table.
    Table {
        /// The version: `v1` or `v1beta1`.
        version: String,
        /// The part of the object in each row.
        include: IncludeObject,
    },
}

/// The part of the object in a row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    /// The metadata of the object.
    Metadata,
    /// The whole object.
    Object,
    /// Rows carry no part of the object.
    None,
}

/// The converter of stored objects of a kind to a form.
#[derive(Debug, Clone)]
pub(crate) struct Representer {
    served: ServedKind,
    form: ObjectForm,
    now: SystemTime,
}

impl Representer {
    /// Creates a converter to `form`. Ages are relative to `now`.
    pub(crate) fn new(served: ServedKind, form: ObjectForm, now: SystemTime) -> Self {
        Self { served, form, now }
    }

    /// Returns the kind of the objects.
    pub(crate) fn kind(&self) -> &Arc<Kind> {
        &self.served.kind
    }

    /// Returns the form of the objects.
    pub(crate) fn form(&self) -> &ObjectForm {
        &self.form
    }

    /// Returns whether objects are sent in their stored form.
    pub(crate) fn is_stored_form(&self) -> bool {
        self.form == ObjectForm::Plain && self.served.is_stored_form()
    }

    /// Returns the whole stored object in the version of the kind.
    pub(crate) fn whole(&self, content: &Content, version: u64) -> Value {
        self.served.read(content, version)
    }

    /// Returns a stored object in the form.
    pub(crate) fn object(&self, content: &Content, version: u64) -> Value {
        self.value(self.whole(content, version))
    }

    /// Returns a whole object in the form.
    pub(crate) fn value(&self, object: Value) -> Value {
        match &self.form {
            ObjectForm::Plain => object,
            ObjectForm::Metadata { version, .. } => metadata_only(&object, version),
            ObjectForm::Table { version, include } => {
                let list_metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                self.table(&[object], list_metadata, version, *include)
            }
        }
    }

    /// Returns a list of objects in the form.
    pub(crate) fn list(&self, objects: Vec<Value>, list_metadata: Value) -> Value {
        if let ObjectForm::Table { version, include } = &self.form {
            return self.table(&objects, list_metadata, version, *include);
        }
        let (api_version, kind) = self.list_type().unwrap_or_default();
        if objects.is_empty() && self.has_null_items() {
            return json!({"apiVersion": api_version, "kind": kind, "metadata": list_metadata, "items": null});
        }
        let items: Vec<Value> = objects.into_iter().map(|object| self.item(object)).collect();
        json!({"apiVersion": api_version, "kind": kind, "metadata": list_metadata, "items": items})
    }

    /// Returns the apiVersion and kind of a list in the form. None for a table, which is not a list of items.
    pub(crate) fn list_type(&self) -> Option<(String, String)> {
        match &self.form {
            ObjectForm::Plain => Some((self.served.kind.api_version(), self.served.kind.list_kind.clone())),
            ObjectForm::Metadata { version, .. } => {
                Some((format!("meta.k8s.io/{version}"), "PartialObjectMetadataList".to_owned()))
            }
            ObjectForm::Table { .. } => None,
        }
    }

    /// Returns whether the items of an empty list are null instead of an empty list, as those of metadata lists are.
    pub(crate) fn has_null_items(&self) -> bool {
        matches!(self.form, ObjectForm::Metadata { .. })
    }

    /// Writes an object as an item of a list in the form. An object in its stored form is only copied.
    pub(crate) fn write_item(&self, object: &Object, out: &mut Vec<u8>) {
        let Object { version, content } = object;
        let kind = &self.served.kind;
        if !self.is_stored_form() {
            let item = self.item(self.whole(content, *version));
            // Writing a value to memory cannot fail.
            _ = serde_json::to_writer(out, &item);
        } else if kind.custom.is_some() {
            content.write(&kind.api_version(), &kind.gvk.kind, *version, out);
        } else {
            content.write_item(*version, out);
        }
    }

    /// Returns the object of a bookmark: the kind with `metadata` only.
    pub(crate) fn bookmark(&self, metadata: Value) -> Value {
        let mut object = json!({});
        if self.served.kind.custom.is_none() {
            write_empty(&mut object, &self.served.kind.ty);
        }
        object["apiVersion"] = self.served.kind.api_version().into();
        object["kind"] = self.served.kind.gvk.kind.clone().into();
        object["metadata"] = metadata;
        self.value(object)
    }

    /// Returns an item of a list. Items of built-in kinds omit their apiVersion and kind.
    fn item(&self, mut object: Value) -> Value {
        if let ObjectForm::Metadata { version, .. } = &self.form {
            return metadata_only(&object, version);
        }
        if self.served.kind.custom.is_none()
            && let Some(members) = object.as_object_mut()
        {
            members.remove("apiVersion");
            members.remove("kind");
        }
        object
    }

    fn table(&self, objects: &[Value], list_metadata: Value, version: &str, include: IncludeObject) -> Value {
        let mut table = table::table(&self.served.kind, objects, self.now);
        if let Some(rows) = table["rows"].as_array_mut() {
            for (row, object) in rows.iter_mut().zip(objects) {
                row["object"] = match include {
                    IncludeObject::Metadata => metadata_only(object, version),
                    IncludeObject::Object => object.clone(),
                    IncludeObject::None => continue,
                };
            }
        }
        table["apiVersion"] = format!("meta.k8s.io/{version}").into();
        table["kind"] = "Table".into();
        table["metadata"] = list_metadata;
        table
    }
}

/// Returns the protobuf type of `PartialObjectMetadata`: a message whose first field is the metadata. A `ConfigMap` has the
/// same encoding, with all other fields omitted when empty.
pub(crate) fn metadata_type() -> TypeRef {
    TypeRef::builtin(builtin().find_kind(&GroupVersionKind::new("", "v1", "ConfigMap")))
}

fn metadata_only(object: &Value, version: &str) -> Value {
    json!({
        "apiVersion": format!("meta.k8s.io/{version}"),
        "kind": "PartialObjectMetadata",
        "metadata": object["metadata"],
    })
}
