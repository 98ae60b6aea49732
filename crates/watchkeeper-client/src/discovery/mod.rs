//! What the server serves, and the mapping between kinds and resources.

mod cache;
mod error;
mod mapping;
mod model;
mod parse;
mod wire;

pub use error::{DiscoveryError, MappingError};
pub use mapping::RestMapping;
pub use model::{
    ApiGroup, ApiResourceRow, ApiVersion, FailureReason, GroupVersionFailure, ResourceInfo, ServerResources,
    SubresourceInfo,
};
