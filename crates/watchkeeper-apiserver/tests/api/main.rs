//! The server as its clients see it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answer;
mod clients;
mod lifecycle;
mod nonsense;
mod pipeline;
mod rest;
mod support;
