//! The reconcile itself: what users write, the loop that calls it, and the consequences of its result.
//!
//! | file | contents |
//! |---|---|
//! | `reconciler.rs`, `request.rs`, `context.rs` | the reconcile function and its input |
//! | `action.rs`, `error.rs` | its result |
//! | `controller/` | the builder: sources, settings, declared access |
//! | `reconcile_loop.rs` | start, workers, resync and stop |
//! | `worker.rs` | one worker: dequeue, reconcile, apply the outcome |
//! | `outcome.rs` | the next queue operation for an outcome, as a function |
//! | `stop.rs` | the tokens that stop a run |

mod action;
mod context;
mod controller;
mod error;
mod outcome;
mod reconcile_loop;
mod reconciler;
mod request;
mod stop;
mod worker;

pub use self::{
    action::Action,
    context::{Context, Freshness, NotWatched},
    controller::{AbandonReason, AbandonedKey, Controller},
    error::{ErrorClass, ReconcileError},
    reconcile_loop::ReconcileLoop,
    reconciler::Reconciler,
    request::Request,
};
pub(crate) use self::{action::Requeue, context::Caches, outcome::Outcome};
