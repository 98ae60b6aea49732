//! Controllers: what runs on top of informers and work queues.
//!
//! | module | what it holds |
//! |---|---|
//! | [`leader`] | at most one of several replicas works at a time, by a `Lease` |

pub mod leader;
