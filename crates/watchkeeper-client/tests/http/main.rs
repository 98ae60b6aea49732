//! Clients against HTTP servers on the loopback interface.

mod clientset;
mod discovery;
mod dynamic;
mod faults;
mod list_watch;
mod rest;
#[cfg(all(feature = "http2", feature = "proxy", feature = "rustls-tls"))]
mod transport;
