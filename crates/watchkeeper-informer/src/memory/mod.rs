//! The memory of cached objects: which are kept decoded, which encoded, and how they are compressed.
//!
//! ```text
//! received item ─▶ Packer ─▶ Entry (metadata, encoded bytes) ─▶ cache
//!                    │          │ read: decoded, or decode and admit
//!                    │          ▼
//!                    └──▶ MemoryPool (residency, budget) ─▶ evictions
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `policy.rs`, `stats.rs` | the public types: [`MemoryPolicy`], [`MemoryStats`] |
//! | `packer.rs` | received objects on their way into the cache: decoded or not, compressed or not |
//! | `pool.rs` | the budget of all informers of a factory, and the objects that take part of it |
//! | `object_memory.rs` | the counters of one informer |
//! | `budget.rs` | the size of the budget under the policy Auto |
//! | `residency.rs` | which objects stay decoded, within a budget |
//! | `dictionary/` | compression of single objects with a trained dictionary, and when the dictionary is renewed |
//! | `packed_tier.rs` | the parts above without an informer, for tests |
//! | `limit.rs` | the memory limit of the process, its resident memory, and amounts of memory in flags |

mod budget;
mod dictionary;
mod limit;
mod object_memory;
mod packed_tier;
mod packer;
mod policy;
mod pool;
mod residency;
mod stats;

pub(crate) use self::{
    dictionary::codec::{Codec, Compressor},
    object_memory::ObjectMemory,
    packer::{Packer, PackerOptions},
    pool::{Evict, MemoryPool, Read},
    residency::{Charge, Residence, Resident},
};
pub use self::{limit::AmountError, packed_tier::PackedTier, policy::MemoryPolicy, stats::MemoryStats};
