//! The queue as the end of a reflector.

use kube_core::Resource;
use watchkeeper_client::decode::Identity;

use super::{DeltaFifo, FifoClosed};
use crate::reflector::{Change, DeltaSink, Object, SinkClosed};

/// Waits for [room](DeltaFifo::room), then puts the change in line.
///
/// The watermark follows the versions that came over the wire, also where a transform took them off the
/// objects.
impl<K: Resource + Send + Sync + 'static> DeltaSink<K> for DeltaFifo<K> {
    async fn push(&mut self, change: Change<K>) -> Result<(), SinkClosed> {
        self.room().await?;
        match change {
            Change::Added(Object { identity, object }) => {
                let mark = missing_version(&*object, &identity);
                self.add(object)?;
                self.mark(mark)
            }
            Change::Updated(Object { identity, object }) => {
                let mark = missing_version(&*object, &identity);
                self.update(object)?;
                self.mark(mark)
            }
            Change::Deleted { identity, object: Some(object) } => {
                let mark = missing_version(&*object, &identity);
                self.delete(object)?;
                self.mark(mark)
            }
            Change::Deleted { identity, object: None } => {
                self.delete_unread(identity.key(), identity.resource_version())
            }
            Change::Replaced(list) => self.replace_with(list),
            Change::Bookmark { resource_version } => self.bookmark(&resource_version),
            Change::Resync => self.resync(),
        }?;
        Ok(())
    }
}

/// The version that came over the wire, if the object does not carry it.
fn missing_version<'a, K: Resource>(object: &K, identity: &'a Identity) -> Option<&'a str> {
    let carried = object.meta().resource_version.as_deref();
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
