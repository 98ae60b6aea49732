//! What a reconciler writes, and whether the cache has seen it.
//!
//! | file | what |
//! |---|---|
//! | `target.rs` | which object a request writes, from its path alone |
//! | `answer.rs` | the metadata in the response to a write |
//! | `expectation.rs` | whether a cache shows a write: a rule without state |
//! | `ledger.rs` | the writes made for one key |
//! | `service.rs` | the service under a reconciler's client that looks at what passes |

mod answer;
mod expectation;
mod ledger;
mod service;
mod target;

pub(crate) use self::{
    answer::Answer,
    expectation::{CacheView, Coverage, Held},
    ledger::{Ledger, Trigger, Unseen, Written},
    service::tracked,
    target::{ResourceId, Target, WriteVerb},
};
