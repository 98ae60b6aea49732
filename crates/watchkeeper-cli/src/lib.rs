//! The `watchkeeper` program, as a library.
//!
//! | module | what it is |
//! |---|---|
//! | [`program`] | the arguments, and what each command does |
//! | [`cluster`] | which cluster is meant |
//! | [`demo`] | `demo`: the sample controller at work |
//! | [`sample`] | the sample controller |
//! | [`serve`] | `serve`: the API server for kubectl |
//! | [`table`] | `get` and `watch`: tables from informers |
//! | [`scaffold`] | `new`: an operator from a template |
//! | [`manifests`] | `crd` and `rbac`: what to install for the sample |
//! | [`seen`] | waiting until something is seen |
//! | [`exit`] | what can go wrong, and the exit codes |

pub mod cluster;
mod completions;
pub mod demo;
mod escape;
pub mod exit;
mod files;
pub mod manifests;
pub mod program;
pub mod sample;
pub mod scaffold;
pub mod seen;
pub mod serve;
mod stop;
pub mod table;
mod terminal;
