//! The parts of a memory budget: packing of objects, residency of decoded ones, and the size of the budget.
//!
//! Each part is a value or a state machine. Time is a `Duration` since an arbitrary start.
//!
//! | module | contents |
//! |---|---|
//! | `dictionary/` | compression of single objects with a trained dictionary, and when the dictionary is renewed |
//! | `budget.rs` | the size of the budget under the policy Auto, and the limit that informers share |
//! | `limit.rs` | the memory limit of the process, its resident memory, and amounts of memory in flags |
//! | `residency.rs` | which objects stay decoded within a budget |

pub(crate) mod budget;
pub(crate) mod dictionary;
pub(crate) mod limit;
pub(crate) mod residency;
