//! What a reconciler writes, and whether the cache has seen it.
//!
//! | file | what |
//! |---|---|
//! | `target.rs` | which object a request writes, from its path alone |
//! | `answer.rs` | which version a write made, from its answer alone |
//! | `expectation.rs` | whether a cache has seen a write: a rule without state |
//! | `ledger.rs` | the writes made for one key |
//! | `service.rs` | the service under a reconciler's client that looks at what passes |

mod answer;
mod expectation;
mod ledger;
mod service;
mod target;

pub(crate) use self::{
    answer::Answer,
    expectation::{CacheView, Held},
    ledger::{Ledger, Trigger, Written},
    service::tracked,
    target::{ResourceId, Target, WriteVerb},
};
