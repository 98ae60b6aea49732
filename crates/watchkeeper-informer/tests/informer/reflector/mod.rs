//! The reflector, black box: a scripted server on one side, a sink on the other, and virtual time.

mod cases;
mod decisions;
mod driver;
mod informer_story;
mod listing;
mod logs;
mod quarantine;
mod restore;
mod server;
mod status;
mod story;
mod streaming;
mod support;
mod watching;
