//! Scripted replies.

use std::{fmt, fmt::Write as _, io, io::Write as _, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::Gate;

/// A reply, as a list of steps that the server performs.
///
/// The constructors create correct responses; the steps added to them are performed in order and may be
/// arbitrary.
#[derive(Debug, Clone, Default)]
#[must_use = "a reply is sent by a ScriptedServer"]
pub struct Reply {
    steps: Vec<Step>,
}

#[derive(Clone)]
enum Step {
    Send(Vec<u8>),
    Drip { bytes: Vec<u8>, at_a_time: usize },
    Repeat { unit: Vec<u8>, times: usize },
    Generate { make: Arc<dyn Fn(usize) -> Vec<u8> + Send + Sync>, times: usize },
    Pass(Gate),
    Close,
    Reset,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(bytes) => f.debug_tuple("Send").field(&bytes.len()).finish(),
            Self::Drip { bytes, at_a_time } => {
                f.debug_tuple("Drip").field(&bytes.len()).field(at_a_time).finish()
            }
            Self::Repeat { unit, times } => f.debug_tuple("Repeat").field(&unit.len()).field(times).finish(),
            Self::Generate { times, .. } => f.debug_tuple("Generate").field(times).finish(),
            Self::Pass(gate) => f.debug_tuple("Pass").field(gate).finish(),
            Self::Close => f.write_str("Close"),
            Self::Reset => f.write_str("Reset"),
        }
    }
}

/// The state of the connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connection {
    KeptAlive,
    Over,
}

impl Reply {
    /// Creates an empty reply.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Creates a reply with a status line and these headers only.
    pub fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        for (name, value) in headers {
            // Writing to a string is infallible.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        Self::nothing().send(head)
    }

    /// Creates a complete response with these headers and a content length.
    pub fn whole(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len().to_string();
        let headers: Vec<_> = headers.iter().copied().chain([("content-length", length.as_str())]).collect();
        Self::head(status, &headers).send(body)
    }

    /// Creates a complete JSON response.
    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::whole(status, &[("content-type", "application/json")], body)
    }

    /// Creates a complete plain text response.
    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::whole(status, &[("content-type", "text/plain; charset=utf-8")], body)
    }

    /// Creates a complete JSON response with gzip compression, even if the client did not request it.
    ///
    /// # Panics
    /// Never panics, because compression into memory is infallible.
    pub fn gzip_json(status: u16, body: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let compressed = encoder.write_all(body).and_then(|()| encoder.finish()).expect("memory takes all");
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        Self::whole(status, &headers, compressed)
    }

    /// Creates the head of a chunked response. Add its body with [`chunk`](Self::chunk).
    pub fn chunked(status: u16, headers: &[(&str, &str)]) -> Self {
        let headers: Vec<_> = headers.iter().copied().chain([("transfer-encoding", "chunked")]).collect();
        Self::head(status, &headers)
    }

    /// Writes bytes unmodified.
    pub fn send(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    /// Writes bytes as one chunk of a chunked body.
    pub fn chunk(self, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        self.send(format!("{:x}\r\n", bytes.len())).send(bytes).send("\r\n")
    }

    /// Ends a chunked body.
    pub fn last_chunk(self) -> Self {
        self.send("0\r\n\r\n")
    }

    /// Writes bytes a few at a time, each time as a separate packet.
    pub fn drip(mut self, bytes: impl Into<Vec<u8>>, at_a_time: usize) -> Self {
        self.steps.push(Step::Drip { bytes: bytes.into(), at_a_time: at_a_time.max(1) });
        self
    }

    /// Writes the same bytes repeatedly, with only one copy in memory.
    pub fn repeat(mut self, unit: impl Into<Vec<u8>>, times: usize) -> Self {
        self.steps.push(Step::Repeat { unit: unit.into(), times });
        self
    }

    /// Writes the results of `make(0)` to `make(times - 1)`, each as a chunk of a chunked body, with only one
    /// in memory at a time.
    pub fn generate(mut self, times: usize, make: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        self.steps.push(Step::Generate { make: Arc::new(make), times });
        self
    }

    /// Waits until the gate is open.
    pub fn wait_for(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Pass(gate.clone()));
        self
    }

    /// Closes the connection regularly.
    pub fn close(mut self) -> Self {
        self.steps.push(Step::Close);
        self
    }

    /// Resets the connection.
    pub fn reset(mut self) -> Self {
        self.steps.push(Step::Reset);
        self
    }

    pub(crate) async fn carry_out(self, stream: &mut TcpStream) -> io::Result<Connection> {
        for step in self.steps {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes).await?,
                Step::Drip { bytes, at_a_time } => {
                    for piece in bytes.chunks(at_a_time) {
                        stream.write_all(piece).await?;
                        // Lets the reader receive it before the next.
                        tokio::task::yield_now().await;
                    }
                }
                Step::Repeat { unit, times } => {
                    for _ in 0..times {
                        stream.write_all(&unit).await?;
                    }
                }
                Step::Generate { make, times } => {
                    for n in 0..times {
                        let bytes = make(n);
                        stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
                        stream.write_all(&bytes).await?;
                        stream.write_all(b"\r\n").await?;
                    }
                }
                Step::Pass(gate) => gate.pass().await,
                Step::Close => {
                    stream.shutdown().await?;
                    return Ok(Connection::Over);
                }
                Step::Reset => {
                    stream.set_zero_linger()?;
                    return Ok(Connection::Over);
                }
            }
        }
        Ok(Connection::KeptAlive)
    }
}
