//! Reads with long selectors, paths, headers and queries.

use serde_json::json;

use super::{MAPS, PODS, names};
use crate::{
    http::{Input, get, post},
    run::Class,
};

/// Lists and watches with selectors of many terms over many objects.
pub(crate) fn selectors() -> Class {
    let setup = names(300)
        .map(|name| {
            let labels = json!({"a": name, "b": "1", "size": "5"});
            post(MAPS, &json!({"metadata": {"generateName": "m-", "labels": labels}}))
        })
        .collect();
    let mut inputs = Vec::new();
    for count in [100, 1_000, 4_000] {
        let join = |term: &dyn Fn(&str) -> String| {
            names(count).map(|name| term(&name)).collect::<Vec<_>>().join(",")
        };
        let selectors = [
            format!("labelSelector={}", join(&|name| format!("a!%3D{name}x"))),
            format!("labelSelector={}", join(&|name| format!("!{name}"))),
            format!("labelSelector=a%20in%20({})", join(&str::to_owned)),
            format!("labelSelector={}", join(&|_| "size%3E1".to_owned())),
            format!("fieldSelector={}", join(&|name| format!("metadata.name!%3D{name}"))),
        ];
        for selector in selectors {
            inputs.push(get(&format!("{MAPS}?{selector}"), ""));
            inputs.push(get(&format!("{MAPS}?watch=1&timeoutSeconds=1&{selector}"), ""));
        }
    }
    Class { setup, inputs }
}

/// Requests whose line or headers are long.
pub(crate) fn requests() -> Class {
    let mut inputs: Vec<Input> = Vec::new();
    for count in [100, 1_000, 5_000, 20_000] {
        inputs.push(get(PODS, &format!("Accept: {}\r\n", vec!["a/b;q=0.1;as=Table"; count].join(","))));
        inputs.push(get(PODS, &format!("Accept: application/json{}\r\n", ";a=b".repeat(count))));
        let parameters: Vec<String> = names(count).map(|name| format!("{name}=1")).collect();
        inputs.push(get(&format!("{PODS}?{}", parameters.join("&")), ""));
        inputs.push(get(&format!("{PODS}?{}", vec!["dryRun=All"; count].join("&")), ""));
        inputs.push(get(&format!("/api{}", "/v1".repeat(count)), ""));
        inputs.push(get(&format!("/api/v1/namespaces/{}/pods", "%2e".repeat(count)), ""));
        inputs.push(get(&format!("{PODS}?limit=1&continue={}", "A".repeat(count)), ""));
        let headers: Vec<String> = names(count).map(|name| format!("X-{name}: 1\r\n")).collect();
        inputs.push(get(PODS, &headers.concat()));
        inputs.push(get(PODS, &format!("Authorization: Bearer {}\r\n", "x".repeat(count))));
    }
    Class { inputs, ..Class::default() }
}
