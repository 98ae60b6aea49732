//! Requests as bytes on a socket.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Bytes that are sent to the server.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A request whose response is read to its end.
    Request(Vec<u8>),
    /// Bytes after which the client neither writes nor reads. The connection is closed when all inputs were sent.
    Held(Vec<u8>),
}

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server responded with this status.
    Status(u16),
    /// The server closed the connection without a response.
    Closed,
    /// The server did not respond in time.
    Silent,
}

/// Returns a request with a body.
pub(crate) fn request(method: &str, target: &str, content_type: &str, body: impl AsRef<[u8]>) -> Input {
    let body = body.as_ref();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    Input::Request([head.as_bytes(), body].concat())
}

/// Returns the creation of an object.
pub(crate) fn post(target: &str, object: &Value) -> Input {
    request("POST", target, "application/json", object.to_string())
}

/// Returns a read with further header lines.
pub(crate) fn get(target: &str, headers: &str) -> Input {
    let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\r\n");
    Input::Request(head.into_bytes())
}

/// Sends a request and reads the response to its end.
pub(crate) fn exchange(address: SocketAddr, request: &[u8], timeout: Duration) -> Outcome {
    let Ok(mut stream) = TcpStream::connect(address) else { return Outcome::Closed };
    stream.set_read_timeout(Some(timeout)).unwrap();
    stream.set_write_timeout(Some(timeout)).unwrap();
    // The server may respond and close before it has read a body that is too long.
    let written = stream.write_all(request);
    if written.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)) {
        return Outcome::Silent;
    }
    let (mut head, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return status(&head),
            Ok(count) => {
                if head.len() < 64 {
                    head.extend_from_slice(&chunk[..count]);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Outcome::Silent;
            }
            Err(_) => return status(&head),
        }
    }
}

fn status(head: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(&head[..head.len().min(64)]);
    let code = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    code.map_or(Outcome::Closed, Outcome::Status)
}
