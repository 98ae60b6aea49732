//! Any resource by group, version and resource name.

mod gvr;

pub use gvr::{GroupVersionResource, ParseResourceError};
