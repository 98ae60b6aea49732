//! Received requests.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A request as received on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The request line, without its line end: `GET /api/v1/pods?limit=2 HTTP/1.1`.
    pub line: String,
    /// The headers in the order received, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Returns the path and query, as sent.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// Reads one request. Returns `None` if the peer closed the connection before the first byte of another.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        // One byte at a time, because the bytes after the head must stay in the socket. Tests send little.
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && head.is_empty() => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut request = Self { line, headers, body: Vec::new() };
        let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        stream.read_exact(&mut request.body).await?;
        Ok(Some(request))
    }
}
