//! Watches that are not read.

use serde_json::json;

use super::{MAPS, names};
use crate::{
    http::{Input, post},
    run::Class,
};

/// Watches of objects that change, whose clients do not read.
pub(crate) fn unread() -> Class {
    let mut inputs = Vec::new();
    for (number, name) in names(30).enumerate() {
        for form in [
            "application/json",
            "application/vnd.kubernetes.protobuf",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ] {
            let watch = format!(
                "GET {MAPS}?watch=1&timeoutSeconds={} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {form}\r\n\r\n",
                1 + number % 3
            );
            inputs.push(Input::Held(watch.into_bytes()));
        }
        let data = json!({"a": name.repeat(2_000)});
        inputs.push(post(MAPS, &json!({"metadata": {"generateName": "m-"}, "data": data})));
    }
    Class { inputs, ..Class::default() }
}
