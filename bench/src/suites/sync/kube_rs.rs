//! kube-rs's side, as its users write it.

use std::pin::pin;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, Client, Config};
use kube_runtime::reflector::{self, Store};
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt as _, watcher as watch};

use super::server::Server;
use super::{Mode, expect, runtime, with_memory};
use crate::heap;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// Reads the first list into the store.
pub(super) fn sync(load: Load, mode: Mode) -> Result<Measurement, RunFailure> {
    let server = Server::start(load.operations)?;
    let runtime = runtime()?;
    let before = heap::live_bytes();
    let meter = Meter::start();
    let (store, received) = runtime.block_on(async {
        let (store, events) = reflected(&server, mode)?;
        let received = list(&mut pin!(events)).await?;
        Ok::<_, RunFailure>((store, received))
    })?;
    let measured = meter.stop(load.operations);
    expect("received", received, load)?;
    expect("stored", store.len() as u64, load)?;
    with_memory(measured, before)
}

/// Reads the list again when the watch has expired.
pub(super) fn relist(load: Load) -> Result<Measurement, RunFailure> {
    let mut server = Server::start(load.operations)?;
    let runtime = runtime()?;
    let (measured, store) = runtime.block_on(async {
        let (store, events) = reflected(&server, Mode::Pages)?;
        let mut events = pin!(events);
        list(&mut events).await?;
        server.expire_watches()?;
        let meter = Meter::start();
        let received = list(&mut events).await?;
        let measured = meter.stop(load.operations);
        expect("received", received, load)?;
        Ok::<_, RunFailure>((measured, store))
    })?;
    expect("stored", store.len() as u64, load)?;
    Ok(measured)
}

type Watched = Result<Event<Pod>, watcher::Error>;

fn reflected(
    server: &Server,
    mode: Mode,
) -> Result<(Store<Pod>, impl Stream<Item = Watched> + use<>), RunFailure> {
    let client = Client::try_from(Config::new(server.url().parse()?))?;
    let config = match mode {
        Mode::Pages => watcher::Config::default(),
        Mode::Stream => watcher::Config::default().streaming_lists(),
    };
    let (store, writer) = reflector::store();
    Ok((store, watch(Api::<Pod>::all(client), config).default_backoff().reflect(writer)))
}

/// Follows the events until a list is complete, and counts its pods.
async fn list(events: &mut (impl Stream<Item = Watched> + Unpin)) -> Result<u64, RunFailure> {
    let mut received = 0;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(_)) => received += 1,
            Ok(Event::InitDone) => return Ok(received),
            // The error is that the watch has expired.
            Ok(Event::Init | Event::Apply(_) | Event::Delete(_)) | Err(watcher::Error::WatchError(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("the stream of events ended".into())
}
