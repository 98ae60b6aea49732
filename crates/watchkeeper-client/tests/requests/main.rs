//! Requests, retries, deadlines and error classification with in-process services and virtual time. No sockets.

mod classifier;
mod conversions;
mod list_watch_time;
mod paths;
mod rest_time;
mod scripted;
mod wire_format;
