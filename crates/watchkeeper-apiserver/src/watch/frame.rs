//! Watch frames: one line of JSON for each event.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    kinds::Kind,
    protobuf::{self, Envelope},
    rest::represent::{ObjectForm, Representer, metadata_type},
    schema::TypeRef,
    status::ApiError,
    storage::{Content, Event, EventType, Object},
};

/// The event type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameType {
    /// The object is new to this watch.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted or no longer matches the selector.
    Deleted,
}

impl FrameType {
    fn text(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl From<EventType> for FrameType {
    fn from(change: EventType) -> Self {
        match change {
            EventType::Added => Self::Added,
            EventType::Modified => Self::Modified,
            EventType::Deleted => Self::Deleted,
        }
    }
}

/// The encoder of the frames of one watch.
#[derive(Debug)]
pub(crate) struct Frames {
    representer: Representer,
    is_protobuf: bool,
    /// Whether the columns were sent. Only the first frame of a Table contains them.
    has_named_columns: bool,
}

impl Frames {
    /// Creates an encoder for objects of a kind in a representation.
    pub(crate) fn new(representer: Representer, is_protobuf: bool) -> Self {
        Self { representer, is_protobuf, has_named_columns: false }
    }

    fn kind(&self) -> &Arc<Kind> {
        self.representer.kind()
    }

    /// Returns the frame of an event. Encoded once for all watchers that request the stored form.
    pub(crate) fn event(&mut self, event: &Event) -> Bytes {
        if self.representer.is_stored_form() && !self.is_protobuf {
            let encode = || self.plain(event.change.into(), &event.object.content, event.version);
            return event.frame.get(encode);
        }
        self.object(event.change.into(), &event.object, event.version)
    }

    /// Returns a frame with an object at a version.
    pub(crate) fn object(&mut self, frame: FrameType, object: &Object, version: u64) -> Bytes {
        if self.representer.is_stored_form() && !self.is_protobuf {
            return self.plain(frame, &object.content, version);
        }
        let value = self.representer.object(&object.content, version);
        self.represented(frame.text(), value)
    }

    /// Returns a bookmark frame with a version. `ends_initial_events` marks the end of the initial objects.
    pub(crate) fn bookmark(&mut self, version: u64, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let value = self.representer.bookmark(metadata);
        self.represented("BOOKMARK", value)
    }

    /// Returns an error frame, which ends the watch.
    pub(crate) fn error(&self, error: &ApiError) -> Bytes {
        self.write("ERROR", &error.to_status())
    }

    fn write(&self, frame: &str, object: &Value) -> Bytes {
        if !self.is_protobuf {
            return line(frame, object);
        }
        let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let raw = if kind == "Status" {
            let ty = TypeRef::builtin_named("io.k8s.apimachinery.pkg.apis.meta.v1.Status");
            protobuf::write(object, &ty)
        } else if matches!(self.representer.form(), ObjectForm::Metadata { .. }) {
            protobuf::write(object, &metadata_type())
        } else {
            protobuf::write(object, &self.kind().ty)
        };
        protobuf::frame(frame, &Envelope { api_version, kind, raw: &raw }).into()
    }

    fn plain(&self, frame: FrameType, content: &Content, version: u64) -> Bytes {
        let kind = self.kind();
        let mut out = Vec::with_capacity(content.len() + 128);
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(frame.text().as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        content.write(&kind.api_version(), &kind.gvk.kind, version, &mut out);
        out.extend_from_slice(b"}\n");
        out.into()
    }

    fn represented(&mut self, frame: &str, mut value: Value) -> Bytes {
        if matches!(self.representer.form(), ObjectForm::Table { .. }) {
            if self.has_named_columns {
                value["columnDefinitions"] = Value::Null;
            }
            self.has_named_columns = true;
        }
        self.write(frame, &value)
    }
}

fn line(frame: &str, object: &Value) -> Bytes {
    let mut out = serde_json::to_vec(&json!({"type": frame, "object": object})).unwrap_or_default();
    out.push(b'\n');
    out.into()
}
