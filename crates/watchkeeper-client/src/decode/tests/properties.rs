//! Splitting, cutting and probing agree with `serde_json`, for any document in any chunks.

use std::fmt::Write as _;

use bytes::Bytes;
use proptest::{prelude::*, sample::Index};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    decode::{
        DecodeError, FrameSplitter, ListEnvelope, ListSplitter, WatchEventType, cut_managed_fields, probe,
        split_event,
    },
    limits::Limits,
};

/// Generates text that is difficult for scanners: quotes, backslashes, brackets, relevant names, and any
/// Unicode.
fn text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[a-z]{0,8}",
        2 => r#"[\\"{}\[\],:a u]{0,12}"#,
        1 => any::<String>(),
        1 => Just("managedFields".to_owned()),
        1 => Just(r#","managedFields":["#.to_owned()),
        1 => Just(r#""items":[{"#.to_owned()),
    ]
    .boxed()
}

fn key() -> BoxedStrategy<String> {
    prop_oneof![
        3 => text(),
        1 => prop::sample::select(vec![
            "items", "metadata", "managedFields", "kind", "apiVersion", "name", "namespace", "uid", "resourceVersion",
            "spec", "annotations", "rows", "type", "object",
        ]).prop_map(str::to_owned),
    ]
    .boxed()
}

fn leaf() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        text().prop_map(Value::from),
    ]
    .boxed()
}

fn json() -> BoxedStrategy<Value> {
    leaf()
        .prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((key(), inner), 0..6)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
        .boxed()
}

/// Generates metadata that often has the fields of the probe, sometimes with wrong types.
fn metadata() -> BoxedStrategy<Value> {
    let field = || prop_oneof![6 => text().prop_map(Value::from), 1 => leaf()];
    let named = (
        prop::option::of(field()),
        prop::option::of(field()),
        prop::option::of(field()),
        prop::option::of(field()),
        prop::option::of(json()),
        prop::collection::vec((key(), json()), 0..4),
    );
    let object = named.prop_map(|(name, namespace, uid, version, managed, rest)| {
        let mut members: Map<String, Value> = rest.into_iter().collect();
        let fields = [
            ("name", name),
            ("namespace", namespace),
            ("uid", uid),
            ("resourceVersion", version),
            ("managedFields", managed),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                members.insert(field.to_owned(), value);
            }
        }
        Value::from(members)
    });
    prop_oneof![8 => object, 1 => json()].boxed()
}

fn object() -> BoxedStrategy<Value> {
    (prop::option::of(metadata()), prop::collection::vec((key(), json()), 0..4))
        .prop_map(|(metadata, rest)| {
            let mut members: Map<String, Value> = rest.into_iter().collect();
            if let Some(metadata) = metadata {
                members.insert("metadata".to_owned(), metadata);
            }
            Value::from(members)
        })
        .boxed()
}

/// The formatting of a document: whitespace between tokens, rotated members, and escaped letters in keys and
/// strings.
#[derive(Debug, Clone)]
struct Style {
    blanks: Vec<&'static str>,
    rotate: usize,
    escape_every: usize,
}

fn style() -> impl Strategy<Value = Style> {
    let blank = prop::sample::select(vec!["", "", "", " ", "\n", "\r\n\t", "        "]);
    (prop::collection::vec(blank, 1..8), 0_usize..5, prop_oneof![3 => Just(0_usize), 1 => 1_usize..7])
        .prop_map(|(blanks, rotate, escape_every)| Style { blanks, rotate, escape_every })
}

struct Writer<'a> {
    style: &'a Style,
    out: String,
    tokens: usize,
    letters: usize,
}

fn written(value: &Value, style: &Style) -> String {
    let mut writer = Writer { style, out: String::new(), tokens: 0, letters: 0 };
    writer.value(value);
    writer.blank();
    writer.out
}

impl Writer<'_> {
    fn blank(&mut self) {
        self.out.push_str(self.style.blanks[self.tokens % self.style.blanks.len()]);
        self.tokens += 1;
    }

    fn token(&mut self, token: &str) {
        self.blank();
        self.out.push_str(token);
    }

    fn text(&mut self, text: &str) {
        self.token("\"");
        for character in text.chars() {
            self.letters += 1;
            let escape = self.style.escape_every > 0 && self.letters.is_multiple_of(self.style.escape_every);
            if escape && character.is_ascii_alphabetic() {
                write!(self.out, "\\u{:04x}", u32::from(character)).expect("strings take everything");
            } else {
                let quoted = Value::from(character.to_string()).to_string();
                self.out.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
        self.out.push('"');
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.token("[");
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.token(",");
                    }
                    self.value(item);
                }
                self.token("]");
            }
            Value::Object(members) => {
                self.token("{");
                let rotate = self.style.rotate % members.len().max(1);
                let rotated = members.iter().cycle().skip(rotate).take(members.len());
                for (index, (key, value)) in rotated.enumerate() {
                    if index > 0 {
                        self.token(",");
                    }
                    self.text(key);
                    self.token(":");
                    self.value(value);
                }
                self.token("}");
            }
            other => self.token(&other.to_string()),
        }
    }
}

/// Splits `body` at the given positions, with empty chunks in between.
fn chunks(body: &str, cuts: &[Index]) -> Vec<Bytes> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    at.extend([0, body.len()]);
    at.sort_unstable();
    let body = Bytes::from(body.to_owned());
    at.windows(2).map(|pair| body.slice(pair[0]..pair[1])).collect()
}

fn split(chunks: Vec<Bytes>, limits: &Limits) -> Result<(Vec<Bytes>, ListEnvelope), DecodeError> {
    let mut splitter = ListSplitter::new(limits);
    let mut items = Vec::new();
    for mut chunk in chunks {
        while let Some(item) = splitter.next_item(&mut chunk)? {
            items.push(item);
        }
        assert!(chunk.is_empty(), "a chunk is used up before the next is requested");
    }
    splitter.finish().map(|envelope| (items, envelope))
}

/// Returns the items as `serde_json` finds them, with their exact bytes.
fn raw_items(body: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct List {
        items: Vec<Box<RawValue>>,
    }
    let list: List = serde_json::from_str(body).expect("the document was written as a list");
    list.items.into_iter().map(|item| item.get().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_splitter_finds_the_items_serde_json_finds(
        items in prop::collection::vec(prop_oneof![4 => object(), 1 => json()], 0..6),
        rest in prop::collection::vec((key(), json()), 0..4),
        resource_version in prop::option::of("[0-9]{1,9}"),
        style in style(),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let mut members: Map<String, Value> = rest.into_iter().collect();
        for reserved in ["kind", "apiVersion", "metadata"] {
            members.remove(reserved);
        }
        members.insert("kind".to_owned(), "ThingList".into());
        members.insert("items".to_owned(), items.into());
        if let Some(version) = &resource_version {
            members.insert("metadata".to_owned(), serde_json::json!({ "resourceVersion": version, "continue": "" }));
        }
        let body = written(&members.into(), &style);
        let (found, envelope) = split(chunks(&body, &cuts), &Limits::default()).unwrap();
        prop_assert_eq!(found.len() as u64, envelope.items);
        prop_assert_eq!(found, raw_items(&body));
        prop_assert_eq!(envelope.kind.as_deref(), Some("ThingList"));
        prop_assert_eq!(envelope.resource_version, resource_version);
        prop_assert_eq!(envelope.continue_token, None);
    }

    #[test]
    fn a_cut_object_is_the_object_without_managed_fields(mut object in object(), style in style()) {
        let body = written(&object, &style);
        let mut scratch = vec![b'x'; 3];
        let cut: Value = serde_json::from_slice(cut_managed_fields(body.as_bytes(), &mut scratch)).unwrap();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        prop_assert_eq!(cut, object);
    }

    #[test]
    fn a_probe_agrees_with_a_full_parse(object in object(), style in style()) {
        let body = written(&object, &style);
        let field = |name: &str| &object["metadata"][name];
        let fields = [field("name"), field("namespace"), field("uid"), field("resourceVersion")];
        let parts = fields.map(|value| value.as_str().filter(|text| !text.is_empty()));
        match probe(body.as_bytes()) {
            Ok(identity) => {
                let found = [Some(identity.name()), identity.namespace(), identity.uid(), identity.resource_version()];
                prop_assert_eq!(found, parts);
                let key = parts[1].map_or(String::new(), |namespace| format!("{namespace}/")) + identity.name();
                prop_assert_eq!(identity.key(), key);
            }
            Err(DecodeError::Missing { field: "metadata.name" }) => prop_assert_eq!(parts[0], None),
            Err(DecodeError::Missing { field: "metadata" }) => prop_assert!(object.get("metadata").is_none()),
            Err(DecodeError::WrongType { field: "metadata", .. }) => prop_assert!(!object["metadata"].is_object()),
            Err(DecodeError::WrongType { .. }) => {
                prop_assert!(fields.iter().any(|value| !value.is_null() && !value.is_string()));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn an_event_is_taken_out_of_its_envelope_whole(
        object in object(), extra in prop::option::of((text(), json())), style in style(), kind in 0_usize..5,
    ) {
        let (wire, event_type) = [
            ("ADDED", WatchEventType::Added), ("MODIFIED", WatchEventType::Modified), ("DELETED", WatchEventType::Deleted),
            ("BOOKMARK", WatchEventType::Bookmark), ("ERROR", WatchEventType::Error),
        ][kind];
        let mut members: Map<String, Value> = extra.into_iter().collect();
        members.insert("type".to_owned(), wire.into());
        members.insert("object".to_owned(), object.clone());
        let event = split_event(&Bytes::from(written(&members.into(), &style)), 128).unwrap();
        prop_assert_eq!(event.event_type, event_type);
        prop_assert_eq!(serde_json::from_slice::<Value>(&event.object).unwrap(), object);
    }

    #[test]
    fn frames_are_the_lines_that_are_not_blank(
        lines in prop::collection::vec("[a-z ]{0,20}", 0..8), ends in prop::collection::vec("\r?\n", 8), open in any::<bool>(),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let mut body: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), end]).collect();
        if open {
            body.push_str("last");
        }
        let mut frames = FrameSplitter::new(&Limits::default());
        let mut found = Vec::new();
        for mut chunk in chunks(&body, &cuts) {
            while let Some(frame) = frames.next_frame(&mut chunk).unwrap() {
                found.push(frame);
            }
        }
        found.extend(frames.finish());
        let last = open.then(|| "last".to_owned());
        let expected: Vec<String> = lines.into_iter().filter(|line| !line.trim().is_empty()).chain(last).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn garbage_and_damaged_documents_are_rejected_without_a_panic(
        object in object(), style in style(), damage in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
        truncate in prop::option::of(any::<Index>()), noise in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let list = serde_json::json!({ "metadata": {}, "items": [object] });
        let mut document = written(&list, &style).into_bytes();
        for (at, byte) in damage {
            let at = at.index(document.len());
            document[at] = byte;
        }
        if let Some(at) = truncate {
            document.truncate(at.index(document.len()));
        }
        for bytes in [document, noise] {
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let whole = Bytes::from(bytes.clone());
            let pieces = at.windows(2).map(|pair| whole.slice(pair[0]..pair[1])).collect();
            let _ = split(pieces, &Limits::default());
            let _ = probe(&bytes);
            let _ = split_event(&whole, 128);
            let mut scratch = Vec::new();
            let cut = cut_managed_fields(&bytes, &mut scratch);
            if let Ok(sound) = serde_json::from_slice::<Value>(&bytes) {
                prop_assert!(serde_json::from_slice::<Value>(cut).is_ok(), "cutting broke {sound}");
            }
        }
    }
}
