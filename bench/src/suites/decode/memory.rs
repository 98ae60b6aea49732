//! The memory of a list beyond the objects that are kept.
//!
//! The counting allocator reports the current heap and not its peak, so the heap is measured where it is
//! fullest: before and after each object is decoded, while its bytes and the object both exist. The one
//! allocation in between that is not measured, the object's bytes without managedFields during the parse, is
//! added at its upper bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::Client;
use watchkeeper_client::decode::{Decode, DecodeError, Json};
use watchkeeper_client::list_watch::ListWatch;

use super::ours::{check, listed};
use super::server;
use crate::heap;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};
use crate::suites::cluster_pods as pods;

pub(super) const FIGURE: &str = "above_kept_mb";

pub(super) fn list(load: Load) -> Result<Measurement, RunFailure> {
    let body = pods::list(load.operations);
    let bytes = body.len() as u64;
    let runtime = server::runtime()?;
    let watermark = Arc::new(Watermark { start: heap::live_bytes(), ..Watermark::default() });
    let meter = Meter::start();
    let kept = runtime.block_on(async {
        let pods = Client::from(server::client(body)).resource::<Pod>();
        listed(&ListWatch::new(&pods).decoder(Watched { json: Json::new(), watermark: watermark.clone() }))
            .await
    })?;
    let measured = meter.stop(load.operations);
    check(kept.len(), load)?;
    let megabytes = |bytes: u64| as_f64(bytes) / 1e6;
    Ok(measured
        .with_figure(FIGURE, megabytes(watermark.highest.load(Relaxed)))
        .with_figure("body_mb", megabytes(bytes)))
}

#[derive(Debug, Default)]
struct Watermark {
    /// The live bytes before the list request, including the server's.
    start: u64,
    /// The bytes of the objects kept so far.
    kept: AtomicU64,
    /// The peak beyond both.
    highest: AtomicU64,
}

impl Watermark {
    fn look(&self, unseen: u64) {
        let beyond = (heap::live_bytes() + unseen).saturating_sub(self.start + self.kept.load(Relaxed));
        self.highest.fetch_max(beyond, Relaxed);
    }
}

#[derive(Debug)]
struct Watched {
    json: Json,
    watermark: Arc<Watermark>,
}

impl Decode<Pod> for Watched {
    fn decode(&self, object: &[u8]) -> Result<Pod, DecodeError> {
        let before = heap::live_bytes();
        self.watermark.look(0);
        let pod = self.json.decode(object)?;
        let grown = heap::live_bytes().saturating_sub(before);
        // After the return the object moves into its Arc, with two counters.
        let own = size_of::<Pod>() + 2 * size_of::<usize>();
        self.watermark.kept.fetch_add(grown, Relaxed);
        self.watermark.look(object.len() as u64);
        self.watermark.kept.fetch_add(own as u64, Relaxed);
        Ok(pod)
    }
}
