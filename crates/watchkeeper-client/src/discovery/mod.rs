//! Discovery of the server's resources, and the mapping between kinds and resources.
//!
//! [`DiscoveryClient`] fetches and caches the groups, versions and resources of a server as [`ServerResources`].
//! [`RestMapper`] maps kinds and names, such as `deploy` or `Deployment`, to resources. Use them in programs that
//! handle arbitrary resources: garbage collectors, backup, policy, command-line tools, or a controller that has
//! to detect an optional API. A client of a type known at compile time needs no discovery.
//!
//! | file | contents |
//! |---|---|
//! | `client`, `cache` | one fetch for concurrent callers, cached until invalidated |
//! | `fetch` | the requests: aggregated discovery, or a request per group-version if the server lacks it |
//! | `parse`, `wire` | parsing of both formats to [`ServerResources`] |
//! | `model` | groups, versions, resources, and discovery failures |
//! | `mapping`, `mapper` | from names and kinds to resources: without requests, and with a refresh of the cache |

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
