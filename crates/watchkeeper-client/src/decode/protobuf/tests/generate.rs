//! Random objects of built-in types, in JSON as Go writes it and as messages.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fastrand::Rng;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use watchkeeper_schema::{EmptyEncoding, Field, Scalar, Shape, TypeRef};

use super::super::wire::{Wire, put, put_bytes};

/// The order of fields in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// In random order, with contiguous repeated fields.
    Contiguous,
    /// In any order, with single messages in several parts.
    Scattered,
}

/// The generator of objects.
pub(super) struct Generator {
    pub(super) rng: Rng,
    pub(super) order: Order,
}

/// A field of a message, encoded.
type Encoded = (Vec<u32>, Vec<u8>);

impl Generator {
    pub(super) fn new(seed: u64, order: Order) -> Self {
        Self { rng: Rng::with_seed(seed), order }
    }

    /// Returns an object of a struct type with random members.
    pub(super) fn object(&mut self, ty: &TypeRef, depth: usize) -> (Map<String, Value>, Vec<u8>) {
        let Shape::Struct(members) = ty.shape() else { panic!("{ty:?} is not a struct") };
        let (mut json, mut encoded) = (Map::new(), Vec::new());
        for field in &members.fields {
            if let Some(proto) = &field.proto {
                let path = proto.path.to_vec();
                let (value, fields) = self.member(field, &ty.at(field.ty), path[path.len() - 1], depth);
                encoded.extend(fields.into_iter().map(|bytes| (path.clone(), bytes)));
                if let Some(value) = value {
                    json.insert(field.name.to_string(), value);
                }
            }
        }
        (json, self.message(encoded))
    }

    /// Assembles a message from fields at their paths.
    fn message(&mut self, mut encoded: Vec<Encoded>) -> Vec<u8> {
        // A random order in which the occurrences of a field stay in order.
        let keys: Vec<u64> = (0..=64).map(|_| self.rng.u64(..)).collect();
        encoded.sort_by_key(|(path, _)| keys[path[0] as usize]);
        if self.order == Order::Scattered {
            for _ in 0..encoded.len() {
                let at = self.rng.usize(0..encoded.len());
                if at > 0 && encoded[at - 1].0[0] != encoded[at].0[0] {
                    encoded.swap(at - 1, at);
                }
            }
        }
        let (mut out, mut rest) = (Vec::new(), &encoded[..]);
        while let Some(((path, _), _)) = rest.split_first() {
            self.unknown(&mut out);
            let number = path[0];
            let length = rest.iter().take_while(|(path, _)| path[0] == number).count();
            let (run, behind) = rest.split_at(length);
            rest = behind;
            if path.len() == 1 {
                for (_, bytes) in run {
                    out.extend_from_slice(bytes);
                }
            } else {
                let inner = run.iter().map(|(path, bytes)| (path[1..].to_vec(), bytes.clone())).collect();
                let inner = self.message(inner);
                put_bytes(&mut out, number, &inner);
            }
        }
        self.unknown(&mut out);
        out
    }

    /// Sometimes writes a field that no type has.
    fn unknown(&mut self, out: &mut Vec<u8>) {
        if self.rng.u8(..) < 4 {
            let number = self.rng.u32(1000..1 << 29);
            let value = match self.rng.u8(0..3) {
                0 => Wire::Varint(self.rng.u64(..)),
                1 => Wire::Fixed64(self.rng.u64(..)),
                _ => Wire::Bytes(b"unknown"),
            };
            put(out, number, value);
        }
    }

    /// Returns the JSON of a member, if JSON has it, and its fields.
    fn member(
        &mut self,
        field: &Field,
        ty: &TypeRef,
        number: u32,
        depth: usize,
    ) -> (Option<Value>, Vec<Vec<u8>>) {
        let is_present = depth > 0 && self.rng.bool();
        let is_pointer = matches!(field.empty, EmptyEncoding::Unchanged | EmptyEncoding::Null);
        match ty.shape() {
            Shape::List { item, .. } => {
                let count = if is_present { self.rng.usize(1..4) } else { 0 };
                let (json, fields): (Vec<_>, Vec<_>) =
                    (0..count).map(|_| self.value(&ty.at(*item), number, depth - 1, false)).unzip();
                let empty = (field.empty != EmptyEncoding::Omitted).then_some(Value::Null);
                (if count == 0 { empty } else { Some(json.into()) }, fields)
            }
            Shape::Map { value, .. } => {
                let count = if is_present { self.rng.usize(1..4) } else { 0 };
                let (json, fields): (Map<_, _>, Vec<_>) =
                    (0..count).map(|index| self.entry(index, &ty.at(*value), number, depth - 1)).unzip();
                ((count > 0).then_some(json.into()), fields)
            }
            _ if is_present => {
                let is_zero = !is_pointer && self.rng.bool();
                let (json, encoded) = self.value(ty, number, depth - 1, is_zero);
                let is_omitted = field.empty == EmptyEncoding::Omitted
                    && (json.is_null() || json == "" || json == json!(0) || json == json!(false));
                ((!is_omitted).then_some(json), self.split(encoded, ty, number))
            }
            _ => match field.empty {
                EmptyEncoding::Zero => {
                    let (json, encoded) = self.value(ty, number, 0, true);
                    // An empty message is written by Go, and may be absent elsewhere.
                    (Some(json), Some(encoded).filter(|_| self.rng.bool()).into_iter().collect())
                }
                EmptyEncoding::Null => (Some(Value::Null), Vec::new()),
                _ => (None, Vec::new()),
            },
        }
    }

    /// Splits the field of a single message into two, in scattered order.
    fn split(&mut self, encoded: Vec<u8>, ty: &TypeRef, number: u32) -> Vec<Vec<u8>> {
        if self.order == Order::Contiguous || !matches!(ty.shape(), Shape::Struct(_)) {
            return vec![encoded];
        }
        let mut fields = super::super::wire::Fields::new(&encoded);
        let Ok(Some((_, Wire::Bytes(message)))) = fields.next() else { panic!("a message") };
        let mut inner = super::super::wire::Fields::new(message);
        for _ in 0..self.rng.usize(0..4) {
            inner.next().unwrap();
        }
        let (first, second) = message.split_at(message.len() - inner.rest().len());
        [first, second]
            .map(|part| {
                let mut out = Vec::new();
                put_bytes(&mut out, number, part);
                out
            })
            .into()
    }

    fn entry(&mut self, index: usize, of: &TypeRef, number: u32, depth: usize) -> ((String, Value), Vec<u8>) {
        let key = format!("{index}{}", self.text());
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, key.as_bytes());
        let json = if let Shape::List { item, .. } = of.shape() {
            let mut items = Vec::new();
            let json: Vec<Value> = (0..self.rng.usize(0..3))
                .map(|_| {
                    let (json, encoded) = self.value(&of.at(*item), 1, 0, false);
                    items.extend(encoded);
                    json
                })
                .collect();
            put_bytes(&mut entry, 2, &items);
            json.into()
        } else {
            let (json, encoded) = self.value(of, 2, depth, false);
            entry.extend(encoded);
            json
        };
        let mut out = Vec::new();
        put_bytes(&mut out, number, &entry);
        ((key, json), out)
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 6] = ["a", "web-0", "größe", "\"\\\n", "日本", "0123456789 0123456789"];
        TEXTS[self.rng.usize(0..TEXTS.len())].to_owned()
    }

    /// Returns a value, and its field with the number.
    fn value(&mut self, ty: &TypeRef, number: u32, depth: usize, is_zero: bool) -> (Value, Vec<u8>) {
        let mut out = Vec::new();
        let json = match ty.shape() {
            Shape::Struct(_) => {
                let (json, message) = self.object(ty, if is_zero { 0 } else { depth });
                put_bytes(&mut out, number, &message);
                json.into()
            }
            Shape::Scalar(scalar) => self.scalar(*scalar, number, is_zero, &mut out),
            Shape::Any => {
                let (json, message) = self.any(ty, depth);
                put_bytes(&mut out, number, &message);
                json
            }
            other => panic!("{other:?} is not a single value"),
        };
        (json, out)
    }

    #[expect(clippy::cast_sign_loss, reason = "negative numbers are sent as two's complement")]
    fn scalar(&mut self, scalar: Scalar, number: u32, is_zero: bool, out: &mut Vec<u8>) -> Value {
        let mut message = Vec::new();
        let (json, wire): (Value, _) = match scalar {
            Scalar::String => {
                let text = if is_zero { String::new() } else { self.text() };
                put_bytes(out, number, text.as_bytes());
                return text.into();
            }
            Scalar::Bytes => {
                let length = if is_zero { 0 } else { self.rng.usize(1..5) };
                message.extend((0..length).map(|_| self.rng.u8(..)));
                (STANDARD.encode(&message).into(), Wire::Bytes(&message))
            }
            Scalar::Int32 => {
                let value = if is_zero { 0 } else { self.rng.i32(-2..) };
                (value.into(), Wire::Varint(i64::from(value) as u64))
            }
            Scalar::Int64 => {
                let value = if is_zero { 0 } else { self.rng.i64(..) };
                (value.into(), Wire::Varint(value as u64))
            }
            Scalar::Boolean => {
                let value = !is_zero && self.rng.bool();
                (value.into(), Wire::Varint(value.into()))
            }
            Scalar::Number => {
                let value = f64::from(self.rng.i16(..)) / 2.0;
                // As Go writes it, without a fraction where there is none.
                let json = serde_json::from_str(&format!("{value}")).unwrap();
                (json, Wire::Fixed64(value.to_bits()))
            }
            Scalar::IntOrString => {
                let value = self.rng.i32(..);
                if !is_zero && self.rng.bool() {
                    let text = self.text();
                    put(&mut message, 1, Wire::Varint(1));
                    put_bytes(&mut message, 3, text.as_bytes());
                    (text.into(), Wire::Bytes(&message))
                } else {
                    let value = if is_zero { 0 } else { value };
                    put(&mut message, 1, Wire::Varint(0));
                    put(&mut message, 2, Wire::Varint(i64::from(value) as u64));
                    put_bytes(&mut message, 3, b"");
                    (value.into(), Wire::Bytes(&message))
                }
            }
            Scalar::Quantity => {
                let text = if is_zero { "0" } else { "100Mi" };
                put_bytes(&mut message, 1, text.as_bytes());
                (text.into(), Wire::Bytes(&message))
            }
            Scalar::Time | Scalar::MicroTime if is_zero => (Value::Null, Wire::Bytes(&[])),
            Scalar::Time | Scalar::MicroTime => {
                let seconds = self.rng.i64(-62_000_000_000..253_000_000_000);
                let nanos = self.rng.i32(0..1_000_000_000);
                let (form, nanos) = match scalar {
                    Scalar::Time => ("%Y-%m-%dT%H:%M:%SZ", 0),
                    _ => ("%Y-%m-%dT%H:%M:%S.%6fZ", nanos / 1000 * 1000),
                };
                put(&mut message, 1, Wire::Varint(seconds as u64));
                put(&mut message, 2, Wire::Varint(i64::from(nanos) as u64));
                let moment =
                    Timestamp::from_nanosecond(i128::from(seconds) * 1_000_000_000 + i128::from(nanos));
                (moment.unwrap().strftime(form).to_string().into(), Wire::Bytes(&message))
            }
        };
        put(out, number, wire);
        json
    }

    /// Returns raw JSON, or a value of one of the unions of JSON schemas.
    fn any(&mut self, ty: &TypeRef, depth: usize) -> (Value, Vec<u8>) {
        let schema = ty.named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
        let name = ty.name().and_then(|name| name.split_once(".JSONSchemaPropsOr"));
        let mut out = Vec::new();
        let depth = depth.saturating_sub(1);
        let json = match (name.map(|(_, rest)| rest), self.rng.bool()) {
            (None, _) => {
                let raw = [json!(null), json!(1.5), json!("x"), json!({"a": [1, {"b": null}], "f:x": {}})];
                let raw = raw[self.rng.usize(0..raw.len())].clone();
                put_bytes(&mut out, 1, raw.to_string().as_bytes());
                raw
            }
            (Some("Bool"), true) => {
                let allows = self.rng.bool();
                put(&mut out, 1, Wire::Varint(allows.into()));
                allows.into()
            }
            (Some("Bool"), false) => {
                put(&mut out, 1, Wire::Varint(1));
                let (json, encoded) = self.value(&schema, 2, depth, false);
                out.extend(encoded);
                json
            }
            (Some(_), true) => {
                let (json, encoded) = self.value(&schema, 1, depth, false);
                out.extend(encoded);
                json
            }
            (Some(list), false) => {
                let items = (0..self.rng.usize(1..3)).map(|_| {
                    if list == "StringArray" {
                        let text = self.text();
                        put_bytes(&mut out, 2, text.as_bytes());
                        return text.into();
                    }
                    let (json, encoded) = self.value(&schema, 2, depth, false);
                    out.extend(encoded);
                    json
                });
                Value::Array(items.collect())
            }
        };
        (json, out)
    }
}
