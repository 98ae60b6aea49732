//! Decoding of request bodies by the schema of their kind.
//!
//! A body is JSON, YAML or protobuf. The result is an object with apiVersion and kind, with normalized values and without
//! unknown fields. Unknown fields and duplicate keys are rejected, reported as warnings or ignored, depending on
//! `fieldValidation`.

mod conform;
mod document;
mod limits;
mod scalar;
mod strict;

use serde_json::Value;

use crate::{
    field::{FieldError, FieldErrorKind},
    kinds::{GroupVersionKind, Kind, Kinds},
    protobuf::{self, Envelope},
    rest::errors,
    schema::TypeRef,
    status::ApiError,
};

use conform::ConformMode;
use document::{ParseError, ParsedBody};
use limits::MAX_PROBLEMS;
use strict::Problems;

/// The treatment of unknown fields and duplicate keys (`fieldValidation`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and report them in `Warning` headers.
    #[default]
    Warn,
    /// Reject the request.
    Strict,
}

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    /// The object, with apiVersion and kind.
    pub object: Value,
    /// The messages for `Warning` headers.
    pub warnings: Vec<String>,
}

/// An object that was checked against its schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckedObject {
    /// The object, without unknown fields.
    pub object: Value,
    /// The problems, such as `unknown field "spec.x"`, one for each unknown field.
    pub problems: Vec<String>,
}

/// The media type of a body or of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// The media type `application/json`.
    Json,
    /// The media type `application/yaml`.
    Yaml,
    /// The media type `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl MediaType {
    /// Returns the media type of a `Content-Type` header; JSON if there is none.
    pub(crate) fn of(content_type: Option<&str>) -> Option<Self> {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "" | "application/json" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }
}

/// Decodes the body of a create or an update of `kind`.
///
/// # Errors
/// 415 for unsupported media types, 400 for bodies that are not an object of the kind.
pub(crate) fn body(
    content_type: Option<&str>,
    body: &[u8],
    kind: &Kind,
    kinds: &Kinds,
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let others = kind.custom.is_some().then_some(kinds);
    let expected = Expected { gvk: &kind.gvk, ty: &kind.ty, others, also: &[] };
    expected.read(content_type, body, validation)
}

/// Decodes the body of a subresource (`Scale`, `Eviction`, `TokenRequest`).
///
/// # Errors
/// Returns the errors of [`body`].
pub(crate) fn subresource(
    content_type: Option<&str>,
    body: &[u8],
    gvk: &GroupVersionKind,
    validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let ty = TypeRef::builtin(crate::schema::builtin().find_kind(gvk));
    // An eviction of the removed version is decoded like the current one.
    let also: &[&str] = if gvk.kind == "Eviction" { &["policy/v1beta1"] } else { &[] };
    Expected { gvk, ty: &ty, others: None, also }.read(content_type, body, validation)
}

/// Decodes the options in the body of a delete. Returns an empty object if there is no body.
///
/// # Errors
/// Returns the errors of [`body`].
pub(crate) fn delete_options(content_type: Option<&str>, body: &[u8]) -> Result<Value, ApiError> {
    if body.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let gvk = GroupVersionKind::new("", "v1", "DeleteOptions");
    let ty = TypeRef::builtin_named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    // Every group accepts the same options under its own versions.
    let expected = Expected { gvk: &gvk, ty: &ty, others: None, also: &["*"] };
    expected.read(content_type, body, FieldValidation::Ignore).map(|decoded| decoded.object)
}

/// Decodes the body of an apply, YAML or JSON, without checking it against the schema, which apply does itself. Strict
/// validation rejects duplicate keys.
///
/// # Errors
/// 400 for malformed bodies.
pub(crate) fn applied(body: &[u8], validation: FieldValidation) -> Result<Decoded, ApiError> {
    let ParsedBody { value, duplicates } =
        ParsedBody::from_yaml(body).map_err(|unreadable| match unreadable {
            ParseError::Syntax(error) => ApiError::bad_request(format!("error decoding YAML: {error}")),
            ParseError::TooLarge => too_large(),
        })?;
    let problems = if duplicates.is_empty() { Problems::default() } else { Problems::of_yaml(body) };
    match validation {
        FieldValidation::Strict if !problems.is_empty() => {
            let why = problems.text();
            Err(ApiError::bad_request(format!(
                "error strict decoding patch: error converting YAML to JSON: {why}"
            )))
        }
        FieldValidation::Warn => Ok(Decoded { object: value, warnings: problems.into_warnings() }),
        _ => Ok(Decoded { object: value, warnings: Vec::new() }),
    }
}

/// Decodes the body of a patch that is not an apply, without checking it. Returns the duplicate keys too.
///
/// # Errors
/// 400 for bodies that are not JSON.
pub(crate) fn patch(body: &[u8]) -> Result<(Value, Vec<String>), ApiError> {
    let ParsedBody { value, duplicates } =
        ParsedBody::from_json(body).map_err(|unreadable| match unreadable {
            ParseError::Syntax(_) => ApiError::bad_request("invalid JSON patch"),
            ParseError::TooLarge => too_large(),
        })?;
    Ok((value, repeated(&duplicates).take(MAX_PROBLEMS).collect()))
}

fn repeated(duplicates: &[String]) -> impl Iterator<Item = String> {
    duplicates.iter().map(|path| format!("duplicate field {path:?}"))
}

fn unknown(paths: &[String]) -> impl Iterator<Item = String> {
    paths.iter().map(|path| format!("unknown field {path:?}"))
}

/// Returns the 413 for a body whose values take too much memory.
fn too_large() -> ApiError {
    let message = "Request entity is too large: the values of the body take too much memory";
    ApiError::new(413, "RequestEntityTooLarge", message)
}

/// Checks an object that results from a patch of a stored object.
///
/// # Errors
/// The message about a value of the wrong type.
pub(crate) fn check(mut object: Value, ty: &TypeRef, is_custom: bool) -> Result<CheckedObject, String> {
    let findings = conform::conform(&mut object, ty, mode(is_custom))?;
    Ok(CheckedObject { object, problems: unknown(&findings.unknown).take(MAX_PROBLEMS).collect() })
}

/// Returns the 422 for a custom object with another kind. Custom objects are decoded whatever their kind, and rejected
/// afterwards.
pub(crate) fn invalid_kind(object: &Value, expected: &GroupVersionKind) -> ApiError {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let given = text(object.get("kind"));
    let wrong = FieldError::new(
        FieldErrorKind::Invalid,
        "kind",
        Some(given.as_str().into()),
        format!("must be {}", expected.kind),
    );
    errors::invalid_as(&given, &expected.group, &text(object.pointer("/metadata/name")), &[wrong])
}

fn mode(is_custom: bool) -> ConformMode {
    if is_custom { ConformMode::Custom } else { ConformMode::BuiltIn }
}

/// The expected content of a body.
struct Expected<'a> {
    gvk: &'a GroupVersionKind,
    ty: &'a TypeRef,
    /// The served kinds; none for a built-in kind.
    others: Option<&'a Kinds>,
    /// Further versions that count as the same.
    also: &'a [&'a str],
}

impl Expected<'_> {
    fn is_custom(&self) -> bool {
        self.others.is_some()
    }

    fn read(
        &self,
        content_type: Option<&str>,
        body: &[u8],
        validation: FieldValidation,
    ) -> Result<Decoded, ApiError> {
        let form =
            MediaType::of(content_type).filter(|form| !(self.is_custom() && *form == MediaType::Protobuf));
        let ParsedBody { value: mut object, duplicates } = match form {
            None => return Err(self.unsupported()),
            Some(MediaType::Json) => {
                self.typed(ParsedBody::from_json(body), body, "json parse error: ", validation)?
            }
            Some(MediaType::Yaml) => {
                let document = ParsedBody::from_yaml(body).map_err(|unreadable| {
                    unreadable.map(|error| format!("error converting YAML to JSON: {error}"))
                });
                self.typed(document, body, "", validation)?
            }
            Some(MediaType::Protobuf) => ParsedBody { value: self.protobuf(body)?, duplicates: Vec::new() },
        };
        let findings = conform::conform(&mut object, self.ty, mode(self.is_custom()))
            .map_err(|wrong| self.cannot_be_handled(&self.gvk.kind, &self.gvk.version, &wrong))?;
        let form = form.unwrap_or(MediaType::Json);
        let problems = Problems::find(form, body, &duplicates, &findings.unknown, self.is_custom());
        match validation {
            FieldValidation::Strict if !problems.is_empty() => {
                let wrong = format!("strict decoding error: {}", problems.text());
                Err(self.cannot_be_handled(&self.gvk.kind, &self.gvk.version, &wrong))
            }
            FieldValidation::Warn => Ok(Decoded { object, warnings: problems.into_warnings() }),
            _ => Ok(Decoded { object, warnings: Vec::new() }),
        }
    }

    /// Checks that a document is an object of the expected kind.
    fn typed(
        &self,
        document: Result<ParsedBody, ParseError>,
        body: &[u8],
        prefix: &str,
        validation: FieldValidation,
    ) -> Result<ParsedBody, ApiError> {
        let unrecognized =
            |wrong: &str| self.unrecognized(&format!("couldn't get version/kind; {prefix}{wrong}"), body);
        let mut document = document.map_err(|unreadable| match unreadable {
            ParseError::Syntax(error) => unrecognized(&error),
            ParseError::TooLarge => too_large(),
        })?;
        let Value::Object(members) = &mut document.value else {
            let found = scalar::json_type(&document.value);
            return Err(unrecognized(&format!(
                "json: cannot unmarshal {found} into Go value of type struct"
            )));
        };
        let word = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => {
                let found = scalar::json_type(other);
                Err(unrecognized(&format!(
                    "json: cannot unmarshal {found} into Go struct field .{name} of type string"
                )))
            }
        };
        let (api_version, kind) = (word("apiVersion")?, word("kind")?);
        let is_own_version = api_version.is_empty() || api_version == self.gvk.api_version();
        if self.is_custom() && is_own_version && !kind.is_empty() && kind != self.gvk.kind {
            return Err(invalid_kind(&Value::Object(members.clone()), self.gvk));
        }
        if let Err(mut refusal) = self.accept(&api_version, &kind) {
            if validation == FieldValidation::Warn {
                refusal.warnings = self.unknown_in(&api_version, &mut document.value);
            }
            return Err(refusal);
        }
        members.insert("apiVersion".into(), self.gvk.api_version().into());
        members.insert("kind".into(), self.gvk.kind.clone().into());
        Ok(document)
    }

    /// Returns the unknown fields of a custom object of another version, by the schema of that version. The object is
    /// decoded before it is rejected, and the findings are reported. In a version that does not exist, every field is
    /// unknown.
    fn unknown_in(&self, api_version: &str, object: &mut Value) -> Vec<String> {
        let Some(kinds) = self.others else { return Vec::new() };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::new(group, version, self.gvk.kind.as_str());
        let paths = match (kinds.by_gvk(&gvk), &*object) {
            (Some(other), _) => {
                conform::conform(object, &other.ty, ConformMode::Custom).unwrap_or_default().unknown
            }
            (None, Value::Object(members)) => {
                let is_known = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata");
                members.keys().filter(|name| !is_known(name)).take(MAX_PROBLEMS).cloned().collect()
            }
            (None, _) => Vec::new(),
        };
        unknown(&paths).take(MAX_PROBLEMS).collect()
    }

    fn protobuf(&self, body: &[u8]) -> Result<Value, ApiError> {
        let Some(message) = body.strip_prefix(&protobuf::MAGIC) else {
            let wrong = format!(
                "provided data does not appear to be a protobuf message, expected prefix {:?}",
                protobuf::MAGIC
            )
            .replace(',', "");
            return Err(self.unrecognized(&wrong, body));
        };
        let envelope =
            Envelope::open(message).map_err(|wrong| self.unrecognized(&wrong.to_string(), body))?;
        self.accept(envelope.api_version, envelope.kind)?;
        let mut object = protobuf::read(envelope.raw, self.ty)
            .map_err(|wrong| self.cannot_be_handled(&self.gvk.kind, &self.gvk.version, &wrong.to_string()))?;
        object["apiVersion"] = self.gvk.api_version().into();
        object["kind"] = self.gvk.kind.clone().into();
        Ok(object)
    }

    /// Checks the apiVersion and kind, which may be omitted.
    fn accept(&self, api_version: &str, kind: &str) -> Result<(), ApiError> {
        let is_kind = kind.is_empty() || kind == self.gvk.kind;
        let is_version = api_version.is_empty() || api_version == self.gvk.api_version();
        if is_kind && (is_version || self.also.iter().any(|also| *also == "*" || *also == api_version)) {
            return Ok(());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let given =
            GroupVersionKind::new(group, version, if kind.is_empty() { &self.gvk.kind } else { kind });
        let is_other_version =
            is_kind && group == self.gvk.group && crate::schema::builtin().find_kind(&given).is_some();
        if is_other_version || (self.is_custom() && !is_version) {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                self.gvk.api_version()
            )));
        }
        let wrong = if crate::schema::builtin().find_kind(&given).is_some() {
            format!("converting ({version}.{}) to ({}): unknown conversion", given.kind, self.gvk.kind)
        } else {
            format!("no kind {:?} is registered for version {api_version:?}", given.kind)
        };
        Err(self.cannot_be_handled(&given.kind, version, &wrong))
    }

    fn unsupported(&self) -> ApiError {
        let protobuf = if self.is_custom() { "" } else { ", application/vnd.kubernetes.protobuf" };
        ApiError::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml{protobuf}"
            ),
        )
    }

    fn cannot_be_handled(&self, kind: &str, version: &str, wrong: &str) -> ApiError {
        let expected = &self.gvk.kind;
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {expected}: {wrong}"
        ))
    }

    fn unrecognized(&self, wrong: &str, body: &[u8]) -> ApiError {
        let expected = &self.gvk.kind;
        let summary = if body.is_empty() { "<empty>".to_owned() } else { format!("{} bytes", body.len()) };
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected}): {wrong} ({summary})"
        ))
    }
}

#[cfg(test)]
mod tests;
