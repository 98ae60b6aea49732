//! One watch, one cache, any number of handlers.

mod distributor;
mod handle;
mod status;
mod waiting;

pub use self::{
    distributor::Distributor,
    handle::{SharedIndexInformer, WeakInformer},
    status::{InformerStats, StatusWatch},
};
