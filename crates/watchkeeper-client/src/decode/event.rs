//! The envelope of a watch event: its type, and where its object is.

use bytes::Bytes;
use kube_core::response::Status;
use serde_json::Value;

use super::{DecodeError, json, walk::Walk};

/// What a watch event says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object came to be, or came to match the selector.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone, or matches the selector no more.
    Deleted,
    /// Nothing happened up to the resourceVersion of the object, which has nothing else in it.
    Bookmark,
    /// The object is a `Status`: the watch failed.
    Error,
}

impl EventType {
    fn from_wire(text: &str) -> Option<Self> {
        Some(match text {
            "ADDED" => Self::Added,
            "MODIFIED" => Self::Modified,
            "DELETED" => Self::Deleted,
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            _ => return None,
        })
    }
}

/// One watch event, its object not yet looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEvent {
    /// What happened.
    pub event_type: EventType,
    /// The bytes of the object, a slice of the frame.
    pub object: Bytes,
}

/// Takes the envelope off a watch frame.
///
/// The order of the envelope's members and the blanks between them do not matter, and members it does not know
/// are passed over. The object is found by its brackets, not parsed; it is a slice of `frame`, not a copy.
///
/// # Errors
/// When the frame is not an object with one `type` that is known and one `object`, when the object is nested
/// deeper than `max_depth`, or, as [`DecodeError::Status`], when the server sent a bare `Status` instead.
pub fn split_event(frame: &Bytes, max_depth: usize) -> Result<RawEvent, DecodeError> {
    let mut walk = Walk::new(frame);
    if !walk.enter()? {
        return Err(walk.expected("a watch event"));
    }
    let (mut event_type, mut object) = (None, None);
    let mut first = true;
    while let Some(key) = walk.key(first)? {
        first = false;
        if key.is("type") {
            let offset = walk.at() as u64;
            let text = walk.string()?.ok_or(DecodeError::WrongType {
                field: "type",
                expected: "a string",
                offset,
            })?;
            let known = EventType::from_wire(&text).ok_or(DecodeError::UnknownEventType { offset })?;
            if event_type.replace(known).is_some() {
                return Err(DecodeError::Duplicate { field: "type", offset });
            }
        } else if key.is("object") {
            let range = walk.skip(max_depth)?;
            let offset = range.end as u64;
            if object.replace(range).is_some() {
                return Err(DecodeError::Duplicate { field: "object", offset });
            }
        } else {
            walk.skip(max_depth)?;
        }
    }
    if !walk.at_end() {
        return Err(walk.expected("the end of the watch event"));
    }
    match (event_type, object) {
        (Some(event_type), Some(object)) => Ok(RawEvent { event_type, object: frame.slice(object) }),
        (None, None) if kind_is(frame, "Status") => Err(DecodeError::Status {
            instead_of: "a watch event",
            status: Box::new(json::parse::<Status>(frame)?),
        }),
        (None, None) if kind_is(frame, "Table") => Err(DecodeError::Table { instead_of: "a watch event" }),
        (None, _) => Err(DecodeError::Missing { field: "type" }),
        (_, None) => Err(DecodeError::Missing { field: "object" }),
    }
}

/// The `Status` in an ERROR event. Every field of one may be absent, so only what says that it is one is taken for it.
pub(crate) fn status_of_event(object: &[u8]) -> Result<Box<Status>, DecodeError> {
    if !kind_is(object, "Status") {
        return Err(DecodeError::WrongKind { expected: "Status".to_owned() });
    }
    json::parse(object).map(Box::new)
}

/// What a bookmark says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bookmark {
    /// Everything up to here has been sent.
    pub resource_version: String,
    /// Whether this marks the end of the initial events that were asked for.
    pub initial_events_end: bool,
}

impl Bookmark {
    /// Creates a bookmark, for implementations of [`ListerWatcher`](crate::list_watch::ListerWatcher).
    pub fn new(resource_version: String, initial_events_end: bool) -> Self {
        Self { resource_version, initial_events_end }
    }

    /// Reads the object of a BOOKMARK event.
    pub(crate) fn of_event(object: &[u8]) -> Result<Self, DecodeError> {
        let object: Value = json::parse(object)?;
        let metadata = &object["metadata"];
        let resource_version = metadata["resourceVersion"].as_str().filter(|version| !version.is_empty());
        let resource_version =
            resource_version.ok_or(DecodeError::Missing { field: "metadata.resourceVersion" })?;
        let end = &metadata["annotations"]["k8s.io/initial-events-end"];
        Ok(Self::new(resource_version.to_owned(), end == "true"))
    }
}

/// Whether `object` says, in its own `kind`, that it is a `kind`. Something that is no object says nothing.
fn kind_is(object: &[u8], kind: &str) -> bool {
    let mut walk = Walk::new(object);
    let mut find = || {
        let mut first = true;
        if !walk.enter()? {
            return Ok(false);
        }
        while let Some(key) = walk.key(first)? {
            first = false;
            if key.is("kind") {
                return Ok(walk.string()?.is_some_and(|text| text == kind));
            }
            walk.skip(usize::MAX)?;
        }
        Ok::<_, DecodeError>(false)
    };
    find().unwrap_or(false)
}
