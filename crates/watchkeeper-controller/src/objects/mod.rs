//! Operations of reconcilers on objects.
//!
//! | module | contents |
//! |---|---|
//! | [`finalizer`] | cleanup before an object is deleted, by a finalizer |
//! | [`owner`] | owner references and the controller of an object |
//! | [`conditions`] | conditions of a status |
//! | [`apply`] | server-side apply that skips requests without effect |
//! | [`write`](mod@write) | create or update, and retry after a conflict |
//!
//! Functions that send requests take a [`Context`](crate::Context), a [`Client`](watchkeeper_client::Client), a
//! [`ResourceClient`](watchkeeper_client::rest::ResourceClient) or kube's [`Api`](watchkeeper_client::kube_client::Api).

pub mod apply;
pub mod conditions;
pub mod finalizer;
pub mod owner;
pub mod write;
