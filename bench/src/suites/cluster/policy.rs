//! Memory policies of our side, and the one place that sets them.

use watchkeeper_client::config::ClientConfig;
use watchkeeper_informer::{MemoryPolicy, SharedInformerFactory};

use crate::replay::ReplayServer;
use crate::suite::RunFailure;

/// The encodings that the server renders for our side.
pub(super) const ENCODINGS: &str = "json,protobuf";

/// A memory policy of the informers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The default policy of the library.
    Auto,
    /// Every object decoded.
    Decoded,
    /// Every object packed.
    Packed,
}

impl Policy {
    /// Returns a factory of informers with this policy.
    pub(super) fn factory(self, server: &ReplayServer) -> Result<SharedInformerFactory, RunFailure> {
        let client = ClientConfig::new(&server.url())?.into_client()?;
        let policy = match self {
            Self::Auto => MemoryPolicy::Auto,
            Self::Decoded => MemoryPolicy::Decoded,
            Self::Packed => MemoryPolicy::Packed,
        };
        Ok(SharedInformerFactory::builder(client).memory(policy).build())
    }
}
