//! Controllers: what runs on top of informers and work queues.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Controller`], [`ReconcileLoop`] | the reconcile loop: where keys come from, who works on them |
//! | [`Reconciler`], [`Request`], [`Context`], [`Action`], [`ReconcileError`] | what its users write, are given and say |
//! | [`predicate`], [`Watching`], [`Change`], [`Triggers`] | which changes have which keys looked at |
//! | [`HotLoop`], [`metrics`] | what it finds out about itself |
//! | [`runnable`] | what a manager starts and stops |
//! | [`access`] | what a controller does to the API, declared: the source of its RBAC rules |
//! | [`leader`] | at most one of several replicas works at a time, by a `Lease` |
//! | [`time`] | the clocks, injected |

pub mod access;
mod action;
mod change;
mod context;
mod controller;
mod error;
mod hot_loop;
pub mod leader;
mod mapping;
mod memory;
pub mod metrics;
mod outcome;
pub mod predicate;
mod reconciler;
mod request;
pub mod runnable;
mod source;
pub mod time;
mod triggers;
mod writes;

pub use watchkeeper_workqueue::{Cause, Causes, Priority};

pub use self::{
    action::Action,
    change::{Change, ChangeKind},
    context::{Context, Freshness, NotWatched},
    controller::{Controller, GaveUp, GiveUpReason, ReconcileLoop},
    error::{ErrorClass, ReconcileError},
    hot_loop::{HotLoop, HotLoopLimits, Writes},
    mapping::each_state,
    reconciler::Reconciler,
    request::Request,
    source::{SourceStatus, Watching},
    triggers::Triggers,
};
