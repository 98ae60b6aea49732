//! Triggers of a reconcile: from changes of objects, and from keys that are sent from outside, to enqueued keys.
//!
//! | file | contents |
//! |---|---|
//! | `watch.rs` | the settings of a watch on one kind |
//! | `change.rs` | a change of an object, the input of predicates and mappings |
//! | `predicate.rs` | which changes enqueue a key |
//! | `mapping.rs` | which keys a change enqueues |
//! | `source/` | an informer that is connected to the queue |
//! | `channel.rs` | keys that are sent from outside |

mod change;
mod channel;
pub(crate) mod mapping;
pub mod predicate;
mod source;
mod watch;

pub use self::{
    change::{Change, ChangeKind},
    channel::Triggers,
    mapping::{each_metadata, each_state},
    source::SourceStatus,
    watch::Watch,
};
pub(crate) use self::{
    channel::Subscription,
    source::{Connection, Delivery, InformerSource, Role, Source},
};
