//! Controllers: what runs on top of informers and work queues.
//!
//! | module | what it holds |
//! |---|---|
//! | [`runnable`] | what a manager starts and stops |
//! | [`access`] | what a controller does to the API, declared: the source of its RBAC rules |
//! | [`leader`] | at most one of several replicas works at a time, by a `Lease` |
//! | [`manager`] | several controllers as one program: started, watched and ended in order |
//! | [`options`] | how a manager runs, in code and from the command line |
//! | [`http`] | whether it lives, whether it is ready, what it counts |
//! | [`events`] | telling people what a controller did |
//! | [`objects`] | what reconcilers do to objects: finalizers, owners, conditions, apply |
//! | [`rbac`] | what a controller may do: as rules, as manifests, and asked at the start |
//! | [`rest_metrics`], [`process_metrics`] | requests and the process, under the usual names |
//! | [`time`] | the clocks, injected |

pub mod access;
pub mod events;
pub mod http;
pub mod leader;
pub mod manager;
pub mod objects;
pub mod options;
pub mod process_metrics;
pub mod rbac;
pub mod rest_metrics;
pub mod runnable;
pub mod time;
