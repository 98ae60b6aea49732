//! A scripted HTTP/1.1 server for fault injection.
//!
//! Production servers cannot be made to reset a connection in the middle of a header or to stop after 17
//! bytes. This server writes exactly the scripted bytes over a plain socket on the loopback interface, and
//! records the requests as received.
//!
//! | item | role |
//! |---|---|
//! | [`Reply`] | the bytes to write: whole responses, or steps (bytes, chunks, drips, repetitions, waits, resets) |
//! | [`Gate`] | holds a reply until the test opens it, and notifies the test when it is reached |
//! | [`ScriptedServer`] | replies in the order of a script, or from a function of the request |
//! | [`Received`] | one request, verbatim |
//!
//! The server never sleeps: gates determine the order of events.
//!
//! ```
//! # use watchkeeper_test_support::{Reply, ScriptedServer};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ScriptedServer::script([
//!     Reply::json(200, r#"{"major":"1","minor":"33"}"#),
//!     Reply::text(503, "shutting down"),
//!     Reply::head(200, &[("content-length", "100")]).send("{\"cut").reset(),
//! ])
//! .await;
//! let client = server.client();
//! # let _ = client;
//! // ... use the client ...
//! assert!(server.received().is_empty());
//! # Ok(())
//! # }
//! ```

mod gate;
mod received;
mod reply;
mod server;

pub use gate::Gate;
pub use received::Received;
pub use reply::Reply;
pub use server::ScriptedServer;
