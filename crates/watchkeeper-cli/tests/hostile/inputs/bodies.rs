//! Bodies that are expensive to decode.

use std::fmt::Write as _;

use serde_json::json;

use super::{MAPS, PODS, names};
use crate::{
    http::{Input, request},
    run::Class,
};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Duplicate keys, together with unknown keys.
pub(crate) fn duplicate_and_unknown_fields() -> Class {
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let mut inputs = Vec::new();
    for count in [1_000, 5_000, 15_000] {
        let twice: Vec<String> =
            names(count).map(|key| format!("\"d{key}\":\"1\",\"d{key}\":\"2\"")).collect();
        let unknown: Vec<String> = names(count).map(|key| format!("\"u{key}\":1")).collect();
        let (twice, unknown) = (twice.join(","), unknown.join(","));
        let body = |kind: &str, version: &str| {
            format!(
                "{{\"apiVersion\":\"{version}\",\"kind\":\"{kind}\",\"metadata\":{{\"generateName\":\"x-\",\
                 \"annotations\":{{{twice}}}}},{unknown}}}"
            )
        };
        for validation in ["Strict", "Warn", "Ignore"] {
            let query = format!("?fieldValidation={validation}");
            let map = body("ConfigMap", "v1");
            inputs.push(request("POST", &format!("{MAPS}{query}"), JSON, &map));
            let asked = body("SelfSubjectAccessReview", "authorization.k8s.io/v1");
            inputs.push(request("POST", &format!("{review}{query}"), JSON, asked));
        }
        let map = body("ConfigMap", "v1");
        inputs.push(request("POST", &format!("{MAPS}?fieldValidation=Strict"), YAML, &map));
    }
    Class { inputs, ..Class::default() }
}

/// Bodies whose values need many times their size.
pub(crate) fn growing_bodies() -> Class {
    let mut inputs = Vec::new();
    for count in [50_000, 300_000, 900_000] {
        let empty = "{},".repeat(count);
        inputs.push(request("POST", PODS, JSON, format!("{{\"spec\":{{\"containers\":[{empty}{{}}]}}}}")));
        inputs.push(request("POST", MAPS, JSON, format!("{{\"x\":[{empty}{{}}]}}")));
        // Empty messages in the list of containers of a pod, two bytes each.
        let spec = [vec![0x12, 0x00]; 1].concat().repeat(count);
        let mut message = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12".to_vec();
        let mut raw = vec![0x12];
        varint(&mut raw, spec.len());
        raw.extend(spec);
        varint(&mut message, raw.len());
        message.extend(raw);
        inputs.push(request("POST", PODS, PROTOBUF, message));
    }
    for levels in [6, 9, 12] {
        let mut body = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..levels {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            writeln!(body, "a{level}: &a{level} [{aliases}]").unwrap();
        }
        inputs.push(request("POST", MAPS, YAML, &body));
        let apply = "application/apply-patch+yaml";
        inputs.push(request("PATCH", &format!("{MAPS}/a?fieldManager=m"), apply, &body));
    }
    let merged = format!("a: &a {{k: 1}}\nb: [{}]\n", vec!["{<<: *a}"; 15_000].join(","));
    inputs.push(request("POST", MAPS, YAML, merged));
    Class { inputs, ..Class::default() }
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

/// Bodies that are deep, truncated, or contain numbers and texts of great length.
pub(crate) fn malformed_bodies() -> Class {
    let mut inputs: Vec<Input> = Vec::new();
    for depth in [100, 1_000, 100_000] {
        let (open, close) = ("{\"a\":".repeat(depth), "}".repeat(depth));
        inputs.push(request("POST", MAPS, JSON, format!("{open}1{close}")));
        inputs.push(request("POST", MAPS, JSON, format!("{{\"a\":{}", "[".repeat(depth))));
        inputs.push(request("POST", MAPS, YAML, "[".repeat(depth)));
        inputs.push(request("POST", MAPS, YAML, "- ".repeat(depth)));
        let mut message = Vec::new();
        for _ in 0..depth.min(1_000) {
            let mut outer = vec![0x0a];
            varint(&mut outer, message.len());
            outer.extend(message);
            message = outer;
        }
        inputs.push(request("POST", PODS, PROTOBUF, [b"k8s\0".as_slice(), &message].concat()));
    }
    let digits = "9".repeat(500_000);
    for number in
        [digits.clone(), format!("0.{digits}"), format!("1e{digits}"), format!("-{digits}e-{digits}")]
    {
        inputs.push(request("POST", PODS, JSON, format!("{{\"spec\":{{\"priority\":{number}}}}}")));
        let pod = format!("{{\"spec\":{{\"overhead\":{{\"cpu\":\"{number}\"}}}}}}");
        inputs.push(request("POST", PODS, JSON, pod));
    }
    let escapes = "\\u0000\\ud83d\\ude00\\ud800".repeat(40_000);
    inputs.push(request("POST", MAPS, JSON, format!("{{\"data\":{{\"a\":\"{escapes}\"}}}}")));
    inputs.push(request("POST", PODS, PROTOBUF, b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
    inputs.push(request("POST", PODS, PROTOBUF, [b"k8s\0".as_slice(), &vec![0xff; 100_000]].concat()));
    inputs.push(request("POST", MAPS, JSON, json!({"data": {"a": "x".repeat(3_500_000)}}).to_string()));
    Class { inputs, ..Class::default() }
}
