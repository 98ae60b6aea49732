//! Our side.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use tokio::task::JoinSet;
use watchkeeper_client::config::ClientConfig;
use watchkeeper_client::decode::Identity;
use watchkeeper_client::list_watch::ListWatch;
use watchkeeper_client::rest::ResourceClient;
use watchkeeper_informer::delta_fifo::{DeltaFifo, Deltas, FifoOptions, KnownObjects};
use watchkeeper_informer::event::Event;
use watchkeeper_informer::processor::{ListenerOptions, Processor, Registration};
use watchkeeper_informer::reflector::{Change, DeltaSink, Reflector, ReflectorOptions, SinkClosed};
use watchkeeper_informer::status::Monitor;
use watchkeeper_informer::transition::{StoreChange, transition};
use watchkeeper_informer::{Change as Write, ObjectKey, ResourceVersion, Store};

use super::server::Server;
use super::{Mode, expect, runtime, with_peak};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Reads the first list into the store.
pub(super) fn sync(load: Load, mode: Mode) -> Result<Measurement, RunFailure> {
    let server = Server::start(load.operations)?;
    let runtime = runtime()?;
    let meter = Meter::start();
    let informer = runtime.block_on(async {
        let informer = Informer::start(&server, mode)?;
        informer.synced().await?;
        Ok::<_, RunFailure>(informer)
    })?;
    let measured = meter.stop(load.operations);
    expect("told of", informer.heard.load(Relaxed), load)?;
    expect("stored", informer.store.len() as u64, load)?;
    with_peak(measured)
}

/// Reads the list again when the watch has expired.
pub(super) fn relist(load: Load) -> Result<Measurement, RunFailure> {
    let mut server = Server::start(load.operations)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut informer = Informer::start(&server, Mode::Pages)?;
        informer.synced().await?;
        let before = informer.store.resource_version();
        server.expire_watches()?;
        let meter = Meter::start();
        informer.reached.wait_for(|version| *version != before).await?;
        let measured = meter.stop(load.operations);
        expect("recognised", informer.monitor.counters().reused, load)?;
        expect("told of", informer.heard.load(Relaxed), load)?;
        expect("stored", informer.store.len() as u64, load)?;
        Ok(measured)
    })
}

/// The parts, joined.
struct Informer {
    store: Store<Pod>,
    heard: Arc<AtomicU64>,
    monitor: Monitor,
    handler: Registration<Pod>,
    reached: watch::Receiver<Option<ResourceVersion>>,
    _tasks: JoinSet<()>,
}

impl Informer {
    fn start(server: &Server, mode: Mode) -> Result<Self, RunFailure> {
        let client = ClientConfig::new(server.url())?.into_client()?;
        let source = ListWatch::new(&ResourceClient::<Pod>::all(client));
        let store = Store::new();
        let fifo = DeltaFifo::new(Cache(store.clone()), FifoOptions::new());
        let processor = Processor::new(Duration::ZERO);
        let heard = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&heard);
        let handler = move |_: &Event<Pod>| _ = count.fetch_add(1, Relaxed);
        let handler = processor.turn().add(handler, ListenerOptions::new("counts"), None::<Vec<_>>)?;

        let mut options = ReflectorOptions::default();
        if mode == Mode::Pages {
            options.streaming.is_enabled = false;
            options.page_size = Some(500);
        }
        let cache = store.clone();
        let known = move |identity: &Identity| {
            let pod: Arc<Pod> = cache.get(identity.key())?;
            let (uid, version) = (pod.metadata.uid.as_deref(), pod.metadata.resource_version.as_deref());
            (uid == identity.uid() && version == identity.resource_version()).then_some(pod)
        };
        let reflector = Reflector::new("pods", Arc::new(source)).options(options).known(known);
        let monitor = reflector.monitor();
        let (reached, receiver) = watch::channel(None);
        let mut tasks = JoinSet::new();
        tasks.spawn(reflector.run(Sink(fifo.clone()), pending()));
        tasks.spawn(apply(fifo, store.clone(), processor.clone(), reached));
        tasks.spawn(async move { processor.run().await });
        Ok(Self { store, heard, monitor, handler, reached: receiver, _tasks: tasks })
    }

    async fn synced(&self) -> Result<(), RunFailure> {
        if self.handler.synced().await { Ok(()) } else { Err("the informer stopped".into()) }
    }
}

struct Cache(Store<Pod>);

impl KnownObjects<Pod> for Cache {
    fn get(&self, key: &str) -> Option<Arc<Pod>> {
        self.0.get(key)
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&str)) {
        self.0.keys().iter().for_each(|key| visit(key.as_str()));
    }
}

struct Sink(DeltaFifo<Pod>);

impl DeltaSink<Pod> for Sink {
    async fn push(&mut self, change: Change<Pod>) -> Result<(), SinkClosed> {
        self.0.room().await.map_err(|_| SinkClosed)?;
        let pushed = match change {
            Change::Replaced(list) => {
                let objects = list.objects.into_iter().map(|object| object.object).collect();
                self.0.replace(objects, Some(&list.resource_version))
            }
            Change::Bookmark { resource_version } => self.0.bookmark(&resource_version),
            _ => Ok(()),
        };
        pushed.map_err(|_| SinkClosed)
    }
}

async fn apply(
    fifo: DeltaFifo<Pod>,
    store: Store<Pod>,
    processor: Processor<Pod>,
    reached: watch::Sender<Option<ResourceVersion>>,
) {
    while let Some(popped) = fifo.pop_batch(256).await {
        let (mut notices, mut writes) = (Vec::new(), Vec::new());
        for delta in popped.keys().iter().flat_map(Deltas::iter) {
            let key = ObjectKey::of(&*delta.object);
            let Ok(key) = key else { continue };
            match transition(delta, store.get(&key).as_ref(), &mut notices) {
                StoreChange::Keep => {}
                StoreChange::Set(object) => writes.extend(Write::put(object)),
                StoreChange::Remove => writes.push(Write::delete(key)),
            }
        }
        let version = popped.watermark().and_then(ResourceVersion::new);
        let mut turn = processor.turn();
        if store.apply(writes, version.as_ref()).is_err() {
            return;
        }
        turn.publish(notices);
        popped.done();
        if fifo.has_synced() {
            turn.mark_synced();
        }
        drop(turn);
        reached.send_replace(version);
    }
}
