//! Watchkeeper's informer, the waits of its client, and kube's reflector against the embedded server: list, watch, write,
//! resume after a broken connection and after a compaction, in process on virtual time and over sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod informer;
mod names;
mod reflector;
mod script;
mod waits;
