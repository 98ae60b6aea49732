//! The problems that strict validation finds in a body, with the texts and in the order of Kubernetes.
//!
//! | body | order |
//! |---|---|
//! | JSON of a built-in kind | the order of the keys in the body; members of unknown fields are skipped |
//! | JSON of a custom kind | duplicate keys, then unknown fields |
//! | YAML | duplicate keys by line, in one error; then unknown fields by name |

use std::{
    collections::HashSet,
    fmt::{self, Write as _},
};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    MediaType,
    document::yaml_options,
    limits::{MAX_PROBLEMS, path_text},
};

/// The problems of a body.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// The duplicate keys of YAML, each with its line.
    lines: Vec<String>,
    /// The unknown fields, and the duplicate keys of JSON.
    fields: Vec<String>,
}

impl Problems {
    /// Collects the problems of a body. `duplicates` and `unknown` are the paths found by the parser, without their order.
    pub(super) fn find(
        form: MediaType,
        body: &[u8],
        duplicates: &[String],
        unknown: &[String],
        is_custom: bool,
    ) -> Self {
        if duplicates.is_empty() && unknown.is_empty() {
            return Self::default();
        }
        let duplicate = |path: &String| format!("duplicate field {path:?}");
        match form {
            MediaType::Yaml => {
                let lines = if duplicates.is_empty() { Vec::new() } else { repeated_lines(body) };
                let mut unknown: Vec<&String> = unknown.iter().collect();
                // A step of a path sorts before longer names with the same beginning.
                unknown.sort_by_key(|path| path.replace(['.', '['], "\0"));
                let fields = unknown.into_iter().map(|path| unknown_field(path)).take(MAX_PROBLEMS);
                Self { lines, fields: fields.collect() }
            }
            MediaType::Json if !is_custom => Self { lines: Vec::new(), fields: in_order(body, unknown) },
            MediaType::Json | MediaType::Protobuf => {
                let unknown = unknown.iter().map(|path| unknown_field(path));
                let fields = duplicates.iter().map(duplicate).chain(unknown).take(MAX_PROBLEMS);
                Self { lines: Vec::new(), fields: fields.collect() }
            }
        }
    }

    /// Collects the duplicate keys of a YAML document.
    pub(super) fn of_yaml(body: &[u8]) -> Self {
        Self { lines: repeated_lines(body), fields: Vec::new() }
    }

    /// Returns whether there are no problems.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.fields.is_empty()
    }

    /// Returns the problems as one message.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().fold(String::new(), |text, line| format!("{text}\n  {line}"));
        let lines = (!self.lines.is_empty()).then(|| format!("yaml: unmarshal errors:{lines}"));
        lines.into_iter().chain(self.fields.iter().cloned()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the problems as separate messages.
    pub(super) fn into_warnings(self) -> Vec<String> {
        self.lines.into_iter().chain(self.fields).collect()
    }
}

fn unknown_field(path: &str) -> String {
    format!("unknown field {path:?}")
}

/// Returns the problems of a JSON body in the order of its keys.
fn in_order(body: &[u8], unknown: &[String]) -> Vec<String> {
    let mut walk = Walk {
        path: String::new(),
        unknown: unknown.iter().map(String::as_str).collect(),
        problems: Vec::new(),
        reported: HashSet::new(),
    };
    // The body was parsed before, so it is JSON.
    _ = KeyVisitor(&mut walk).deserialize(&mut serde_json::Deserializer::from_slice(body));
    let Walk { mut problems, reported, .. } = walk;
    // Paths that are too long for a comparison come last.
    let remaining = MAX_PROBLEMS - problems.len();
    let others = unknown.iter().map(|path| unknown_field(path)).filter(|problem| !reported.contains(problem));
    problems.extend(others.take(remaining));
    problems
}

struct Walk<'u> {
    path: String,
    unknown: HashSet<&'u str>,
    problems: Vec<String>,
    reported: HashSet<String>,
}

impl Walk<'_> {
    fn report(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS && self.reported.insert(problem.clone()) {
            self.problems.push(problem);
        }
    }
}

/// The methods of a visitor that ignores all scalar values.
macro_rules! ignore_scalars {
    () => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a value")
        }

        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }

        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }

        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }

        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }

        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_none<E>(self) -> Result<(), E> {
            Ok(())
        }
    };
}

/// The visitor of one value.
struct KeyVisitor<'w, 'u>(&'w mut Walk<'u>);

impl<'de> DeserializeSeed<'de> for KeyVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor<'_, '_> {
    type Value = ();

    ignore_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let length = self.0.path.len();
        for index in 0.. {
            _ = write!(self.0.path, "[{index}]");
            let item = access.next_element_seed(KeyVisitor(&mut *self.0))?;
            self.0.path.truncate(length);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let length = self.0.path.len();
        let mut keys = HashSet::new();
        while let Some(key) = access.next_key::<String>()? {
            if length > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&key);
            if self.0.unknown.contains(self.0.path.as_str()) {
                let problem = unknown_field(&self.0.path);
                self.0.report(problem);
                access.next_value::<IgnoredAny>()?;
            } else {
                if !keys.insert(key) {
                    let problem = format!("duplicate field {:?}", path_text("", &self.0.path));
                    self.0.report(problem);
                }
                access.next_value_seed(KeyVisitor(&mut *self.0))?;
            }
            self.0.path.truncate(length);
        }
        Ok(())
    }
}

/// Returns the duplicate keys of a YAML document, each with its line.
fn repeated_lines(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    // The body was parsed before, so it is YAML.
    _ = serde_saphyr::with_deserializer_from_slice_with_options(body, yaml_options(), |deserializer| {
        YamlVisitor(&mut found).deserialize(deserializer)
    });
    found
}

/// The visitor of one YAML value.
struct YamlVisitor<'f>(&'f mut Vec<String>);

impl<'de> DeserializeSeed<'de> for YamlVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for YamlVisitor<'_> {
    type Value = ();

    ignore_scalars!();

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while access.next_element_seed(YamlVisitor(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = access.next_key::<serde_saphyr::Spanned<String>>()? {
            access.next_value_seed(YamlVisitor(&mut *self.0))?;
            if keys.contains(&key.value) {
                if self.0.len() < MAX_PROBLEMS {
                    let line = key.referenced.line();
                    self.0
                        .push(format!("line {line}: key {:?} already set in map", path_text("", &key.value)));
                }
            } else {
                keys.insert(key.value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
        "metadata": {"name": "a", "name": "b", "unknownMeta": 1},
        "spec": {
            "unknown1": 1, "unknownDupe": 1, "unknownDupe": {"x": 1, "x": 1}, "paused": true, "paused": false,
            "paused": true, "containers": [{"unknownNested": 1, "policy": 1, "policy": 2}]
        }
    }"#;
    const YAML: &str =
        "metadata:\n  name: a\n  name: b\nspec:\n  a: 1\n  m:\n    k: 1\n    k: 2\n  zz: 1\n  a: 2\n";

    fn paths(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn strict_errors_of_built_in_kinds_are_in_body_order() {
        let unknown = paths(&[
            "spec.containers[0].unknownNested",
            "spec.unknown1",
            "spec.unknownDupe",
            "metadata.unknownMeta",
        ]);
        let problems = Problems::find(MediaType::Json, JSON.as_bytes(), &[], &unknown, false);
        assert_eq!(
            problems.text(),
            r#"duplicate field "metadata.name", unknown field "metadata.unknownMeta", unknown field "spec.unknown1", unknown field "spec.unknownDupe", duplicate field "spec.paused", unknown field "spec.containers[0].unknownNested", duplicate field "spec.containers[0].policy""#
        );
    }

    #[test]
    fn strict_errors_of_custom_kinds_list_duplicate_keys_first() {
        let (duplicates, unknown) =
            (paths(&["spec.unknownDupe"]), paths(&["spec.unknown1", "spec.unknownDupe"]));
        let problems = Problems::find(MediaType::Json, JSON.as_bytes(), &duplicates, &unknown, true);
        assert_eq!(
            problems.text(),
            r#"duplicate field "spec.unknownDupe", unknown field "spec.unknown1", unknown field "spec.unknownDupe""#
        );
    }

    #[test]
    fn duplicate_yaml_keys_are_reported_with_their_line_numbers() {
        let (duplicates, unknown) = (paths(&["metadata.name"]), paths(&["spec.zz", "spec.m.k"]));
        let problems = Problems::find(MediaType::Yaml, YAML.as_bytes(), &duplicates, &unknown, false);
        assert_eq!(
            problems.text(),
            "yaml: unmarshal errors:\n  line 3: key \"name\" already set in map\n  line 8: key \"k\" already set in map\n  \
             line 10: key \"a\" already set in map, unknown field \"spec.m.k\", unknown field \"spec.zz\""
        );
        assert_eq!(problems.into_warnings().len(), 5);
        assert!(Problems::find(MediaType::Yaml, b"a: 1", &[], &[], false).is_empty());
    }

    #[test]
    fn the_number_of_strict_errors_is_limited() {
        let keys: Vec<String> =
            (0..500).map(|number| format!("\"k{number}\": 1, \"k{number}\": 2")).collect();
        let body = format!("{{{}}}", keys.join(","));
        let problems = Problems::find(MediaType::Json, body.as_bytes(), &paths(&["k0"]), &[], false);
        assert_eq!(problems.into_warnings().len(), MAX_PROBLEMS);
        let lines: Vec<String> = (0..500).map(|number| format!("k{number}: 1\nk{number}: 2")).collect();
        assert_eq!(Problems::of_yaml(lines.join("\n").as_bytes()).into_warnings().len(), MAX_PROBLEMS);
    }
}
