//! Custom kinds: validation of `CustomResourceDefinition`s, and the kinds that they define.

mod allowed;
mod cel;
mod definition;
mod format;
#[cfg(test)]
mod growth;
mod pattern;
mod prune;
mod schema_check;
mod status;
mod strategy;
mod structural;
#[cfg(test)]
mod tests;
mod types;
mod validate;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::cel::{
    Environment as CelEnvironment, OutputType as CelOutputType, RequiredType as CelRequiredType,
    is_reserved as is_reserved_in_cel,
};
pub(crate) use self::definition::{defaults, stored_versions, validate as validate_definition};
pub(crate) use self::status::{CLEANUP_FINALIZER, begin_deletion, is_established, status_after_write};
use self::{strategy::CustomStrategy, structural::Structural};
use crate::{
    kinds::{Custom, CustomKind, GroupVersionKind, Kind, PrinterColumn, ScalePaths, Subresource},
    schema::TypeRef,
    status::ApiError,
};

/// The factory of kinds from definitions.
#[derive(Debug, Clone)]
pub(crate) struct CustomKinds {
    metadata: TypeRef,
}

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

impl CustomKinds {
    /// Creates a factory. `metadata` is the type of the metadata of all objects.
    pub(crate) fn new(metadata: TypeRef) -> Self {
        Self { metadata }
    }

    /// Returns the kinds of a stored definition. Empty unless the definition is established.
    ///
    /// # Errors
    /// Returns an error for a definition without names or a storage version, which no stored definition is.
    pub(crate) fn kinds(&self, definition: &Value) -> Result<CustomKind, ApiError> {
        if !is_established(definition) {
            return Ok(CustomKind::default());
        }
        let text = |pointer: &str| {
            definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (group, kind, plural) =
            (text("/spec/group"), text("/status/acceptedNames/kind"), text("/status/acceptedNames/plural"));
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.map(Vec::as_slice).unwrap_or_default();
        let is = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool) == Some(true);
        let storage = versions.iter().find(|version| is(version, "storage"));
        let storage = storage.and_then(|version| version.get("name")).and_then(Value::as_str);
        let (Some(storage), false) = (storage, kind.is_empty() || plural.is_empty()) else {
            let name = text("/metadata/name");
            return Err(ApiError::internal(format!(
                "the definition {name:?} has no names or no storage version"
            )));
        };
        let names = Shared {
            storage: GroupVersionKind::new(&group, storage, &kind),
            plural,
            singular: text("/status/acceptedNames/singular"),
            list_kind: text("/status/acceptedNames/listKind"),
            short_names: texts(definition.pointer("/status/acceptedNames/shortNames")),
            categories: texts(definition.pointer("/status/acceptedNames/categories")),
            is_namespaced: text("/spec/scope") == "Namespaced",
            has_changed: definition
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .is_some_and(|count| count > 1),
            keeps_unknown: definition.pointer("/spec/preserveUnknownFields").and_then(Value::as_bool)
                == Some(true),
        };
        let of = |mark: &str| -> Vec<Kind> {
            let marked = versions.iter().filter(|version| is(version, mark));
            marked.map(|version| self.kind(version, &names)).collect()
        };
        let served = of("served");
        let hidden = if served.is_empty() { of("storage").pop() } else { None };
        Ok(CustomKind { served, hidden })
    }

    fn kind(&self, version: &Value, names: &Shared) -> Kind {
        let text =
            |pointer: &str| version.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let gvk = GroupVersionKind::new(&names.storage.group, text("/name"), &names.storage.kind);
        let schema = version.pointer("/schema/openAPIV3Schema").cloned();
        let mut structural = schema.as_ref().map(Structural::read).unwrap_or_default();
        structural.keeps_unknown |= names.keeps_unknown || schema.is_none();
        let structural = Arc::new(structural);
        let has_status = version.pointer("/subresources/status").is_some_and(|status| !status.is_null());
        let scale =
            version.pointer("/subresources/scale").filter(|scale| scale.is_object()).map(|_| ScalePaths {
                spec_replicas: text("/subresources/scale/specReplicasPath"),
                status_replicas: text("/subresources/scale/statusReplicasPath"),
                label_selector: Some(text("/subresources/scale/labelSelectorPath"))
                    .filter(|path| !path.is_empty()),
            });
        let subresource = |name: &str, gvk: GroupVersionKind| Subresource {
            name: name.to_owned(),
            gvk,
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
        };
        let status = has_status.then(|| subresource("status", gvk.clone()));
        let scaling =
            scale.as_ref().map(|_| subresource("scale", GroupVersionKind::new("autoscaling", "v1", "Scale")));
        let is_deprecated = version.get("deprecated").and_then(Value::as_bool) == Some(true);
        let deprecation = is_deprecated.then(|| {
            let given = text("/deprecationWarning");
            if given.is_empty() { format!("{} {} is deprecated", gvk.api_version(), gvk.kind) } else { given }
        });
        let selectable = version.get("selectableFields").and_then(Value::as_array);
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
        Kind {
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            list_kind: names.list_kind.clone(),
            is_namespaced: names.is_namespaced,
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            verbs: VERBS.map(str::to_owned).to_vec(),
            subresources: status.into_iter().chain(scaling).collect(),
            storage: names.storage.clone(),
            ty: types::type_of(&structural, &self.metadata),
            custom: Some(Arc::new(Custom {
                columns: columns.into_iter().flatten().map(column).collect(),
                selectable_fields: selectable
                    .into_iter()
                    .flatten()
                    .filter_map(|field| field.get("jsonPath")?.as_str().map(str::to_owned))
                    .collect(),
                schema,
                scale: scale.clone(),
                has_changed: names.has_changed,
                has_rules: structural.has_rules(),
            })),
            strategy: Arc::new(CustomStrategy {
                gvk: gvk.clone(),
                is_namespaced: names.is_namespaced,
                has_status,
                scale,
                schema: structural,
                deprecation,
            }),
            gvk,
        }
    }
}

/// The properties that all versions of a kind share.
struct Shared {
    storage: GroupVersionKind,
    plural: String,
    singular: String,
    list_kind: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    is_namespaced: bool,
    keeps_unknown: bool,
    has_changed: bool,
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn column(column: &Value) -> PrinterColumn {
    let text = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    PrinterColumn {
        name: text("name"),
        ty: text("type"),
        format: text("format"),
        description: text("description"),
        priority: column
            .get("priority")
            .and_then(Value::as_i64)
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or(0),
        json_path: text("jsonPath"),
    }
}
