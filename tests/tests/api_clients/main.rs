//! Our informer, waits of our client, and kube's reflector against the embedded server: they list, watch, write, resume after the wire broke and
//! after history is gone, in process on virtual time and over sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod informer;
mod reflector;
mod script;
mod waits;
