//! Controllers: what runs on top of informers and work queues.
//!
//! | module | what it holds |
//! |---|---|
//! | [`runnable`] | what a manager starts and stops |
//! | [`access`] | what a controller does to the API, declared: the source of its RBAC rules |
//! | [`leader`] | at most one of several replicas works at a time, by a `Lease` |
//! | [`time`] | the clocks, injected |

pub mod access;
pub mod leader;
pub mod runnable;
pub mod time;
