//! The conversion of a recorded event to an API object.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// The event describes normal operation.
    Normal,
    /// The event describes a possible problem.
    Warning,
}

impl EventType {
    /// Returns the name of the type in the API: `Normal` or `Warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// A recorded event, before aggregation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Occurrence {
    pub(super) kind: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
    pub(super) regarding: ObjectReference,
    pub(super) related: Option<ObjectReference>,
    pub(super) controller: String,
    pub(super) instance: String,
    pub(super) date: Timestamp,
}

/// The maximum size of a note that the API server accepts, in bytes.
const NOTE_BYTES: usize = 1024;
/// The maximum size of a reason, an action or a reporting instance that the API server accepts, in bytes.
const WORD_BYTES: usize = 128;
/// The maximum size of an object name, minus the stamp and its separator.
const NAME_BYTES: usize = 253 - 17;

impl Occurrence {
    /// Returns the key of the series to which the occurrence belongs.
    pub(super) fn key(&self) -> String {
        let own = [self.kind.as_str(), &self.reason, &self.action, &self.controller, &self.instance];
        let objects = std::iter::once(&self.regarding).chain(&self.related).flat_map(parts);
        let mut key = String::new();
        for part in own.into_iter().chain(objects) {
            key.push_str(part);
            key.push('\0');
        }
        key
    }

    /// Returns the key of the rate limit: the controller and the object.
    pub(super) fn source(&self) -> String {
        let mut source = self.controller.clone();
        for part in parts(&self.regarding) {
            source.push('\0');
            source.push_str(part);
        }
        source
    }

    /// Returns the API object, with a name that `stamp` makes unique.
    pub(super) fn object(&self, stamp: i64) -> Event {
        let named = |object: &ObjectReference| object.name.clone().unwrap_or_default();
        let namespace = self.regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(event_name(&named(&self.regarding), stamp)),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(truncated(&self.action, WORD_BYTES)),
            reason: Some(truncated(&self.reason, WORD_BYTES)),
            note: Some(truncated(&self.note, NOTE_BYTES)),
            type_: Some(self.kind.as_str().to_owned()),
            regarding: Some(self.regarding.clone()),
            related: self.related.clone(),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(truncated(&self.instance, WORD_BYTES)),
            event_time: Some(MicroTime(self.date)),
            ..Event::default()
        }
    }
}

fn parts(object: &ObjectReference) -> [&str; 6] {
    let parts =
        [&object.api_version, &object.kind, &object.namespace, &object.name, &object.uid, &object.field_path];
    parts.map(|part| part.as_deref().unwrap_or_default())
}

/// Returns the name of an event: the name of its object and the stamp. Characters that are invalid in event names are
/// replaced.
pub(super) fn event_name(object: &str, stamp: i64) -> String {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let mut name: String = object.to_ascii_lowercase();
    name = name.chars().map(|c| if is_valid(c) { c } else { '-' }).take(NAME_BYTES).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = if name.is_empty() || name.contains("..") { "event" } else { name };
    format!("{name}.{stamp:x}")
}

/// Truncates a text to a number of bytes, between characters.
fn truncated(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(3));
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_named_after_its_object_with_invalid_characters_replaced() {
        assert_eq!(event_name("web-0", 255), "web-0.ff");
        assert_eq!(event_name("system:node:A_b", 1), "system-node-a-b.1");
        assert_eq!(event_name("", 1), "event.1");
        assert_eq!(event_name("a..b", 1), "event.1");
        let long = event_name(&"x".repeat(253), i64::MAX);
        assert!(long.len() <= 253, "{}", long.len());
        let cut_at_a_dash = event_name(&format!("{}-{}", "x".repeat(235), "y"), 1);
        assert!(!cut_at_a_dash.contains("-."), "{cut_at_a_dash}");
    }

    #[test]
    fn a_note_is_truncated_between_characters() {
        let note = truncated(&"é".repeat(600), NOTE_BYTES);
        assert!(note.len() <= NOTE_BYTES && note.ends_with("é..."));
        assert_eq!(truncated("short", NOTE_BYTES), "short");
    }
}
