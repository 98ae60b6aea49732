//! The object an event is written as.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};

/// Whether an event is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// For information.
    Normal,
    /// Something may be wrong.
    Warning,
}

impl EventType {
    /// Its name in an object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something that happened.
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

/// What a server takes of a note, a reason or an action, an instance; in bytes, as it counts them.
const NOTE_BYTES: usize = 1024;
const WORD_BYTES: usize = 128;
/// What a name may be, and what is left for the object's own when the time is behind it.
const NAME_BYTES: usize = 253 - 17;

impl Occurrence {
    /// What two occurrences have in common that are the same thing.
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

    /// Who talks about which object.
    pub(super) fn source(&self) -> String {
        let mut source = self.controller.clone();
        for part in parts(&self.regarding) {
            source.push('\0');
            source.push_str(part);
        }
        source
    }

    /// The object, with a name that `stamp` makes its own.
    pub(super) fn object(&self, stamp: i64) -> Event {
        let named = |object: &ObjectReference| object.name.clone().unwrap_or_default();
        let namespace = self.regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(event_name(&named(&self.regarding), stamp)),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(shortened(&self.action, WORD_BYTES)),
            reason: Some(shortened(&self.reason, WORD_BYTES)),
            note: Some(shortened(&self.note, NOTE_BYTES)),
            type_: Some(self.kind.as_str().to_owned()),
            regarding: Some(self.regarding.clone()),
            related: self.related.clone(),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(shortened(&self.instance, WORD_BYTES)),
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

/// The object's name and the time, as every event is named. Some objects have names that events may not.
pub(super) fn event_name(object: &str, stamp: i64) -> String {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let mut name: String = object.to_ascii_lowercase();
    name = name.chars().map(|c| if is_fine(c) { c } else { '-' }).take(NAME_BYTES).collect();
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = if name.is_empty() || name.contains("..") { "event" } else { name };
    format!("{name}.{stamp:x}")
}

/// As much of a text as fits, cut between characters.
fn shortened(text: &str, bytes: usize) -> String {
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
    fn an_event_is_named_after_its_object_as_far_as_events_may_be() {
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
    fn a_note_is_cut_between_characters() {
        let note = shortened(&"é".repeat(600), NOTE_BYTES);
        assert!(note.len() <= NOTE_BYTES && note.ends_with("é..."));
        assert_eq!(shortened("short", NOTE_BYTES), "short");
    }
}
