//! The server as seen by its clients.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod answer;
mod apply_versions;
mod clients;
mod conversion;
mod custom;
mod deletion;
mod faults;
mod fields;
mod forms;
mod lifecycle;
mod nonsense;
mod openapi;
mod own_service;
mod pipeline;
mod rest;
mod scale;
mod strict;
mod support;
mod versions_on_create;
mod warnings;
mod websocket;
