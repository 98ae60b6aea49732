//! One watch, one cache, any number of handlers.

mod distributor;
mod handle;
mod stats;
mod status;

pub use self::{
    distributor::Distributor,
    handle::{SharedIndexInformer, WeakInformer},
    stats::InformerStats,
    status::StatusWatch,
};
