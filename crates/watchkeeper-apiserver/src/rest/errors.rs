//! The errors of the API, with the messages and details of kube-apiserver.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    field::{FieldError, FieldErrorKind, MAX_ERRORS},
    kinds::Kind,
    status::{ApiError, Cause, Details},
};

/// The maximum size of all causes of one response, in bytes. Further errors are counted, not described.
const MAX_CAUSES_BYTES: usize = 1024 * 1024;

/// Returns the qualified name: `pods`, or `deployments.apps`.
fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

fn about(kind: &Kind, name: &str) -> Details {
    Details {
        name: Some(name.to_owned()),
        group: Some(kind.gvk.group.clone()),
        kind: Some(kind.plural.clone()),
        ..Details::default()
    }
}

/// Returns the 404 for an object that does not exist.
pub(crate) fn not_found(kind: &Kind, name: &str) -> ApiError {
    let resource = qualified(&kind.plural, &kind.gvk.group);
    ApiError::new(404, "NotFound", format!("{resource} {name:?} not found")).with_details(about(kind, name))
}

/// Returns the 404 for a path that does not exist.
pub(crate) fn no_such_resource() -> ApiError {
    ApiError::new(404, "NotFound", "the server could not find the requested resource")
        .with_details(Details::default())
}

/// Returns the 405.
pub(crate) fn method_not_allowed() -> ApiError {
    ApiError::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        .with_details(Details::default())
}

/// Returns the 409 for a name that is in use, possibly by an object that is being deleted.
pub(crate) fn already_exists(kind: &Kind, name: &str, is_being_deleted: bool) -> ApiError {
    let resource = qualified(&kind.plural, &kind.gvk.group);
    let prefix = if is_being_deleted { "object is being deleted: " } else { "" };
    ApiError::new(409, "AlreadyExists", format!("{prefix}{resource} {name:?} already exists"))
        .with_details(about(kind, name))
}

/// Returns the 409 for an object that does not match the client's expectation.
pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> ApiError {
    let resource = qualified(&kind.plural, &kind.gvk.group);
    ApiError::new(409, "Conflict", format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"))
        .with_details(about(kind, name))
}

/// Returns the 409 for an object that was modified concurrently.
pub(crate) fn modified(kind: &Kind, name: &str) -> ApiError {
    conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

/// Returns the 409 for a failed precondition of a deletion. It names the kind where other conflicts name the resource.
pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> ApiError {
    let subject = qualified(&kind.gvk.kind, &kind.gvk.group);
    let mut details = about(kind, name);
    details.kind = Some(kind.gvk.kind.clone());
    ApiError::new(409, "Conflict", format!("Operation cannot be fulfilled on {subject} {name:?}: {why}"))
        .with_details(details)
}

/// Returns the 403.
pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> ApiError {
    let resource = qualified(&kind.plural, &kind.gvk.group);
    let subject = if name.is_empty() { resource } else { format!("{resource} {name:?}") };
    ApiError::new(403, "Forbidden", format!("{subject} is forbidden: {why}")).with_details(about(kind, name))
}

/// Returns the 422 for an invalid object. A kind that is served in two groups is named as it is stored.
pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> ApiError {
    invalid_as(&kind.gvk.kind, &kind.storage.group, name, errors)
}

/// Returns the 422 for something other than the object, such as its options.
pub(crate) fn invalid_as(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> ApiError {
    // Errors with the same text appear once in the message, but each is a cause.
    let mut listed: HashSet<String> = HashSet::new();
    let mut texts: Vec<String> = Vec::new();
    let mut causes = Vec::new();
    let mut bytes = 0;
    for error in errors {
        let message = field_message(error);
        bytes += error.path.len() + message.len();
        if causes.len() == MAX_ERRORS || bytes > MAX_CAUSES_BYTES {
            texts.push(format!("... ({} more errors)", errors.len() - causes.len()));
            break;
        }
        let text = format!("{}: {message}", error.path);
        if listed.insert(text.clone()) {
            texts.push(text);
        }
        causes.push(Cause {
            reason: error.kind.reason().to_owned(),
            message,
            field: Some(error.path.clone()),
        });
    }
    let list = match texts.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", texts.join(", ")),
    };
    let subject = qualified(kind, group);
    ApiError::new(422, "Invalid", format!("{subject} {name:?} is invalid: {list}")).with_details(Details {
        name: Some(name.to_owned()),
        group: Some(group.to_owned()),
        kind: Some(kind.to_owned()),
        causes,
        ..Details::default()
    })
}

/// Returns the 504 for a requested version in the future.
pub(crate) fn version_too_large(requested: u64, current: u64) -> ApiError {
    ApiError::new(504, "Timeout", format!("Too large resource version: {requested}, current: {current}"))
        .with_details(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".into(),
                message: "Too large resource version".into(),
                field: None,
            }],
            retry_after_seconds: Some(1),
            ..Details::default()
        })
}

/// Returns the 410 for a requested version that is no longer retained.
pub(crate) fn expired(message: impl Into<String>) -> ApiError {
    ApiError::new(410, "Expired", message)
}

/// Returns the 500 without a reason for a resourceVersion that is not a number, outside of lists.
pub(crate) fn unreadable_version(text: &str) -> ApiError {
    ApiError::new(500, "", version_message(text))
}

/// Returns the message about a resourceVersion that is not a number.
pub(crate) fn version_message(text: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
}

/// Returns the text of a cause: the kind of error, the value, and the explanation.
fn field_message(error: &FieldError) -> String {
    let value = error.bad_value.as_ref().map(Value::to_string).unwrap_or_default();
    let words = match error.kind {
        FieldErrorKind::Required => "Required value".to_owned(),
        FieldErrorKind::Forbidden => "Forbidden".to_owned(),
        FieldErrorKind::Invalid | FieldErrorKind::TypeInvalid => format!("Invalid value: {value}"),
        FieldErrorKind::NotSupported => format!("Unsupported value: {value}"),
        FieldErrorKind::Duplicate => format!("Duplicate value: {value}"),
        FieldErrorKind::NotFound => format!("Not found: {value}"),
        FieldErrorKind::TooLong => "Too long".to_owned(),
        FieldErrorKind::TooMany => format!("Too many: {value}"),
        FieldErrorKind::Internal => "Internal error".to_owned(),
    };
    if error.detail.is_empty() { words } else { format!("{words}: {}", error.detail) }
}
