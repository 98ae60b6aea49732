//! Why a request got no response.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use super::CredentialError;
use crate::error::Awaited;

/// Why a request got no response head. Inside [`kube_client::Error::Service`] when it comes through a kube
/// client; [`TransportError::of`] finds it there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// There was nothing to authenticate the request with. It was not sent.
    #[error("no credential for {server}: {source}")]
    Credential {
        /// The API server.
        server: String,
        /// Why not.
        #[source]
        source: Arc<CredentialError>,
    },
    /// The certificates of the machine, or those configured, cannot be used at all. The request was not sent.
    #[error("TLS cannot be set up: {reason}; configure a certificate authority or install the system's")]
    TlsSetup {
        /// What the TLS library said.
        reason: String,
    },
    /// No connection could be made, so the request was not sent: refused, unresolvable, timed out, or a
    /// certificate that was not accepted.
    #[error("cannot connect to {server}: {reason}")]
    Connect {
        /// The API server.
        server: String,
        /// The causes, outermost first.
        reason: String,
        /// The first of them.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The connection ended before a response head; whether the server acted on the request is not known.
    #[error("connection to {server} ended before a response: {reason}")]
    Interrupted {
        /// The API server.
        server: String,
        /// The causes, outermost first.
        reason: String,
        /// The first of them.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The response head was malformed, had more than 100 headers, or was larger than
    /// [`Limits::header_bytes`](crate::limits::Limits::header_bytes).
    #[error(
        "response head from {server} was not accepted: {reason} (its bound is {limit_bytes} bytes); the server or a proxy before it is broken, or Limits::header_bytes is too small"
    )]
    BadHead {
        /// The API server.
        server: String,
        /// What is wrong with it.
        reason: String,
        /// The bound on its size.
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
    /// Path and query do not fit behind the address of the server.
    #[error("request to {server}: path and query of {length} bytes do not make a URL with it")]
    BadTarget {
        /// The API server.
        server: String,
        /// Bytes of path and query.
        length: usize,
    },
}

impl TransportError {
    /// The transport's own error in what a kube client reports, if it is there.
    pub fn of(error: &kube_client::Error) -> Option<&Self> {
        match error {
            kube_client::Error::Service(inner) => inner.downcast_ref(),
            _ => None,
        }
    }

    /// Whether the request certainly never reached the server, so that sending it again cannot repeat anything.
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
        // hyper tells clients only that a head could not be parsed; why is in its words.
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

/// A connection was not ready in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection after {}s", .0.as_secs_f32())]
pub(crate) struct ConnectTimeout(pub(crate) Duration);

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn is_parse(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
}
