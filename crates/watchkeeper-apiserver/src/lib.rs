//! A Kubernetes API server to embed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`apply`] | server-side apply, and who manages which field |
//! | [`auth`] | who asks, and whether they may |
//! | [`patch`] | JSON patch, merge patch, strategic merge patch |
//! | [`status`] | answers that are errors, as the `Status` objects clients branch on |
//! | [`field`] | what is wrong with one field of an object |
//! | [`schema`] | the types objects are made of, built-in and custom, in one form |
//! | [`decode`] | request bodies, JSON, YAML and protobuf, read by the schema |
//! | [`convert`] | objects from one version of their kind to another |
//! | [`discovery`] | what is served, told to clients |
//! | [`openapi`] | what objects look like, told to clients |
//! | [`table`] | objects as rows of a table |
//! | [`protobuf`] | objects of built-in kinds as protobuf |
//! | [`kinds`] | what is served: kinds, their names, verbs and rules |
//! | [`crd`] | kinds that come and go at run time |
//! | [`strategy`] | what differs between kinds when an object is created or changed |

mod apply;
mod auth;
mod clock;
mod controllers;
mod convert;
mod crd;
mod decode;
mod discovery;
mod field;
mod http;
mod kinds;
mod openapi;
mod patch;
mod protobuf;
mod rest;
mod schema;
mod selector;
mod server;
mod status;
mod storage;
mod strategy;
mod table;
mod watch;

pub use auth::tokens::TokenFileError;
pub use clock::{Clock, Sleep, TokioClock};
pub use http::{Endpoint, ResponseBody};
pub use server::{ApiServer, ApiServerBuilder, ApiService};
