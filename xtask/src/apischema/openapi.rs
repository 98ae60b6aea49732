//! The types in the published OpenAPI documents.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use super::{Error, read};

/// The schemas of all documents, by name.
pub(super) struct Documents {
    schemas: BTreeMap<String, Value>,
}

impl Documents {
    /// Reads every document in `dir`.
    pub(super) fn read(dir: &Path) -> Result<Self, Error> {
        let entries = fs::read_dir(dir).map_err(|source| Error::Read { path: dir.to_owned(), source })?;
        let mut schemas = BTreeMap::new();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let mut document: Value = serde_json::from_str(&read(&path)?)
                .map_err(|source| Error::Parse { path: path.clone(), source })?;
            if let Some(Value::Object(found)) = document.pointer_mut("/components/schemas").map(Value::take) {
                schemas.extend(found);
            }
        }
        Ok(Self { schemas })
    }

    /// Returns the schema of a type.
    pub(super) fn schema(&self, name: &str) -> Result<&Value, Error> {
        self.schemas
            .get(name)
            .ok_or_else(|| Error::Type { name: name.to_owned(), what: "in no document".into() })
    }

    /// Returns the name of the type of a kind.
    pub(super) fn name_of(&self, group: &str, version: &str, kind: &str) -> Result<String, Error> {
        self.schemas
            .iter()
            .find(|(_, schema)| only_kind(schema) == Some((group, version, kind)))
            .map(|(name, _)| name.clone())
            .ok_or_else(|| Error::NoKind {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
            })
    }
}

/// Returns the group, version and kind of a schema that has exactly one. Options are in every group and count as none.
pub(super) fn only_kind(schema: &Value) -> Option<(&str, &str, &str)> {
    let [one] = schema["x-kubernetes-group-version-kind"].as_array()?.as_slice() else { return None };
    Some((one["group"].as_str()?, one["version"].as_str()?, one["kind"].as_str()?))
}
