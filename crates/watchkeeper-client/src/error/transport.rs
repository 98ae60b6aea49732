//! Classification of connection failures by the types of errors, not by their texts.

use std::{error::Error as StdError, fmt, io};

use crate::transport::TransportError;

/// The kind of a connection failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportKind {
    /// The connection was refused: no process listens on the address.
    Refused,
    /// The connection was reset or closed by the peer.
    Reset,
    /// The connection ended in the middle of a response.
    UnexpectedEof,
    /// The operating system or the HTTP stack timed out.
    TimedOut,
    /// The host is unreachable: no route, or the network is down.
    Unreachable,
    /// The TLS handshake or certificate verification failed.
    Tls,
    /// The response is not valid HTTP.
    Malformed,
    /// The credentials to send could not be obtained.
    Credentials,
    /// Any other failure, including name resolution.
    Other,
}

impl TransportKind {
    /// Returns the kind of `error`, from the first error in its source chain that can be classified.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(error);
        // The kind of an outer layer is kept in case no source is more specific: hyper reports "incomplete message"
        // and has no cause for it, but for a broken body it has the cause one level down.
        let mut outer = Self::Other;
        while let Some(error) = next {
            let kind = Self::of_one(error);
            if kind == Self::Credentials || (kind != Self::Other && error.is::<io::Error>()) {
                return kind;
            }
            if error.is::<rustls::Error>() {
                return Self::Tls;
            }
            if outer == Self::Other {
                outer = kind;
            }
            next = below(error);
        }
        outer
    }

    fn of_one(error: &(dyn StdError + 'static)) -> Self {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return match error.kind() {
                io::ErrorKind::ConnectionRefused => Self::Refused,
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => Self::Reset,
                io::ErrorKind::UnexpectedEof => Self::UnexpectedEof,
                io::ErrorKind::TimedOut => Self::TimedOut,
                io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::NetworkDown
                | io::ErrorKind::AddrNotAvailable => Self::Unreachable,
                _ => Self::Other,
            };
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            return if error.is_incomplete_message() {
                Self::UnexpectedEof
            } else if error.is_timeout() {
                Self::TimedOut
            } else if error.is_closed() || error.is_canceled() || error.is_body_write_aborted() {
                Self::Reset
            } else if error.is_parse() {
                Self::Malformed
            } else {
                Self::Other
            };
        }
        match error.downcast_ref::<TransportError>() {
            Some(TransportError::Credential { .. }) => return Self::Credentials,
            Some(TransportError::TlsSetup { .. }) => return Self::Tls,
            Some(TransportError::BadHead { .. }) => return Self::Malformed,
            Some(_) | None => {}
        }
        match error.downcast_ref::<kube_client::Error>() {
            Some(kube_client::Error::Auth(_)) => Self::Credentials,
            _ if error.is::<kube_client::client::AuthError>() => Self::Credentials,
            _ => Self::Other,
        }
    }
}

/// Returns the next error in the source chain. An `io::Error` that wraps another error skips that error in `source`, so it is
/// read with `get_ref`.
fn below<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused; check that the server runs and the address is right",
            Self::Reset => "the connection was reset",
            Self::UnexpectedEof => "the connection ended in the middle of the response",
            Self::TimedOut => "the connection timed out",
            Self::Unreachable => "the server is unreachable",
            Self::Tls => {
                "no trusted TLS connection; check the certificate authority and the client certificate"
            }
            Self::Malformed => "the response is not HTTP",
            Self::Credentials => "the credentials to send could not be obtained",
            Self::Other => "the connection failed",
        })
    }
}
