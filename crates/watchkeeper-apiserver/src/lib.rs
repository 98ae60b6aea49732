//! A Kubernetes API server to embed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`status`] | answers that are errors, as the `Status` objects clients branch on |
//! | [`field`] | what is wrong with one field of an object |
//! | [`schema`] | the types objects are made of, built-in and custom, in one form |
//! | [`kinds`] | what is served: kinds, their names, verbs and rules |
//! | [`strategy`] | what differs between kinds when an object is created or changed |

mod clock;
mod controllers;
pub mod field;
pub mod kinds;
pub mod schema;
pub mod status;
pub mod strategy;
