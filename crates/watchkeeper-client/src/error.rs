//! What can go wrong between a request and its result.

/// Why a request did not give a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transport failed before a whole response arrived.
    #[error("transport: {0}")]
    Transport(#[source] kube_client::Error),
}
