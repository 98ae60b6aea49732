//! Errors of requests that received no response.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use super::CredentialError;
use crate::error::Awaited;

/// The reason that a request received no response head.
///
/// A kube client wraps this error in [`kube_client::Error::Service`]; [`TransportError::of`] extracts it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The credential was not available. The request was not sent.
    #[error("no credential for {server}: {source}")]
    Credential {
        /// The API server.
        server: String,
        /// The error of the credential source.
        #[source]
        source: Arc<CredentialError>,
    },
    /// The certificates of the system, or the configured ones, are not usable. The request was not sent.
    #[error(
        "TLS cannot be set up: {reason}; configure a certificate authority or install the system's certificates"
    )]
    TlsSetup {
        /// The message of the TLS library.
        reason: String,
    },
    /// The connection could not be established, so the request was not sent: the connection was refused or timed
    /// out, the host name did not resolve, or the certificate was rejected.
    #[error("cannot connect to {server}: {reason}")]
    Connect {
        /// The API server.
        server: String,
        /// The causes, outermost first.
        reason: String,
        /// The outermost cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The connection ended before the response head. Whether the server processed the request is unknown.
    #[error("connection to {server} ended before a response: {reason}")]
    Interrupted {
        /// The API server.
        server: String,
        /// The causes, outermost first.
        reason: String,
        /// The outermost cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The response head was malformed, had more than 100 headers, or was larger than
    /// [`Limits::header_bytes`](crate::limits::Limits::header_bytes).
    #[error(
        "response head from {server} rejected: {reason} (the limit is {limit_bytes} bytes); the server or a proxy before it is broken, or Limits::header_bytes is too small"
    )]
    BadHead {
        /// The API server.
        server: String,
        /// The problem with the response head.
        reason: String,
        /// The size limit in bytes.
        limit_bytes: usize,
    },
    /// The response, or a part of it, did not arrive before a deadline of the [`Client`](crate::Client) that the kube client
    /// was converted from.
    #[error("{part} within {after:?}")]
    Late {
        /// The part that did not arrive.
        part: Awaited,
        /// The length of the deadline.
        after: Duration,
    },
    /// The response exceeds one of the [`Limits`](crate::limits::Limits) of the [`Client`](crate::Client) that the kube client
    /// was converted from.
    #[error("the response exceeds {limit} = {allowed}; raise it if responses this large are expected")]
    Limit {
        /// The name of the limit.
        limit: &'static str,
        /// The value of the limit.
        allowed: u64,
    },
    /// The path and query cannot be combined with the address of the server.
    #[error("request to {server}: path and query of {length} bytes do not form a valid URL")]
    BadTarget {
        /// The API server.
        server: String,
        /// The length of path and query in bytes.
        length: usize,
    },
}

impl TransportError {
    /// Returns the transport error inside a kube client's error, if there is one.
    pub fn of(error: &kube_client::Error) -> Option<&Self> {
        match error {
            kube_client::Error::Service(inner) => inner.downcast_ref(),
            _ => None,
        }
    }

    /// Returns whether the request certainly never reached the server, so that sending it again cannot repeat
    /// an action.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Credential { .. }
            | Self::TlsSetup { .. }
            | Self::Connect { .. }
            | Self::BadTarget { .. } => true,
            Self::Interrupted { .. } | Self::BadHead { .. } | Self::Late { .. } | Self::Limit { .. } => false,
        }
    }

    pub(crate) fn from_exchange(
        server: String,
        limit_bytes: usize,
        error: hyper_util::client::legacy::Error,
    ) -> Self {
        // Hyper reports parse errors of a head only as text.
        if let Some(parse) = causes(&error).find(|cause| is_parse(*cause)) {
            return Self::BadHead { server, reason: parse.to_string(), limit_bytes };
        }
        let reason = causes(&error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
        if error.is_connect() {
            Self::Connect { server, reason, source: Box::new(error) }
        } else {
            Self::Interrupted { server, reason, source: Box::new(error) }
        }
    }
}

/// The connection was not established in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection after {}s", .0.as_secs_f32())]
pub(crate) struct ConnectTimeout(pub(crate) Duration);

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn is_parse(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
}
