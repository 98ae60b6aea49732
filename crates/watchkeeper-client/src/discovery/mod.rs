//! What the server serves, and the mapping between kinds and resources.
//!
//! [`DiscoveryClient`] asks and remembers, [`ServerResources`] is its answer, [`RestMapper`] answers questions from
//! it. Use them where a program meets resources it was not written for: garbage collectors, backup, policy, command
//! line tools, or a controller that has to know whether an optional API is there.
//!
//! | module | what it is |
//! |---|---|
//! | `client`, `cache` | one fetch for all who ask, kept until told otherwise |
//! | `fetch` | the conversation: aggregated form first, legacy where it is not spoken |
//! | `parse`, `wire` | documents of both forms to [`ServerResources`]; pure |
//! | `model` | groups, versions, resources, and what could not be learnt |
//! | `mapping`, `mapper` | names and kinds to resources; pure, and with a second look |

mod cache;
mod client;
mod error;
mod fetch;
mod mapper;
mod mapping;
mod model;
mod parse;
mod wire;

pub use client::DiscoveryClient;
pub use error::{DiscoveryError, MappingError};
pub use mapper::RestMapper;
pub use mapping::RestMapping;
pub use model::{
    ApiGroup, ApiResourceRow, ApiVersion, FailureReason, GroupVersionFailure, ResourceInfo, ServerResources,
    SubresourceInfo,
};
