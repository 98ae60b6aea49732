//! Errors of a reconcile.

use std::{error::Error, fmt, iter};

use kube_core::Status;
use watchkeeper_client::error::{ApiReason, StatusSummary};

/// The cause type in a conflict `Status` for an applied field that another manager owns.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// An error of a reconcile, with the [class](ErrorClass) that decides when its key is reconciled again.
///
/// Every `std::error::Error` converts into a `ReconcileError`, so `?` works in a reconciler. The conversion derives the class from
/// the error and its [sources](Error::source):
///
/// | error | class |
/// |---|---|
/// | a 409 response with reason `Conflict`: the write was based on an old state | [`Conflict`](ErrorClass::Conflict): retried soon, not counted as a failure |
/// | created by [`ReconcileError::terminal`] | [`Terminal`](ErrorClass::Terminal): not retried until an event or a resync enqueues the key |
/// | any other error | [`Retry`](ErrorClass::Retry): retried after the backoff of the key, counted as a failure |
///
/// A conflict of server-side apply, where another manager owns a field, has the class `Retry`: it persists until the field is released.
///
/// A `ReconcileError` converts into `Box<dyn Error + Send + Sync>` and keeps its class there, also as the source of another error. The
/// type itself does not implement `std::error::Error`, because the conversion from every error would then be ambiguous;
/// [`as_error`](Self::as_error) returns the error inside. [`ReconcileError::new`] accepts boxed errors, text and `anyhow::Error`.
///
/// ```
/// use watchkeeper_controller::{Action, ErrorClass, ReconcileError};
///
/// fn replicas(text: &str) -> Result<u32, ReconcileError> {
///     let replicas: u32 = text.parse()?; // retried
///     if replicas > 100 {
///         return Err(ReconcileError::terminal("more than 100 replicas; reduce spec.replicas"));
///     }
///     Ok(replicas)
/// }
/// assert_eq!(replicas("many").unwrap_err().class(), ErrorClass::Retry);
/// assert_eq!(replicas("101").unwrap_err().class(), ErrorClass::Terminal);
/// ```
pub struct ReconcileError(Classified);

/// An error of any type, as accepted by functions that convert it into a [`ReconcileError`].
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error and its class. The class of a [`ReconcileError`] is found by this type when the error was boxed or is the source of
/// another error.
#[derive(Debug)]
struct Classified {
    class: ErrorClass,
    source: BoxError,
}

/// The effect of a failure on its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The key is reconciled again after its backoff.
    Retry,
    /// The reconciled state was outdated, such as when a write failed with 409. The key is reconciled again soon,
    /// without a warning.
    Conflict,
    /// The key is not reconciled again until an event or a resync enqueues it: retrying cannot succeed.
    Terminal,
}

impl ReconcileError {
    /// Creates an error whose class is derived, as by `?`. For boxed errors, text and `anyhow::Error`, to which `?` does not apply.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::of(None, error.into())
    }

    /// Creates an error of class [`Retry`](ErrorClass::Retry).
    pub fn retry(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::of(Some(ErrorClass::Retry), error.into())
    }

    /// Creates an error of class [`Terminal`](ErrorClass::Terminal), for failures that retrying cannot fix.
    #[doc(alias = "TerminalError")]
    pub fn terminal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::of(Some(ErrorClass::Terminal), error.into())
    }

    /// Creates an error of class [`Conflict`](ErrorClass::Conflict), for failures caused by reconciling an old state.
    pub fn conflict(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::of(Some(ErrorClass::Conflict), error.into())
    }

    fn of(class: Option<ErrorClass>, error: BoxError) -> Self {
        Self(match error.downcast::<Classified>() {
            // A boxed `ReconcileError`: unwrapped, so that `as_error` returns the original error.
            Ok(inner) => Classified { class: class.unwrap_or(inner.class), source: inner.source },
            Err(source) => Classified { class: class.unwrap_or_else(|| classify(&*source)), source },
        })
    }

    /// Returns the class of this error.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// Returns the error inside.
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.source.as_ref()
    }

    /// Returns the error and its causes in one line, for logs. Of a server's `Status` the line contains a summary.
    pub(crate) fn chain(&self) -> impl fmt::Display + '_ {
        Chain(self.0.source.as_ref())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl From<ReconcileError> for Box<dyn Error + Send + Sync> {
    fn from(ReconcileError(classified): ReconcileError) -> Self {
        Box::new(classified)
    }
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Classified { class, source } = &self.0;
        f.debug_struct("ReconcileError").field("class", class).field("source", source).finish()
    }
}

impl fmt::Display for Classified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl Error for Classified {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

struct Chain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = causes_of(self.0).find_map(status_of);
        let mut written = summarized(self.0, status);
        f.write_str(&written)?;
        for cause in causes_of(self.0).skip(1) {
            let cause = summarized(cause, status);
            // Many errors contain the text of their cause.
            if !written.contains(&cause) {
                write!(f, ": {cause}")?;
                written = cause;
            }
        }
        Ok(())
    }
}

/// Returns the text of `error`, in which a summary replaces the whole `Status` that kube's errors print.
fn summarized(error: &(dyn Error + 'static), status: Option<&Status>) -> String {
    let text = error.to_string();
    let Some(status) = status else { return text };
    let summary = StatusSummary(status).to_string();
    if as_status(error).is_some() {
        return summary;
    }
    text.replace(&watchkeeper_client::kube_client::Error::Api(Box::new(status.clone())).to_string(), &summary)
}

/// Returns the error and its sources, outermost first.
fn causes_of<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

fn classify(error: &(dyn Error + 'static)) -> ErrorClass {
    causes_of(error).find_map(class_of).unwrap_or(ErrorClass::Retry)
}

fn class_of(error: &(dyn Error + 'static)) -> Option<ErrorClass> {
    if let Some(classified) = error.downcast_ref::<Classified>() {
        return Some(classified.class);
    }
    let status = status_of(error)?;
    Some(if is_stale_write(status) { ErrorClass::Conflict } else { ErrorClass::Retry })
}

/// Returns the `Status` of a rejected request, if `error` is about one.
fn status_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    if let Some(watchkeeper_client::kube_client::Error::Api(status)) = error.downcast_ref() {
        return Some(status);
    }
    let boxed = || error.downcast_ref::<Box<watchkeeper_client::Error>>().map(AsRef::as_ref);
    let ours = error.downcast_ref::<watchkeeper_client::Error>().or_else(boxed);
    ours.and_then(watchkeeper_client::Error::status).or_else(|| as_status(error))
}

/// Returns `error` if it is a `Status`: the source of a transparent wrapper around kube's error is that `Status`.
fn as_status<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    error.downcast_ref::<Status>().or_else(|| error.downcast_ref::<Box<Status>>().map(AsRef::as_ref))
}

fn is_stale_write(status: &Status) -> bool {
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    ApiReason::of(status) == ApiReason::Conflict
        && !causes.iter().any(|cause| cause.reason == FIELD_MANAGER_CONFLICT)
}

#[cfg(test)]
mod tests {
    use kube_core::response::{StatusCause, StatusDetails};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error(transparent)]
        Transparent(watchkeeper_client::kube_client::Error),
        #[error("cannot write")]
        Sourced(#[source] watchkeeper_client::kube_client::Error),
        #[error("cannot write")]
        Boxed(#[source] Box<watchkeeper_client::kube_client::Error>),
        #[error("while writing: {0}")]
        Quoted(#[source] watchkeeper_client::kube_client::Error),
        #[error("twice: {0}")]
        Nested(#[source] Box<Wrapped>),
    }

    fn api(code: u16, reason: &str, causes: &[&str]) -> watchkeeper_client::kube_client::Error {
        let cause = |reason: &&str| StatusCause {
            reason: (*reason).to_owned(),
            message: String::new(),
            field: String::new(),
        };
        let details = StatusDetails {
            name: "web".into(),
            group: "apps".into(),
            kind: "deployments".into(),
            uid: String::new(),
            causes: causes.iter().map(cause).collect(),
            retry_after_seconds: 0,
        };
        let status = Status::failure("not allowed", reason).with_code(code);
        watchkeeper_client::kube_client::Error::Api(Box::new(Status { details: Some(details), ..status }))
    }

    #[test]
    fn a_class_survives_a_box_and_can_be_replaced() {
        let boxed: BoxError = ReconcileError::terminal(api(409, "Conflict", &[])).into();
        let error = ReconcileError::new(boxed);
        assert_eq!(error.class(), ErrorClass::Terminal);
        assert!(
            error.as_error().is::<watchkeeper_client::kube_client::Error>(),
            "the original error, without the box"
        );
        assert_eq!(ReconcileError::retry(error).class(), ErrorClass::Retry);
    }

    #[test]
    fn the_class_of_an_error_is_derived_through_its_wrappers() {
        let cases: [(ReconcileError, ErrorClass); 9] = [
            (api(409, "Conflict", &[]).into(), ErrorClass::Conflict),
            (api(409, "Conflict", &["FieldManagerConflict"]).into(), ErrorClass::Retry),
            (api(409, "AlreadyExists", &[]).into(), ErrorClass::Retry),
            (api(403, "Forbidden", &[]).into(), ErrorClass::Retry),
            (Wrapped::Transparent(api(409, "Conflict", &[])).into(), ErrorClass::Conflict),
            (Wrapped::Sourced(api(409, "Conflict", &[])).into(), ErrorClass::Conflict),
            (Wrapped::Boxed(Box::new(api(409, "Conflict", &[]))).into(), ErrorClass::Conflict),
            (ReconcileError::retry(api(409, "Conflict", &[])), ErrorClass::Retry),
            (ReconcileError::new("not ready"), ErrorClass::Retry),
        ];
        for (error, class) in cases {
            assert_eq!(error.class(), class, "{error:?}");
        }
    }

    #[test]
    fn a_log_line_names_each_cause_once_and_summarizes_the_status_of_the_server() {
        let forbidden = || api(403, "Forbidden", &["FieldManagerConflict"]);
        let summary = "forbidden (403 Forbidden): not allowed";
        let cases: [(ReconcileError, &str); 7] = [
            (forbidden().into(), ""),
            (Wrapped::Transparent(forbidden()).into(), ""),
            (Wrapped::Sourced(forbidden()).into(), "cannot write: "),
            (Wrapped::Boxed(Box::new(forbidden())).into(), "cannot write: "),
            (Wrapped::Quoted(forbidden()).into(), "while writing: "),
            (Wrapped::Nested(Box::new(Wrapped::Quoted(forbidden()))).into(), "twice: while writing: "),
            (ReconcileError::terminal(forbidden()), ""),
        ];
        for (error, prefix) in cases {
            let line = error.chain().to_string();
            assert!(line.starts_with(&format!("{prefix}{summary}")), "{line}");
            assert_eq!(line.matches("not allowed").count(), 1, "{line}");
            assert!(!line.contains("Status {") && !line.contains("FieldManagerConflict"), "{line}");
        }
        assert_eq!(ReconcileError::new("not ready").chain().to_string(), "not ready");
    }
}
