//! `metadata.managedFields`: the managers of an object and their fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{codec, set::FieldSet};

/// The maximum number of managers with the operation `Update`; beyond it, the oldest ones are merged into one.
const MAX_UPDATERS: usize = 10;

/// The manager into which the oldest updates are merged.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// The operation of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ManagerOperation {
    /// The manager applies its complete configuration each time.
    Apply,
    /// The manager updates the stored object.
    Update,
}

impl ManagerOperation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of a manager.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    /// The name of the manager.
    pub name: String,
    /// The operation of the manager.
    pub operation: ManagerOperation,
    /// The API version of its updates; empty for appliers, which are the same manager in every version.
    pub api_version: String,
    /// The subresource of its writes; empty for the object itself.
    pub subresource: String,
}

/// The fields of one manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManagerEntry {
    /// The API version of the paths.
    pub api_version: String,
    /// The paths of the fields.
    pub fields: FieldSet,
    /// The time of the last change.
    pub time: Option<Timestamp>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    entries: BTreeMap<ManagerId, ManagerEntry>,
}

/// The reason why a `managedFields` cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InvalidManagedFields {
    /// The list or an entry has the wrong type.
    #[error("managedFields must be a list of objects")]
    Shape,
    /// An entry has an unknown operation.
    #[error("operation must be `Apply` or `Update`")]
    ManagerOperation,
    /// An entry has no API version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry has no `fieldsType`.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// An entry has an unknown `fieldsType`.
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {index}")]
    FieldsType {
        /// The given `fieldsType`.
        fields_type: String,
        /// The index of the entry.
        index: usize,
    },
    /// An entry has an invalid time.
    #[error("invalid time in managed fields entry {0}")]
    Time(usize),
    /// An entry has invalid paths.
    #[error("error decoding set: {0}")]
    Fields(#[from] super::path::InvalidElement),
}

impl Managed {
    /// Parses a `managedFields`. None and null mean no managers.
    ///
    /// # Errors
    /// Returns an error if the value is not a list of complete entries.
    pub(crate) fn decode(entries: Option<&Value>) -> Result<Self, InvalidManagedFields> {
        let mut managed = Self::default();
        let entries = match entries {
            None | Some(Value::Null) => return Ok(managed),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(InvalidManagedFields::Shape),
        };
        for (index, entry) in entries.iter().enumerate() {
            let entry = entry.as_object().ok_or(InvalidManagedFields::Shape)?;
            let (id, entry) = decode_entry(entry, index)?;
            managed.entries.insert(id, entry);
        }
        Ok(managed)
    }

    /// Returns whether a `managedFields` sent by a client requests a reset of all managers: an empty list, or one empty
    /// entry.
    pub(crate) fn is_reset(entries: Option<&Value>) -> bool {
        match entries {
            Some(Value::Array(entries)) => match &**entries {
                [] => true,
                [Value::Object(entry)] => entry.values().all(|member| member.is_null() || member == ""),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the `managedFields`: appliers first, then by time and name. None without managers.
    pub(crate) fn encode(&self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(id, entry)| {
            let seconds = entry.time.map_or(0, Timestamp::as_second);
            (id.operation, seconds, id.name.as_str(), entry.api_version.as_str(), id.subresource.as_str())
        });
        Some(entries.into_iter().map(|(id, entry)| encode_entry(id, entry)).collect())
    }

    /// Returns whether there are no managers.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the fields of a manager.
    pub(crate) fn get(&self, id: &ManagerId) -> Option<&ManagerEntry> {
        self.entries.get(id)
    }

    /// Sets the fields of a manager.
    pub(crate) fn insert(&mut self, id: ManagerId, entry: ManagerEntry) {
        self.entries.insert(id, entry);
    }

    /// Returns every manager with its fields.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ManagerId, &ManagerEntry)> {
        self.entries.iter()
    }

    /// Changes the fields of managers. Removes managers for which `change` returns false or that have no fields left.
    pub(crate) fn retain(&mut self, mut change: impl FnMut(&ManagerId, &mut ManagerEntry) -> bool) {
        self.entries.retain(|id, entry| change(id, entry) && !entry.fields.is_empty());
    }

    /// Merges the oldest managers with the operation `Update`, per version, so that at most ten remain.
    pub(crate) fn cap_updaters(&mut self) {
        let mut updaters: Vec<_> =
            self.entries.iter().filter(|(id, _)| id.operation == ManagerOperation::Update).collect();
        let mut excess = updaters.len().saturating_sub(MAX_UPDATERS);
        if excess == 0 {
            return;
        }
        updaters.sort_by_key(|(id, entry)| (entry.time.map_or(0, Timestamp::as_second), *id));
        let oldest: Vec<ManagerId> = updaters.into_iter().map(|(id, _)| id.clone()).collect();
        // The first manager of a version keeps its name until a second one is merged with it.
        let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
        for id in oldest {
            if excess == 0 {
                return;
            }
            let Some(entry) = self.entries.get(&id).cloned() else { continue };
            let Some(first) = first_of_version.get(&entry.api_version) else {
                first_of_version.insert(entry.api_version, id);
                continue;
            };
            let bucket = ManagerId {
                name: ANCIENT_CHANGES.to_owned(),
                operation: ManagerOperation::Update,
                api_version: entry.api_version.clone(),
                subresource: String::new(),
            };
            if !self.entries.contains_key(&bucket)
                && let Some(first) = self.entries.remove(first)
            {
                self.entries.insert(bucket.clone(), first);
            }
            self.entries.remove(&id);
            let ancient = self
                .entries
                .entry(bucket)
                .or_insert_with(|| ManagerEntry { fields: FieldSet::default(), ..entry.clone() });
            ancient.fields.join(entry.fields);
            ancient.time = entry.time;
            excess -= 1;
        }
    }
}

fn decode_entry(
    entry: &Map<String, Value>,
    index: usize,
) -> Result<(ManagerId, ManagerEntry), InvalidManagedFields> {
    let text = |member: &str| match entry.get(member) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(InvalidManagedFields::Shape),
    };
    let operation = match text("operation")? {
        "Apply" => ManagerOperation::Apply,
        "Update" => ManagerOperation::Update,
        _ => return Err(InvalidManagedFields::ManagerOperation),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(InvalidManagedFields::ApiVersion);
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(InvalidManagedFields::MissingFieldsType(index)),
        other => return Err(InvalidManagedFields::FieldsType { fields_type: other.to_owned(), index }),
    }
    let time = match text("time")? {
        "" => None,
        time => Some(time.parse().map_err(|_| InvalidManagedFields::Time(index))?),
    };
    let fields = entry.get("fieldsV1").map_or_else(|| Ok(FieldSet::default()), codec::decode)?;
    let id = ManagerId {
        name: text("manager")?.to_owned(),
        operation,
        api_version: if operation == ManagerOperation::Apply {
            String::new()
        } else {
            api_version.to_owned()
        },
        subresource: text("subresource")?.to_owned(),
    };
    Ok((id, ManagerEntry { api_version: api_version.to_owned(), fields, time }))
}

fn encode_entry(id: &ManagerId, entry: &ManagerEntry) -> Value {
    let mut members = Map::new();
    let mut put = |member: &str, value: Value| {
        members.insert(member.to_owned(), value);
    };
    put("apiVersion", entry.api_version.as_str().into());
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", codec::encode(&entry.fields));
    if !id.name.is_empty() {
        put("manager", id.name.as_str().into());
    }
    put("operation", id.operation.name().into());
    if !id.subresource.is_empty() {
        put("subresource", id.subresource.as_str().into());
    }
    if let Some(time) = entry.time {
        put("time", written_time(time).into());
    }
    Value::Object(members)
}

/// Formats a time as in entries.
pub(super) fn written_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns whether an encoded entry is that of `id`, in its version.
pub(super) fn is_of(entry: &Value, id: &ManagerId) -> bool {
    let is = |member: &str, text: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default() == text;
    is("manager", &id.name) && is("operation", id.operation.name()) && is("subresource", &id.subresource)
}
