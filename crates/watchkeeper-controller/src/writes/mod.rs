//! Tracking of a controller's own writes: a reconcile does not begin before the caches show the earlier writes for
//! its key, and a key that its own writes enqueue again and again is detected.
//!
//! | file | contents |
//! |---|---|
//! | `client.rs` | a client whose writes are recorded under the key being reconciled |
//! | `target.rs` | the object that a request writes, from its path alone |
//! | `response.rs` | the metadata in the response to a write |
//! | `tracker.rs` | the state of all keys, shared by the workers |
//! | `key_record.rs` | the state of one key between two reconciles |
//! | `ledger.rs` | the writes made for one key |
//! | `expectation.rs` | whether a cache shows a write: a rule without state |
//! | `cache.rs` | the view of a cache that the others need |

mod cache;
mod client;
mod expectation;
mod key_record;
mod ledger;
mod response;
mod target;
mod tracker;

pub(crate) use self::{
    cache::{CacheView, CachedState, Coverage, TrackedCache},
    client::tracked_client,
    key_record::{MissedWrite, Readiness, ReconcileEnd, TrackingOptions},
    ledger::TriggerEvent,
    target::{ResourceId, Target, WriteVerb},
    tracker::WriteTracker,
};
use self::{
    ledger::{Ledger, UnobservedWrite, WriteRecord},
    response::WriteResponse,
    tracker::PendingWrite,
};
