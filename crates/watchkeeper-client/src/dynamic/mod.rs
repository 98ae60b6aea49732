//! Names of resources that are known only at run time; see [`Client::dynamic`](crate::Client::dynamic).

mod gvr;

pub use gvr::{GroupVersionResource, ParseResourceError};
