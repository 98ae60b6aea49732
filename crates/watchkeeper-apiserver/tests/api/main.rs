//! The server as its clients see it.

mod clients;
mod rest;
mod support;
