//! Answers that are errors, as the `Status` objects clients branch on.

use serde_json::Value;

use crate::field::cut;

/// One cause in the details of a status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    /// A word programs branch on, such as `FieldValueInvalid` or `FieldManagerConflict`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The field it is about, if it is about one.
    pub field: Option<String>,
}

/// Details of a status: which object it is about, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Details {
    /// Name of the object.
    pub name: Option<String>,
    /// API group of the object, without version.
    pub group: Option<String>,
    /// The resource (plural) or the kind, as upstream has it for the same error.
    pub kind: Option<String>,
    /// Uid of the object.
    pub uid: Option<String>,
    /// What exactly.
    pub causes: Vec<Cause>,
    /// When trying again makes sense; sent as a `Retry-After` header as well.
    pub retry_after_seconds: Option<u32>,
}

/// The longest message of an error, in bytes. Longer ones are cut: they quote what the client sent.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// An error answer. It prints as its message, and [`ApiError::to_status`] is what goes over the wire.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The reason programs branch on, such as `NotFound`; empty for upstream's unknown reason.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// Which object, and why.
    pub details: Option<Box<Details>>,
    /// Where to go on with a list whose version has expired.
    pub continue_token: Option<Box<str>>,
    /// What to tell the client beside it, in `Warning` headers.
    pub warnings: Vec<String>,
}

impl ApiError {
    /// An error with a code, a reason and a message.
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

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Returns a 401.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 500.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// The same error with details.
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

    /// The `Status` object of this error.
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
