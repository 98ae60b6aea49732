//! The fuzz targets: requests generated from the bytes of an input, sent to an in-process server.

use std::fmt::Write as _;

use http::Request;
use serde_json::{Map, Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::{bits::Bits, response_check};

/// A part of the server that parses client input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Bodies in JSON, YAML and protobuf.
    Decode,
    /// Patches of all kinds.
    Patch,
    /// Label and field selectors.
    Selectors,
    /// Rules of definitions, in CEL.
    Rules,
    /// Schemas of definitions, and objects that are validated by them.
    Schemas,
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

/// Sends requests to a new server.
///
/// # Panics
/// Panics if a response is not one that clients understand.
pub(crate) fn send(requests: Vec<Request<Vec<u8>>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let server = ApiServer::builder().seed(1).controllers(false).build();
        for request in requests {
            response_check::check(&server, request).await;
        }
        server.shutdown().await;
    });
}

/// Returns the requests that `input` generates for `target`.
pub(crate) fn requests(target: Target, input: &[u8]) -> Vec<Request<Vec<u8>>> {
    let bits = &mut Bits::new(input);
    let requests = match target {
        Target::Decode => decode(bits),
        Target::Patch => patch(bits),
        Target::Selectors => selectors(bits),
        Target::Rules => rules(bits),
        Target::Schemas => schemas(bits),
    };
    requests.into_iter().flatten().collect()
}

fn request(method: &str, target: &str, content_type: &str, body: Vec<u8>) -> Option<Request<Vec<u8>>> {
    Request::builder().method(method).uri(target).header("content-type", content_type).body(body).ok()
}

fn post(target: &str, object: &Value) -> Option<Request<Vec<u8>>> {
    request("POST", target, "application/json", object.to_string().into_bytes())
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "a", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "X", "value": "1"}],
         "resources": {"limits": {"cpu": "100m"}}}]}})
}

fn decode(bits: &mut Bits<'_>) -> Vec<Option<Request<Vec<u8>>>> {
    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: &l {a: b}}\ndata: {<<: *l, c: \"d\"}\n";
    let mut object = pod();
    for _ in 0..bits.below(4) {
        let section = bits.pick(&["/metadata", "/spec", "/spec/containers/0", "/metadata/labels"]);
        if let Some(Value::Object(members)) = object.pointer_mut(section) {
            let name = bits.word();
            let value = bits.value(3);
            members.insert(name, value);
        }
    }
    let (target, content_type, mut body) = match bits.below(4) {
        0 => (PODS, "application/json", object.to_string().into_bytes()),
        1 => (PODS, "application/yaml", object.to_string().into_bytes()),
        2 => (MAPS, "application/yaml", yaml.as_bytes().to_vec()),
        _ => {
            let message = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x12\x0a\x03\x0a\x01p\x12\x0b\x12\x09\x0a\x01a\x12\x01i\x32\x01x";
            (PODS, "application/vnd.kubernetes.protobuf", message.to_vec())
        }
    };
    bits.mutate(&mut body);
    let validation = bits.pick(&["Strict", "Warn", "Ignore"]);
    vec![request("POST", &format!("{target}?fieldValidation={validation}"), content_type, body)]
}

fn patch(bits: &mut Bits<'_>) -> Vec<Option<Request<Vec<u8>>>> {
    let mut input = vec![post(PODS, &pod())];
    for _ in 0..=bits.below(2) {
        let target = format!("{PODS}/p?fieldManager=m&force=true");
        input.push(if bits.below(2) == 0 {
            let operations: Vec<Value> = (0..bits.count()).map(|_| operation(bits)).collect();
            request(
                "PATCH",
                &target,
                "application/json-patch+json",
                json!(operations).to_string().into_bytes(),
            )
        } else {
            let form = bits.pick(&[
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ]);
            let mut patch = pod();
            for section in ["/spec/containers/0", "/spec", "/metadata"] {
                if let Some(Value::Object(members)) = patch.pointer_mut(section) {
                    let name = bits.word();
                    let value = bits.value(3);
                    members.insert(name, value);
                }
            }
            let mut body = patch.to_string().into_bytes();
            bits.mutate(&mut body);
            request("PATCH", &target, form, body)
        });
    }
    input
}

fn operation(bits: &mut Bits<'_>) -> Value {
    let path = |bits: &mut Bits<'_>| -> String {
        let start = bits.pick(&["/spec/containers/0", "/metadata/labels", "/spec/containers", "", "/spec"]);
        format!("{start}/{}", bits.pick(&["env/0", "0", "-", "-1", "name", "a", "~1", "", "1", "env/-"]))
    };
    let op = bits.pick(&["add", "remove", "replace", "move", "copy", "test", "x"]);
    json!({"op": op, "path": path(bits), "from": path(bits), "value": bits.value(2)})
}

fn selectors(bits: &mut Bits<'_>) -> Vec<Option<Request<Vec<u8>>>> {
    let mut input = vec![post(PODS, &pod())];
    for kind in ["labelSelector", "fieldSelector"] {
        let mut terms = Vec::new();
        for _ in 0..bits.count() {
            let key = bits.pick(&["a", "b", "metadata.name", "spec.nodeName", "x/y", "ä", "!a", ""]);
            let operator = bits.pick(&["=", "!=", "==", " in ", " notin ", ">", "<", "", "\\", "("]);
            let value = bits.pick(&["b", "(a,b)", "(,)", "()", "1", "", "p", "\\,", "(("]);
            terms.push(format!("{key}{operator}{value}"));
        }
        let mut text = terms.join(bits.pick(&[",", " ", ",,"])).into_bytes();
        bits.mutate(&mut text);
        // As in a query: percent-encoded.
        let mut encoded = String::new();
        for byte in text.iter().take(8_000) {
            _ = write!(encoded, "%{byte:02x}");
        }
        input.push(request("GET", &format!("{PODS}?{kind}={encoded}"), "application/json", Vec::new()));
    }
    input
}

fn definition(spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

fn custom_object(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

fn expression(bits: &mut Bits<'_>, depth: usize) -> String {
    if depth == 0 {
        let leaves =
            ["self.s", "self.l", "self.n", "'a'", "1", "[]", "{}", "true", "x", "oldSelf.s", "1.5", "b'a'"];
        return bits.pick(&leaves).to_owned();
    }
    let left = expression(bits, depth - 1);
    match bits.below(8) {
        0 => format!(
            "({left} {} {})",
            bits.pick(&["==", "+", "&&", "||", "in", "<", "/", "-"]),
            expression(bits, depth - 1)
        ),
        1 => format!(
            "{left}.{}(x, {})",
            bits.pick(&["all", "exists", "map", "filter", "exists_one"]),
            expression(bits, depth - 1)
        ),
        2 => format!(
            "{left}.{}()",
            bits.pick(&["size", "lowerAscii", "sort", "sum", "trim", "reverse", "isSorted"])
        ),
        3 => format!(
            "{left}.{}({})",
            bits.pick(&["contains", "matches", "split", "join", "startsWith", "findAll", "indexOf"]),
            expression(bits, depth - 1)
        ),
        4 => format!(
            "{}({left})",
            bits.pick(&["size", "string", "int", "has", "type", "dyn", "quantity", "lists.range", "url"])
        ),
        5 => format!("[{left}, {}]", expression(bits, depth - 1)),
        6 => format!("({left} ? {} : {})", expression(bits, depth - 1), expression(bits, depth - 1)),
        _ => format!("{left}[{}]", expression(bits, depth - 1)),
    }
}

fn rules(bits: &mut Bits<'_>) -> Vec<Option<Request<Vec<u8>>>> {
    let depth = bits.below(5);
    let mut rule = expression(bits, depth).into_bytes();
    if bits.below(4) == 3 {
        bits.mutate(&mut rule);
    }
    let rule = String::from_utf8_lossy(&rule).into_owned();
    let spec = json!({"type": "object",
        "properties": {"s": {"type": "string", "maxLength": 100}, "n": {"type": "integer"},
            "l": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 20}}},
        "x-kubernetes-validations": [{"rule": rule}]});
    let length = bits.below(51);
    let object = custom_object(&json!({"s": "a".repeat(length * 2), "n": 3, "l": vec!["ab"; length]}));
    vec![post(DEFINITIONS, &definition(&spec)), post(THINGS, &object)]
}

fn schema(bits: &mut Bits<'_>, depth: usize) -> Value {
    let mut schema = Map::new();
    let kind = bits.pick(&["object", "array", "string", "integer", "number", "boolean"]);
    schema.insert("type".into(), kind.into());
    if depth > 0 && kind == "object" {
        let names = (0..bits.below(4)).map(|_| bits.word()).collect::<Vec<_>>();
        let properties: Map<String, Value> =
            names.iter().map(|name| (name.clone(), schema_below(bits, depth))).collect();
        let member = bits.pick(&["properties", "properties", "additionalProperties"]);
        let of = if member == "properties" { properties.into() } else { schema_below(bits, depth) };
        schema.insert(member.into(), of);
        schema.insert("required".into(), names.into());
    } else if kind == "array" {
        schema.insert("items".into(), schema_below(bits, depth));
        let list = bits.pick(&["atomic", "set", "map"]);
        schema.insert("x-kubernetes-list-type".into(), list.into());
        schema.insert("x-kubernetes-list-map-keys".into(), json!([bits.word()]));
    }
    for _ in 0..bits.below(4) {
        let (name, value) = keyword(bits, depth);
        schema.insert(name.into(), value);
    }
    Value::Object(schema)
}

fn schema_below(bits: &mut Bits<'_>, depth: usize) -> Value {
    if depth == 0 { json!({"type": "string"}) } else { schema(bits, depth - 1) }
}

fn keyword(bits: &mut Bits<'_>, depth: usize) -> (&'static str, Value) {
    match bits.below(10) {
        0 => ("enum", (0..bits.count()).map(|section| json!(format!("v{section}"))).collect()),
        1 => {
            let patterns = ["^a*$", "(a|b){100}", r"\w{50}", "(", r"\pL{20}", "(a*)*b"];
            ("pattern", bits.pick(&patterns).into())
        }
        2 => (
            ["allOf", "anyOf", "oneOf"][bits.below(3)],
            (0..bits.below(4)).map(|_| schema_below(bits, depth)).collect(),
        ),
        3 => ("not", schema_below(bits, depth)),
        4 => ("default", bits.value(2)),
        5 => ("maxLength", json!(bits.below(65_536))),
        6 => ("nullable", json!(true)),
        7 => ("x-kubernetes-preserve-unknown-fields", json!(true)),
        8 => ("format", bits.pick(&["date-time", "ipv4", "uri", "byte", "x"]).into()),
        _ => ("x-kubernetes-int-or-string", json!(true)),
    }
}

fn schemas(bits: &mut Bits<'_>) -> Vec<Option<Request<Vec<u8>>>> {
    let spec = schema(bits, 3);
    let object = custom_object(&bits.value(4));
    vec![post(DEFINITIONS, &definition(&spec)), post(THINGS, &object)]
}
