//! A scripted HTTP/1.1 server that can misbehave.
//!
//! Servers made for production cannot be made to reset a connection in the middle of a header or to stop after 17
//! bytes. This one writes what the script says, byte for byte, over a plain socket on the loopback interface, and
//! keeps what it received as it was on the wire.
//!
//! | | |
//! |---|---|
//! | [`Reply`] | what to write: whole answers, or steps (bytes, chunks, drips, repetitions, waits, cuts) |
//! | [`Gate`] | holds a reply until the test opens it, and tells the test when it was reached |
//! | [`ScriptedServer`] | replies in the order of a script, or from a function of the request |
//! | [`Received`] | one request, verbatim |
//!
//! Nothing in it sleeps: what has to happen in an order is ordered by gates.
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
