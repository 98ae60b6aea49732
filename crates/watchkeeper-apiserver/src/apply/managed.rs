//! `metadata.managedFields`: who manages which fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{codec, set::FieldSet};

/// How many managers that update are told apart; the oldest of more become one.
const MAX_UPDATERS: usize = 10;

/// The manager that stands for the oldest updates.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// What a manager does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    /// Says all it wants, each time.
    Apply,
    /// Changes what is there.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells managers apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    /// Its name.
    pub name: String,
    /// What it does.
    pub operation: Operation,
    /// The API version it updates in; empty for appliers, who are the same in every version.
    pub api_version: String,
    /// The subresource it writes through; empty for the object itself.
    pub subresource: String,
}

/// What one manager manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The version the paths are of.
    pub api_version: String,
    /// The paths.
    pub fields: FieldSet,
    /// When they last changed.
    pub time: Option<Timestamp>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    entries: BTreeMap<ManagerId, Entry>,
}

/// Why a `managedFields` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InvalidManagedFields {
    /// The list or an entry is not what it should be.
    #[error("managedFields must be a list of objects")]
    Shape,
    /// An operation that is none.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry without a version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry without a type of fields.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// An entry with a type of fields nobody knows.
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {place}")]
    FieldsType {
        /// What was given.
        fields_type: String,
        /// The place of the entry.
        place: usize,
    },
    /// A time that is none.
    #[error("invalid time in managed fields entry {0}")]
    Time(usize),
    /// Paths that are none.
    #[error("error decoding set: {0}")]
    Fields(#[from] super::path::InvalidElement),
}

impl Managed {
    /// Reads a `managedFields`; none and null are no managers.
    ///
    /// # Errors
    /// When it is not a list of complete entries.
    pub(crate) fn decode(entries: Option<&Value>) -> Result<Self, InvalidManagedFields> {
        let mut managed = Self::default();
        let entries = match entries {
            None | Some(Value::Null) => return Ok(managed),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(InvalidManagedFields::Shape),
        };
        for (place, entry) in entries.iter().enumerate() {
            let entry = entry.as_object().ok_or(InvalidManagedFields::Shape)?;
            let (id, entry) = decode_entry(entry, place)?;
            managed.entries.insert(id, entry);
        }
        Ok(managed)
    }

    /// Whether a `managedFields` sent by a client asks to forget all managers: an empty list, or one empty entry.
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

    /// The `managedFields`: appliers first, then by time and name; none without managers.
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

    /// Whether nobody manages anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a manager manages.
    pub(crate) fn get(&self, id: &ManagerId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// What a manager manages from now on.
    pub(crate) fn insert(&mut self, id: ManagerId, entry: Entry) {
        self.entries.insert(id, entry);
    }

    /// Every manager with what it manages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ManagerId, &Entry)> {
        self.entries.iter()
    }

    /// Changes what managers manage, and forgets those for whom `change` says so or who have nothing left.
    pub(crate) fn retain(&mut self, mut change: impl FnMut(&ManagerId, &mut Entry) -> bool) {
        self.entries.retain(|id, entry| change(id, entry) && !entry.fields.is_empty());
    }

    /// Makes one manager of the oldest that update, for each version, so that not more than ten are left.
    pub(crate) fn cap_updaters(&mut self) {
        let mut updaters: Vec<_> =
            self.entries.iter().filter(|(id, _)| id.operation == Operation::Update).collect();
        let mut excess = updaters.len().saturating_sub(MAX_UPDATERS);
        if excess == 0 {
            return;
        }
        updaters.sort_by_key(|(id, entry)| (entry.time.map_or(0, Timestamp::as_second), *id));
        let oldest: Vec<ManagerId> = updaters.into_iter().map(|(id, _)| id.clone()).collect();
        // The first of a version stays as it is until a second one joins it.
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
                operation: Operation::Update,
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
                .or_insert_with(|| Entry { fields: FieldSet::default(), ..entry.clone() });
            ancient.fields.join(entry.fields);
            ancient.time = entry.time;
            excess -= 1;
        }
    }
}

fn decode_entry(
    entry: &Map<String, Value>,
    place: usize,
) -> Result<(ManagerId, Entry), InvalidManagedFields> {
    let text = |member: &str| match entry.get(member) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(InvalidManagedFields::Shape),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(InvalidManagedFields::Operation),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(InvalidManagedFields::ApiVersion);
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(InvalidManagedFields::MissingFieldsType(place)),
        other => return Err(InvalidManagedFields::FieldsType { fields_type: other.to_owned(), place }),
    }
    let time = match text("time")? {
        "" => None,
        time => Some(time.parse().map_err(|_| InvalidManagedFields::Time(place))?),
    };
    let fields = entry.get("fieldsV1").map_or_else(|| Ok(FieldSet::default()), codec::decode)?;
    let id = ManagerId {
        name: text("manager")?.to_owned(),
        operation,
        api_version: if operation == Operation::Apply { String::new() } else { api_version.to_owned() },
        subresource: text("subresource")?.to_owned(),
    };
    Ok((id, Entry { api_version: api_version.to_owned(), fields, time }))
}

fn encode_entry(id: &ManagerId, entry: &Entry) -> Value {
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

/// A time as entries have it.
pub(super) fn written_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether a written entry is that of `id`, in its version.
pub(super) fn is_of(entry: &Value, id: &ManagerId) -> bool {
    let is = |member: &str, text: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default() == text;
    is("manager", &id.name) && is("operation", id.operation.name()) && is("subresource", &id.subresource)
}
