//! Discovery of the server's resources, and the mapping between kinds and resources.
//!
//! [`DiscoveryClient`] fetches and caches, [`ServerResources`] is its result, and [`RestMapper`] resolves
//! names with it. Use them in programs that handle arbitrary resources: garbage collectors, backup, policy,
//! command-line tools, or a controller that has to detect an optional API.
//!
//! | module | content |
//! |---|---|
//! | `client`, `cache` | one fetch for concurrent callers, cached until invalidated |
//! | `fetch` | the requests: aggregated form first, legacy form as a fallback |
//! | `parse`, `wire` | parsing of both forms to [`ServerResources`]; pure |
//! | `model` | groups, versions, resources, and discovery failures |
//! | `mapping`, `mapper` | names and kinds to resources; pure, and with a refresh |

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
