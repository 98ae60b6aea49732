//! The envelope of a watch event: its type and the position of its object.

use bytes::Bytes;
use kube_core::response::Status;
use serde_json::Value;

use super::{DecodeError, json, walk::Walk};

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WatchEventType {
    /// The object was created, or started to match the selector.
    Added,
    /// The object was modified.
    Modified,
    /// The object was deleted, or stopped matching the selector.
    Deleted,
    /// A bookmark: all changes up to the resourceVersion of the object have been sent. The object contains
    /// nothing else.
    Bookmark,
    /// The watch failed; the object is a `Status`.
    Error,
}

impl WatchEventType {
    pub(super) fn from_wire(text: &str) -> Option<Self> {
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

/// A watch event whose object has not been decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawEvent {
    /// The type of the event.
    pub(crate) event_type: WatchEventType,
    /// The bytes of the object, a slice of the frame.
    pub(crate) object: Bytes,
}

/// Splits a watch frame into its type and its object.
///
/// Members may be in any order, whitespace is ignored, and unknown members are skipped. The object is
/// delimited by its brackets without being parsed; it is a slice of `frame`, not a copy.
///
/// # Errors
/// Returns a [`DecodeError`] if the frame is not an object with one known `type` and one `object`, if the
/// object is nested deeper than `max_depth`, or, as [`DecodeError::Status`], if the server sent a bare
/// `Status` instead.
pub(crate) fn split_event(frame: &Bytes, max_depth: usize) -> Result<RawEvent, DecodeError> {
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
            let known = WatchEventType::from_wire(&text).ok_or(DecodeError::UnknownEventType { offset })?;
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

/// Parses the `Status` of an ERROR event. Every field of a `Status` is optional, so its `kind` must be
/// present.
pub(crate) fn status_of_event(object: &[u8]) -> Result<Box<Status>, DecodeError> {
    if !kind_is(object, "Status") {
        return Err(DecodeError::WrongKind { expected: "Status".to_owned() });
    }
    json::parse(object).map(Box::new)
}

/// The content of a bookmark.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bookmark {
    /// The resourceVersion up to which all changes have been sent.
    pub resource_version: String,
    /// Whether this bookmark marks the end of the requested initial events.
    pub initial_events_end: bool,
}

impl Bookmark {
    /// Creates a bookmark, for implementations of [`ListerWatcher`](crate::list_watch::ListerWatcher).
    pub fn new(resource_version: String, initial_events_end: bool) -> Self {
        Self { resource_version, initial_events_end }
    }

    /// Parses the object of a BOOKMARK event.
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

/// Returns whether the `kind` of `object` is `kind`. Returns false if `object` is not an object.
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
