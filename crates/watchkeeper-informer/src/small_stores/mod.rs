//! Stores for particular purposes, beside the cache.
//!
//! | | |
//! |---|---|
//! | [`Fifo`] | a queue of the latest state of each object |
//! | [`UndeltaStore`] | a store that passes its whole contents on at each change |
//! | [`ExpiringCache`] | objects that are forgotten after a while |

mod expiring;
mod fifo;
mod undelta;

pub use self::{
    expiring::ExpiringCache,
    fifo::{Fifo, Popped},
    undelta::UndeltaStore,
};
