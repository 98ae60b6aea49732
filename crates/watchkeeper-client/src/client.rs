//! The client every other client is made from.

use std::{fmt, sync::Arc};

use crate::limits::Limits;

/// A connection to one API server: kube's client, and the bounds we put around it.
///
/// Cheap to clone; clones share the connection pool.
#[derive(Clone)]
pub struct Client {
    kube: kube_client::Client,
    limits: Arc<Limits>,
}

impl Client {
    /// The `kube` client underneath, for code written against kube-rs.
    pub fn kube(&self) -> &kube_client::Client {
        &self.kube
    }

    /// The bounds on what one response may cost.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl From<kube_client::Client> for Client {
    fn from(kube: kube_client::Client) -> Self {
        Self {
            kube,
            limits: Arc::new(Limits::default()),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
