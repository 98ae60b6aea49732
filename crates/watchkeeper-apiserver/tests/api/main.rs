//! The server as seen by its clients.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod apply_versions;
mod clients;
mod conversion;
mod custom;
mod deletion;
mod faults;
mod fields;
mod forms;
mod kubernetes_service;
mod lifecycle;
mod malformed;
mod openapi;
mod pipeline;
mod response_check;
mod rest;
mod scale;
mod strict;
mod support;
mod versions_on_create;
mod warnings;
mod websocket;
