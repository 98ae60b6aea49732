//! Stores for special purposes.
//!
//! | type | purpose |
//! |---|---|
//! | [`Fifo`] | a queue of the latest state of each object |
//! | [`UndeltaStore`] | a store that calls a function with all contents after each change |
//! | [`ExpiringCache`] | a cache whose objects expire |

mod expiring;
mod fifo;
mod undelta;

pub use self::{
    expiring::ExpiringCache,
    fifo::{Fifo, FifoItem},
    undelta::UndeltaStore,
};
