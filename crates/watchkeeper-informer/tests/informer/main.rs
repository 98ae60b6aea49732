//! Informers and reflectors against scripted sources and scripted HTTP servers, on virtual time where possible.

mod encoded;
#[path = "../memory/probe_server.rs"]
mod probe_server;
mod probes;
mod readme;
mod reflector;
mod shared;
