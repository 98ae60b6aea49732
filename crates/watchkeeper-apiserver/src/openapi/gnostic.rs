//! Encoding of an OpenAPI v2 document as protobuf, in the messages of `gnostic`, which client-go and older kubectl versions
//! request.

use serde_json::{Map, Value};

use crate::protobuf::{put_bytes, put_fixed64, put_number};

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Writes strings, numbers and booleans. Members that are absent or of another type are skipped.
    fn scalars(mut self, of: &Map<String, Value>, members: &[(&str, u32)]) -> Self {
        for (name, number) in members {
            match of.get(*name) {
                Some(Value::String(text)) if !text.is_empty() => {
                    put_bytes(&mut self.0, *number, text.as_bytes());
                }
                Some(Value::Bool(true)) => put_number(&mut self.0, *number, 1),
                _ => {}
            }
        }
        self
    }

    /// Writes members that are integers.
    fn counts(mut self, of: &Map<String, Value>, members: &[(&str, u32)]) -> Self {
        for (name, number) in members {
            if let Some(count) = of.get(*name).and_then(Value::as_i64).filter(|count| *count != 0) {
                put_number(&mut self.0, *number, count.cast_unsigned());
            }
        }
        self
    }

    /// Writes members that are floats.
    fn fractions(mut self, of: &Map<String, Value>, members: &[(&str, u32)]) -> Self {
        for (name, number) in members {
            if let Some(value) = of.get(*name).and_then(Value::as_f64).filter(|value| *value != 0.0) {
                put_fixed64(&mut self.0, *number, value.to_bits());
            }
        }
        self
    }

    /// Writes members that are lists of strings.
    fn texts(mut self, of: &Map<String, Value>, members: &[(&str, u32)]) -> Self {
        for (name, number) in members {
            for text in
                of.get(*name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
            {
                put_bytes(&mut self.0, *number, text.as_bytes());
            }
        }
        self
    }

    /// Writes a nested message.
    fn message(mut self, number: u32, message: &Self) -> Self {
        put_bytes(&mut self.0, number, &message.0);
        self
    }

    /// Writes a nested message for each of `items`.
    fn messages<T>(self, number: u32, items: impl IntoIterator<Item = T>, write: impl Fn(T) -> Self) -> Self {
        items.into_iter().fold(self, |message, item| message.message(number, &write(item)))
    }

    /// Writes a nested message for an object, if it is present.
    fn object(self, number: u32, of: Option<&Value>, write: impl Fn(&Map<String, Value>) -> Self) -> Self {
        match of.and_then(Value::as_object) {
            Some(of) => self.message(number, &write(of)),
            None => self,
        }
    }

    /// Writes the extensions of an object.
    fn extensions(self, of: &Map<String, Value>, number: u32) -> Self {
        let extensions = of.iter().filter(|(name, _)| name.starts_with("x-"));
        self.messages(number, extensions, |(name, value)| named(name, &any(value)))
    }
}

fn members(of: Option<&Value>) -> impl Iterator<Item = (&String, &Map<String, Value>)> {
    let members = of.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(name, value)| Some((name, value.as_object()?)))
}

fn objects(of: Option<&Value>) -> impl Iterator<Item = &Map<String, Value>> {
    of.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Returns a message with a name and a value.
fn named(name: &str, value: &Message) -> Message {
    let mut out = Message::default();
    put_bytes(&mut out.0, 1, name.as_bytes());
    out.message(2, value)
}

/// Returns any value as YAML, of which JSON is a subset.
fn any(value: &Value) -> Message {
    let mut out = Message::default();
    put_bytes(&mut out.0, 2, format!("{value}\n").as_bytes());
    out
}

/// Encodes a document of OpenAPI v2 as protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let Value::Object(of) = document else { return Vec::new() };
    let paths = |_: &Map<String, Value>| {
        Message::default().messages(2, members(of.get("paths")), |(path, item)| named(path, &path_item(item)))
    };
    let definitions = |_: &Map<String, Value>| {
        Message::default()
            .messages(1, members(of.get("definitions")), |(name, schema)| named(name, &self::schema(schema)))
    };
    let security = |of: &Map<String, Value>| {
        Message::default().messages(1, of.keys(), |name| named(name, &Message::default()))
    };
    let schemes = |_: &Map<String, Value>| {
        Message::default().messages(1, members(of.get("securityDefinitions")), |(name, scheme)| {
            let key = Message::default()
                .scalars(scheme, &[("type", 1), ("name", 2), ("in", 3), ("description", 4)]);
            named(name, &Message::default().message(2, &key))
        })
    };
    Message::default()
        .scalars(of, &[("swagger", 1)])
        .object(2, of.get("info"), |info| Message::default().scalars(info, &[("title", 1), ("version", 2)]))
        .object(8, of.get("paths"), paths)
        .object(9, of.get("definitions"), definitions)
        .messages(12, objects(of.get("security")), security)
        .object(13, of.get("securityDefinitions"), schemes)
        .0
}

fn path_item(item: &Map<String, Value>) -> Message {
    let operations = [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)];
    operations
        .into_iter()
        .fold(Message::default(), |message, (name, number)| message.object(number, item.get(name), operation))
        .messages(9, objects(item.get("parameters")), parameter)
}

fn operation(of: &Map<String, Value>) -> Message {
    let responses = |codes: &Map<String, Value>| {
        let codes = codes.iter().filter_map(|(code, response)| Some((code, response.as_object()?)));
        Message::default().messages(1, codes, |(code, response)| {
            let response = Message::default().scalars(response, &[("description", 1)]).object(
                2,
                response.get("schema"),
                |of| Message::default().message(1, &schema(of)),
            );
            named(code, &Message::default().message(1, &response))
        })
    };
    Message::default()
        .texts(of, &[("tags", 1)])
        .scalars(of, &[("summary", 2), ("description", 3), ("operationId", 5)])
        .texts(of, &[("produces", 6), ("consumes", 7)])
        .messages(8, objects(of.get("parameters")), parameter)
        .object(9, of.get("responses"), responses)
        .texts(of, &[("schemes", 10)])
        .extensions(of, 13)
}

/// Returns the message of a body, path or query parameter.
fn parameter(of: &Map<String, Value>) -> Message {
    let location = of.get("in").and_then(Value::as_str).unwrap_or_default();
    let one = match location {
        "body" => {
            let body = Message::default()
                .scalars(of, &[("description", 1), ("name", 2), ("in", 3), ("required", 4)])
                .object(5, of.get("schema"), schema);
            Message::default().message(1, &body)
        }
        "path" => {
            let scalars =
                [("required", 1), ("in", 2), ("description", 3), ("name", 4), ("type", 5), ("format", 6)];
            let path = Message::default().scalars(of, &scalars).scalars(of, &[("uniqueItems", 19)]);
            Message::default().message(2, &Message::default().message(4, &path))
        }
        _ => {
            let scalars =
                [("required", 1), ("in", 2), ("description", 3), ("name", 4), ("type", 6), ("format", 7)];
            let query = Message::default().scalars(of, &scalars).scalars(of, &[("uniqueItems", 20)]);
            Message::default().message(2, &Message::default().message(3, &query))
        }
    };
    Message::default().message(1, &one)
}

fn schema(of: &Map<String, Value>) -> Message {
    let optional = |number: u32, value: Option<&Value>, message: Message| match value {
        Some(value) => message.message(number, &any(value)),
        None => message,
    };
    let mut out =
        Message::default().scalars(of, &[("$ref", 1), ("format", 2), ("title", 3), ("description", 4)]);
    out = optional(5, of.get("default"), out)
        .fractions(of, &[("multipleOf", 6), ("maximum", 7)])
        .scalars(of, &[("exclusiveMaximum", 8)])
        .fractions(of, &[("minimum", 9)])
        .scalars(of, &[("exclusiveMinimum", 10)])
        .counts(of, &[("maxLength", 11), ("minLength", 12)])
        .scalars(of, &[("pattern", 13)])
        .counts(of, &[("maxItems", 14), ("minItems", 15)])
        .scalars(of, &[("uniqueItems", 16)])
        .counts(of, &[("maxProperties", 17), ("minProperties", 18)])
        .texts(of, &[("required", 19)])
        .messages(20, of.get("enum").and_then(Value::as_array).into_iter().flatten(), any);
    out = match of.get("additionalProperties") {
        Some(Value::Bool(is_open)) => {
            let mut message = Message::default();
            put_number(&mut message.0, 2, u64::from(*is_open));
            out.message(21, &message)
        }
        other => out.object(21, other, |of| Message::default().message(1, &schema(of))),
    };
    if let Some(ty) = of.get("type").and_then(Value::as_str) {
        let mut message = Message::default();
        put_bytes(&mut message.0, 1, ty.as_bytes());
        out = out.message(22, &message);
    }
    let properties = |of: &Map<String, Value>| {
        let properties = of.iter().filter_map(|(name, property)| Some((name, property.as_object()?)));
        Message::default().messages(1, properties, |(name, property)| named(name, &schema(property)))
    };
    let docs = |of: &Map<String, Value>| Message::default().scalars(of, &[("description", 1), ("url", 2)]);
    out = out
        .object(23, of.get("items"), |of| Message::default().message(1, &schema(of)))
        .messages(24, objects(of.get("allOf")), schema)
        .object(25, of.get("properties"), properties)
        .scalars(of, &[("readOnly", 27)])
        .object(29, of.get("externalDocs"), docs);
    optional(30, of.get("example"), out).extensions(of, 31)
}
