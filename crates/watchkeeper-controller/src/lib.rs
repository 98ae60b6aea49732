//! Controllers: what runs on top of informers and work queues.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Controller`], [`ReconcileLoop`] | the reconcile loop: where keys come from, who works on them |
//! | [`Reconciler`], [`Request`], [`Context`], [`Action`], [`ReconcileError`] | what its users write, are given and say |
//! | [`predicate`], [`Watching`], [`Change`], [`each_state`], [`Triggers`] | which changes have which keys looked at |
//! | [`HotLoop`], [`HotLoopLimits`] | keys that keep themselves busy |
//! | [`metrics`] | counters and durations, by the names dashboards know |
//! | [`objects`] | what reconcilers do to objects: finalizers, owners, conditions, apply |
//! | [`events`] | telling people what a controller did |
//! | [`manager`] | several controllers as one program: started, watched and ended in order |
//! | [`runnable`] | what a manager starts and stops |
//! | [`options`] | how a manager runs, in code and from the command line |
//! | [`leader`] | at most one of several replicas works at a time, by a `Lease` |
//! | [`http`] | whether it lives, whether it is ready, what it counts |
//! | [`access`] | what a controller does to the API, declared: the source of its RBAC rules |
//! | [`rbac`] | what a controller may do: as rules, as manifests, and asked at the start |
//! | [`rest_metrics`], [`process_metrics`] | requests and the process, under the usual names |
//! | [`time`] | the clocks, injected |

pub mod access;
mod action;
mod change;
mod context;
mod controller;
mod error;
pub mod events;
mod hot_loop;
pub mod http;
pub mod leader;
pub mod manager;
mod mapping;
mod memory;
pub mod metrics;
pub mod objects;
pub mod options;
mod outcome;
pub mod predicate;
pub mod process_metrics;
pub mod rbac;
mod reconciler;
mod request;
pub mod rest_metrics;
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
