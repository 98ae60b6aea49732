//! How a reconcile fails.

use std::{error::Error, fmt, iter};

use kube_core::Status;
use watchkeeper_client::error::ApiReason;

/// The reason a server gives, among the causes of a conflict, when another manager owns a field that was applied.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// Why a reconcile failed, and what that means for its key.
///
/// Every error turns into one, so that `?` works in a reconciler. What it means is found out by looking at it and at what
/// caused it:
///
/// | | what becomes of the key |
/// |---|---|
/// | an answer of 409 `Conflict`: the write was based on an old state | [quietly again](ErrorClass::Conflict), when the newer state has been seen or after a short while |
/// | everything else | [again after its backoff](ErrorClass::Retry), counted as a failure |
/// | what the reconciler calls [terminal](Self::terminal) | [not again](ErrorClass::Terminal), until something changes |
///
/// A conflict of server-side apply, where another manager owns a field, is none of the quiet ones: it does not go away by
/// itself.
///
/// It is no `std::error::Error` itself, so that every such error can be turned into it; [`as_error`](Self::as_error) is
/// the one inside.
///
/// ```
/// use watchkeeper_controller::{Action, ErrorClass, ReconcileError};
///
/// fn replicas(text: &str) -> Result<u32, ReconcileError> {
///     let replicas: u32 = text.parse()?; // to be tried again
///     if replicas > 100 {
///         return Err(ReconcileError::terminal("more than 100 replicas; nothing but an edit can mend this"));
///     }
///     Ok(replicas)
/// }
/// assert_eq!(replicas("many").unwrap_err().class(), ErrorClass::Retry);
/// assert_eq!(replicas("101").unwrap_err().class(), ErrorClass::Terminal);
/// ```
pub struct ReconcileError {
    class: ErrorClass,
    source: Source,
}

type Source = Box<dyn Error + Send + Sync>;

/// What a failure means for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The key is tried again after its backoff.
    Retry,
    /// The key is tried again soon, and nobody is alarmed: the state it was reconciled from was old.
    Conflict,
    /// Trying again is of no use. The key waits until something changes.
    Terminal,
}

impl ReconcileError {
    /// An error whose meaning is found out, as with `?`. For errors in a box, and for plain text.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = error.into();
        Self { class: classify(source.as_ref()), source }
    }

    /// An error to be tried again after a backoff, whatever it is.
    pub fn retry(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Retry, source: error.into() }
    }

    /// An error that trying again does not mend.
    pub fn terminal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Terminal, source: error.into() }
    }

    /// An error that comes from an old state and is gone with it.
    pub fn conflict(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { class: ErrorClass::Conflict, source: error.into() }
    }

    /// What it means for the key.
    pub fn class(&self) -> ErrorClass {
        self.class
    }

    /// The error inside.
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.source.as_ref()
    }

    /// The error inside, and everything that caused it, in one line.
    pub(crate) fn chain(&self) -> impl fmt::Display + '_ {
        Chain(self.source.as_ref())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl fmt::Debug for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconcileError").field("class", &self.class).field("source", &self.source).finish()
    }
}

struct Chain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        for cause in causes_of(self.0).skip(1) {
            let cause = cause.to_string();
            // Many errors repeat their cause in their own words.
            if !said.contains(&cause) {
                write!(f, ": {cause}")?;
                said = cause;
            }
        }
        Ok(())
    }
}

/// An error and what caused it, outermost first.
fn causes_of<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

fn classify(error: &(dyn Error + 'static)) -> ErrorClass {
    match causes_of(error).find_map(status_of) {
        Some(status) if is_stale_write(status) => ErrorClass::Conflict,
        _ => ErrorClass::Retry,
    }
}

/// What the server said, if this error is about that. Transparent wrappers pass the status on without the error around it.
fn status_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    if let Some(kube_client::Error::Api(status)) = error.downcast_ref() {
        return Some(status);
    }
    if let Some(watchkeeper_client::Error::Api { status, .. }) = error.downcast_ref() {
        return Some(status);
    }
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
        Transparent(kube_client::Error),
        #[error("cannot write")]
        Sourced(#[source] kube_client::Error),
        #[error("cannot write")]
        Boxed(#[source] Box<kube_client::Error>),
    }

    fn api(code: u16, reason: &str, causes: &[&str]) -> kube_client::Error {
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
        let status = Status::failure("said no", reason).with_code(code);
        kube_client::Error::Api(Box::new(Status { details: Some(details), ..status }))
    }

    #[test]
    fn what_a_failure_means_is_found_wherever_it_is_wrapped() {
        let cases: [(ReconcileError, ErrorClass); 9] = [
            (api(409, "Conflict", &[]).into(), ErrorClass::Conflict),
            (api(409, "Conflict", &["FieldManagerConflict"]).into(), ErrorClass::Retry),
            (api(409, "AlreadyExists", &[]).into(), ErrorClass::Retry),
            (api(403, "Forbidden", &[]).into(), ErrorClass::Retry),
            (Wrapped::Transparent(api(409, "Conflict", &[])).into(), ErrorClass::Conflict),
            (Wrapped::Sourced(api(409, "Conflict", &[])).into(), ErrorClass::Conflict),
            (Wrapped::Boxed(Box::new(api(409, "Conflict", &[]))).into(), ErrorClass::Conflict),
            (ReconcileError::retry(api(409, "Conflict", &[])), ErrorClass::Retry),
            (ReconcileError::new("out of luck"), ErrorClass::Retry),
        ];
        for (error, class) in cases {
            assert_eq!(error.class(), class, "{error:?}");
        }
    }

    #[test]
    fn the_chain_names_each_cause_once() {
        let error = ReconcileError::from(Wrapped::Sourced(api(403, "Forbidden", &[])));
        let chain = error.chain().to_string();
        assert!(chain.starts_with("cannot write: ApiError: said no: Forbidden"), "{chain}");
        assert_eq!(chain.matches("cannot write").count(), 1);
    }
}
