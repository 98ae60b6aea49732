//! Parsing of JSON and YAML with detection of duplicate keys and a limit on memory.

use std::{
    collections::HashSet,
    fmt::{self, Write as _},
};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, map::Entry};

use super::limits::{MAX_PATHS, MemoryEstimate, path_text};

/// The maximum nesting depth of a YAML body. Each level costs the parser kilobytes of stack. (The JSON parser limits the
/// depth to 128.)
const MAX_DEPTH: usize = 64;

/// The maximum number of nodes of a YAML body, including those of aliases.
const MAX_NODES: usize = 1_000_000;

/// The maximum number of events of a YAML body that come from aliases.
const MAX_REPLAYED: usize = 20_000;

/// A parsed body, and the paths of its duplicate keys.
#[derive(Debug)]
pub(super) struct ParsedBody {
    pub(super) value: Value,
    pub(super) duplicates: Vec<String>,
}

/// The reason why a body was not parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParseError {
    /// The body is malformed. Carries the message of the parser.
    Syntax(String),
    /// The values of the body take too much memory.
    TooLarge,
}

impl ParseError {
    /// Returns the same reason with the message of a malformed body mapped by `change`.
    pub(super) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Syntax(text) => Self::Syntax(change(text)),
            Self::TooLarge => Self::TooLarge,
        }
    }
}

impl ParsedBody {
    /// Parses JSON. The last value of a duplicate key wins.
    pub(super) fn from_json(body: &[u8]) -> Result<Self, ParseError> {
        let mut reading = ParserState::default();
        // The text is known to be UTF-8, so strings are not validated again one by one.
        let read = match std::str::from_utf8(body) {
            Ok(text) => reading.json(&mut serde_json::Deserializer::from_str(text)),
            Err(_) => reading.json(&mut serde_json::Deserializer::from_slice(body)),
        };
        let read = read.map_err(|error| {
            if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
        });
        reading.finish(read)
    }

    /// Parses a single YAML document. A body that is valid JSON is parsed as JSON, which is many times as fast.
    pub(super) fn from_yaml(body: &[u8]) -> Result<Self, ParseError> {
        if body.trim_ascii_start().starts_with(b"{") {
            match Self::from_json(body) {
                Err(ParseError::Syntax(_)) => {}
                read => return read,
            }
        }
        let mut reading = ParserState::default();
        let read =
            serde_saphyr::with_deserializer_from_slice_with_options(body, yaml_options(), |deserializer| {
                Seed(&mut reading).deserialize(deserializer)
            });
        let read = read.map_err(|error| {
            // The message and its location, without the excerpt of the body that follows.
            error.to_string().lines().next().unwrap_or("not YAML").to_owned()
        });
        reading.finish(read)
    }
}

/// Returns the YAML options: the last value of a duplicate key wins, and depth, nodes and aliases are limited.
pub(super) fn yaml_options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
    let mut budget = serde_saphyr::Budget::default();
    budget.max_depth = MAX_DEPTH;
    budget.max_nodes = MAX_NODES;
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = MAX_REPLAYED;
    options
}

/// The state of parsing one body.
#[derive(Debug, Default)]
struct ParserState {
    /// The path of the current value.
    path: String,
    duplicates: Vec<String>,
    /// The set of duplicates, so that each is reported once.
    reported: HashSet<String>,
    weight: MemoryEstimate,
}

impl ParserState {
    fn json<'de, R: serde_json::de::Read<'de>>(
        &mut self,
        deserializer: &mut serde_json::Deserializer<R>,
    ) -> serde_json::Result<Value> {
        let value = Seed(self).deserialize(&mut *deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    fn finish(self, read: Result<Value, String>) -> Result<ParsedBody, ParseError> {
        if self.weight.is_exceeded() {
            return Err(ParseError::TooLarge);
        }
        let value = read.map_err(ParseError::Syntax)?;
        Ok(ParsedBody { value, duplicates: self.duplicates })
    }

    /// Counts memory, and fails at the limit.
    fn charge<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.weight.add(bytes);
        if self.weight.is_exceeded() { Err(E::custom("the body takes too much memory")) } else { Ok(()) }
    }

    fn repeated(&mut self, key: &str) {
        if self.duplicates.len() < MAX_PATHS {
            let path = path_text(&self.path, key);
            if self.reported.insert(path.clone()) {
                self.duplicates.push(path);
            }
        }
    }
}

/// The seed that parses a value into the state.
struct Seed<'r>(&'r mut ParserState);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.charge(MemoryEstimate::of_text(value))?;
        Ok(value.into())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.0.charge(MemoryEstimate::of_text(&value))?;
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let reading = self.0;
        let length = reading.path.len();
        let mut items = Vec::new();
        loop {
            _ = write!(reading.path, "[{}]", items.len());
            let Some(item) = access.next_element_seed(Seed(reading))? else { break };
            reading.charge(MemoryEstimate::ITEM)?;
            items.push(item);
            reading.path.truncate(length);
        }
        reading.path.truncate(length);
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let reading = self.0;
        let length = reading.path.len();
        let mut members = Map::new();
        reading.charge(MemoryEstimate::OBJECT)?;
        while let Some(key) = access.next_key::<String>()? {
            reading.charge(MemoryEstimate::of_text(&key) + MemoryEstimate::ITEM)?;
            if members.contains_key(&key) {
                reading.repeated(&key);
            }
            if length > 0 {
                reading.path.push('.');
            }
            reading.path.push_str(&key);
            let member = access.next_value_seed(Seed(reading))?;
            reading.path.truncate(length);
            match members.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(member),
                Entry::Occupied(mut entry) => _ = entry.insert(member),
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_takes_far_more_memory_than_bytes_is_refused() {
        let body = format!("{{\"a\":[{}{{}}]}}", "{},".repeat(900_000));
        assert_eq!(ParsedBody::from_json(body.as_bytes()).unwrap_err(), ParseError::TooLarge);
        let body = format!("{{\"a\":[{}0]}}", "1,".repeat(1_400_000));
        assert!(ParsedBody::from_json(body.as_bytes()).is_ok(), "numbers have a fixed size");
    }

    #[test]
    fn yaml_alias_bombs_are_rejected_before_they_expand() {
        let mut body = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..12 {
            let below = level - 1;
            let aliases = vec![format!("*a{below}"); 10].join(",");
            writeln!(body, "a{level}: &a{level} [{aliases}]").unwrap();
        }
        assert!(ParsedBody::from_yaml(body.as_bytes()).is_err());
        let merged = format!("a: &a {{{}}}\nb: [{}]\n", "k: 1", vec!["{<<: *a}"; 20_000].join(","));
        assert!(ParsedBody::from_yaml(merged.as_bytes()).is_err());
    }

    #[test]
    fn a_key_repeated_many_times_is_reported_once_with_its_path() {
        let read = ParsedBody::from_json(br#"{"a":[{"b":1,"b":2,"b":3}],"c":1,"c":{"d":1,"d":2}}"#).unwrap();
        assert_eq!(read.duplicates, ["a[0].b", "c", "c.d"]);
        assert_eq!(read.value, serde_json::json!({"a": [{"b": 3}], "c": {"d": 2}}));
    }
}
