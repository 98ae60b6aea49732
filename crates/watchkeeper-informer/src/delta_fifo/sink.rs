//! The FIFO as the sink of a reflector.

use kube_core::Resource;
use watchkeeper_client::decode::Identity;

use super::{DeltaFifo, FifoClosed};
use crate::{
    Cached,
    reflector::{DeltaSink, ReceivedObject, SinkClosed, WatchDelta},
};

/// Waits for [capacity](DeltaFifo::wait_for_capacity), then queues the change.
///
/// The watermark follows the versions on the wire, even if a transform removed them from the objects.
impl<K: Resource + Send + Sync + 'static> DeltaSink<K> for DeltaFifo<K> {
    async fn push(&mut self, change: WatchDelta<K>) -> Result<(), SinkClosed> {
        self.wait_for_capacity().await?;
        match change {
            WatchDelta::Added(ReceivedObject { identity, object }) => {
                let mark = missing_version(&object, &identity);
                self.add(object)?;
                self.mark(mark)
            }
            WatchDelta::Updated(ReceivedObject { identity, object }) => {
                let mark = missing_version(&object, &identity);
                self.update(object)?;
                self.mark(mark)
            }
            WatchDelta::Deleted { identity, object: Some(object) } => {
                let mark = missing_version(&object, &identity);
                self.delete(object)?;
                self.mark(mark)
            }
            WatchDelta::Deleted { identity, object: None } => {
                self.delete_unread(identity.key(), identity.resource_version())
            }
            WatchDelta::Replaced(list) => self.replace_with(list),
            WatchDelta::Bookmark { resource_version } => self.bookmark(&resource_version),
            WatchDelta::Resync => self.resync(),
        }?;
        Ok(())
    }
}

/// Returns the version on the wire, if the object does not contain it.
fn missing_version<'a, K: Resource>(object: &Cached<K>, identity: &'a Identity) -> Option<&'a str> {
    let carried = object.metadata().resource_version();
    identity.resource_version().filter(|&version| carried != Some(version))
}

impl<K: Resource + Send + Sync + 'static> DeltaFifo<K> {
    fn mark(&self, version: Option<&str>) -> Result<(), FifoClosed> {
        version.map_or(Ok(()), |version| self.bookmark(version))
    }
}

impl From<FifoClosed> for SinkClosed {
    fn from(_: FifoClosed) -> Self {
        Self
    }
}
