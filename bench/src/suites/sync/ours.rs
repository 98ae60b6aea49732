//! Our side: a shared informer with one handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::config::ClientConfig;
use watchkeeper_client::list_watch::ListWatch;
use watchkeeper_informer::controller::Config;
use watchkeeper_informer::event::Event;
use watchkeeper_informer::{ResourceVersion, SharedIndexInformer};

use super::server::{self, Server};
use super::{Mode, expect, runtime, with_memory};
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Reads the first list into the cache.
pub(super) fn sync(load: Load, mode: Mode) -> Result<Measurement, RunFailure> {
    let server = Server::start(load.operations)?;
    let runtime = runtime()?;
    let before = heap::live_bytes();
    let meter = Meter::start();
    let informer = runtime.block_on(synced(&server, mode))?;
    let measured = meter.stop(load.operations);
    informer.check(load)?;
    with_memory(measured, before)
}

/// Reads the list again when the watch has expired.
pub(super) fn relist(load: Load) -> Result<Measurement, RunFailure> {
    let mut server = Server::start(load.operations)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let informer = synced(&server, Mode::Pages).await?;
        server.expire_watches()?;
        let next = ResourceVersion::new(&server::VERSION_AFTER_EXPIRY.to_string()).ok_or("no version")?;
        let meter = Meter::start();
        informer.pods.wait_until(&next).await?;
        let measured = meter.stop(load.operations);
        let recognised = informer.pods.monitors().iter().map(|(_, monitor)| monitor.counters().reused).sum();
        expect("recognised", recognised, load)?;
        informer.check(load)?;
        Ok(measured)
    })
}

struct Informer {
    pods: SharedIndexInformer<Pod>,
    received: Arc<AtomicU64>,
}

/// Creates an informer of the server's pods, and waits until its handler has processed the initial list.
async fn synced(server: &Server, mode: Mode) -> Result<Informer, RunFailure> {
    let client = ClientConfig::new(server.url())?.into_client()?;
    let source = ListWatch::new(&client.resource::<Pod>());
    let config = Config::new("pods", source).reflector_with(|options| {
        if mode == Mode::Pages {
            options.streaming.is_enabled = false;
            options.page_size = Some(500);
        }
    });
    let pods = SharedIndexInformer::new(config);
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let handler = pods.add_handler(move |_: &Event<Pod>| _ = count.fetch_add(1, Relaxed))?;
    pods.start();
    pods.wait_for_sync(None).await?;
    handler.synced().await?;
    Ok(Informer { pods, received })
}

impl Informer {
    fn check(&self, load: Load) -> Result<(), RunFailure> {
        expect("received", self.received.load(Relaxed), load)?;
        expect("stored", self.pods.snapshot().len() as u64, load)
    }
}
