//! Error responses, encoded as `Status` objects.

use serde_json::Value;

use crate::field::cut;

/// A cause in the details of a status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid` or `FieldManagerConflict`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The field that the cause is about, if any.
    pub field: Option<String>,
}

/// The details of a status: the object that the status is about, and the causes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Details {
    /// The name of the object.
    pub name: Option<String>,
    /// The API group of the object, without the version.
    pub group: Option<String>,
    /// The resource (plural) or the kind of the object, whichever upstream uses for the same error.
    pub kind: Option<String>,
    /// The uid of the object.
    pub uid: Option<String>,
    /// The causes of the error.
    pub causes: Vec<Cause>,
    /// The number of seconds after which a retry makes sense; also sent as a `Retry-After` header.
    pub retry_after_seconds: Option<u32>,
}

/// The longest message of an error, in bytes. Longer messages are truncated, because messages quote client input.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// An error response. Displays as its message; [`ApiError::to_status`] is the form on the wire.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`; empty for upstream's unknown reason.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
    /// The object that the error is about, and the causes.
    pub details: Option<Box<Details>>,
    /// The token with which to continue a list whose version has expired.
    pub continue_token: Option<Box<str>>,
    /// Additional messages for the client, sent as `Warning` headers.
    pub warnings: Vec<String>,
}

impl ApiError {
    /// Creates an error with a code, a reason and a message.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: cut(message.into(), MAX_MESSAGE_BYTES),
            details: None,
            continue_token: None,
            warnings: Vec::new(),
        }
    }

    /// Creates a 400 error.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Creates a 401 error.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Creates a 500 error.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// Returns the same error with details.
    #[must_use]
    pub(crate) fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Returns the same error with more warnings for the client.
    #[must_use]
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Returns the `Status` object of this error.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = serde_json::json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = (&**token).into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut members = serde_json::Map::new();
        let texts = [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)];
        for (member, text) in texts {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                members.insert(member.into(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            members.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        if let Some(seconds) = self.retry_after_seconds {
            members.insert("retryAfterSeconds".into(), seconds.into());
        }
        Value::Object(members)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut members = serde_json::Map::new();
        let texts = [
            ("reason", Some(&self.reason)),
            ("message", Some(&self.message)),
            ("field", self.field.as_ref()),
        ];
        for (member, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                members.insert(member.into(), text.as_str().into());
            }
        }
        Value::Object(members)
    }
}
