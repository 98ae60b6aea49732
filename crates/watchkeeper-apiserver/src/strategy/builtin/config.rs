//! Config maps and secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::row::{PLAIN, StrategyRow};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{
        cursor::{Cursor, Errors},
        edit::{self, DefaultValue},
        metadata, names,
    },
};

/// The maximum size of the data of a config map or a secret, in bytes.
const DATA_SIZE: usize = 1024 * 1024;

const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) const CONFIG_MAP: StrategyRow =
    StrategyRow { validate: validate_config_map, validate_update: update_config_map, ..PLAIN };

pub(super) const SECRET: StrategyRow = StrategyRow {
    defaults: secret_defaults,
    validate: validate_secret,
    validate_update: update_secret,
    warnings: |object, _| key_pair_warnings(object),
    ..PLAIN
};

/// Returns the warning about a TLS secret whose data is not PEM. The secret is stored anyway.
fn key_pair_warnings(object: &Value) -> Vec<String> {
    if object.get("type").and_then(Value::as_str) != Some("kubernetes.io/tls") {
        return Vec::new();
    }
    let has_pem = |name: &str| {
        let text = object.get("data").and_then(|data| data.get(name)).and_then(Value::as_str);
        let bytes = STANDARD.decode(text.unwrap_or_default()).unwrap_or_default();
        pem::parse_many(&bytes).is_ok_and(|blocks| !blocks.is_empty())
    };
    let missing =
        [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find(|(name, _)| !has_pem(name));
    missing.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input")).into_iter().collect()
}

/// Returns the decoded length of a base64 text.
fn decoded_len(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

fn keys(data: &Cursor<'_>, errors: &mut Errors) {
    for (name, value) in data.entries() {
        let wrong = names::config_key(name);
        errors.extend(
            wrong.into_iter().map(|detail| {
                FieldError::new(FieldErrorKind::Invalid, value.path(), Some(name.into()), detail)
            }),
        );
    }
}

fn validate_config_map(object: &Cursor<'_>, errors: &mut Errors) {
    let (data, binary) = (object.at("data"), object.at("binaryData"));
    keys(&data, errors);
    keys(&binary, errors);
    for (name, value) in data.entries() {
        if binary.key(name).is_set() {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::new(FieldErrorKind::Invalid, value.path(), Some(name.into()), detail));
        }
    }
    let text: usize = data.entries().map(|(_, value)| value.text().len()).sum();
    let bytes: usize = binary.entries().map(|(_, value)| decoded_len(value.text())).sum();
    if text + bytes > DATA_SIZE {
        errors.push(metadata::too_long(object, DATA_SIZE));
    }
}

fn immutable_members(object: &Cursor<'_>, old: &Cursor<'_>, members: &[&str], errors: &mut Errors) {
    if !old.at("immutable").is_true() {
        return;
    }
    if !object.at("immutable").is_true() {
        errors.push(object.at("immutable").forbidden(FROZEN));
    }
    for member in members {
        let (new, old) = (object.at(member), old.at(member));
        if new.value != old.value && !(new.is_empty() && old.is_empty()) {
            errors.push(new.forbidden(FROZEN));
        }
    }
}

fn update_config_map(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    immutable_members(object, old, &["data", "binaryData"], errors);
}

/// Merges `stringData`, which is write-only, into `data`.
fn secret_defaults(object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    edit::fill(members, "type", DefaultValue::Str("Opaque"));
    let Some(Value::Object(texts)) = members.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    if let Some(data) = edit::object(object, "data") {
        for (name, text) in texts {
            let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
            data.insert(name, encoded.into());
        }
    }
}

fn validate_secret(object: &Cursor<'_>, errors: &mut Errors) {
    let data = object.at("data");
    keys(&data, errors);
    let size: usize = data.entries().map(|(_, value)| decoded_len(value.text())).sum();
    if size > DATA_SIZE {
        errors.push(metadata::too_long(&data, DATA_SIZE));
    }
    let needs = |name: &str, errors: &mut Errors| {
        let entry = data.key(name);
        if !entry.is_set() {
            errors.push(entry.missing(""));
        }
        entry.is_set()
    };
    match object.at("type").text() {
        "kubernetes.io/tls" => {
            needs("tls.crt", errors);
            needs("tls.key", errors);
        }
        "kubernetes.io/basic-auth" if !data.key("username").is_set() && !data.key("password").is_set() => {
            needs("username", errors);
            needs("password", errors);
        }
        "kubernetes.io/ssh-auth" => {
            let key = data.key("ssh-privatekey");
            key.required(errors);
        }
        "kubernetes.io/dockercfg" if needs(".dockercfg", errors) => {
            json_inside(&data.key(".dockercfg"), errors);
        }
        "kubernetes.io/dockerconfigjson" if needs(".dockerconfigjson", errors) => {
            json_inside(&data.key(".dockerconfigjson"), errors);
        }
        "kubernetes.io/service-account-token" => {
            let metadata = object.at("metadata");
            let annotations = metadata.at("annotations");
            annotations.key("kubernetes.io/service-account.name").required(errors);
        }
        _ => {}
    }
}

/// Checks that the bytes are a JSON object. The error does not show the value, because it is secret.
fn json_inside(entry: &Cursor<'_>, errors: &mut Errors) {
    let bytes = STANDARD.decode(entry.text()).unwrap_or_default();
    if serde_json::from_slice::<edit::Members>(&bytes).is_err() {
        errors.push(FieldError::new(
            FieldErrorKind::Invalid,
            entry.path(),
            Some("<secret contents redacted>".into()),
            "must be a JSON object",
        ));
    }
}

fn update_secret(object: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    object.at("type").immutable(&old.at("type"), errors);
    immutable_members(object, old, &["data"], errors);
}
