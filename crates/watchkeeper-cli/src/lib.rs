//! The `watchkeeper` program, as a library.
//!
//! | module | content |
//! |---|---|
//! | [`program`] | the arguments and the dispatch of commands |
//! | [`cluster`] | selection of a cluster |
//! | [`demo`] | `demo`: the sample controller in action |
//! | [`sample`] | the sample controller |
//! | [`serve`] | `serve`: the API server for kubectl |
//! | [`table`] | `get` and `watch`: tables from informers |
//! | [`scaffold`] | `new`: an operator from a template |
//! | [`manifests`] | `crd` and `rbac`: manifests of the sample |
//! | [`changes`] | waiting for a condition on informers |
//! | [`exit`] | failures and exit codes |

pub mod changes;
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
pub mod serve;
mod stop;
pub mod table;
mod terminal;
