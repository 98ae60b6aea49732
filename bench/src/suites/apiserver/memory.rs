//! The memory of a stored pod.

use watchkeeper_apiserver::ApiServer;

use super::client::Client;
use super::pods::Pods;
use super::watchers::Watches;
use crate::heap;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

pub(super) const SHARE: &str = "times_json";

/// Stores pods as a cluster does, in two writes each, with a watcher that has received all events. The
/// history window is therefore full, and the figure includes its content (older versions, frames) and the
/// state of the controllers.
pub(super) fn stored(load: Load) -> Result<Measurement, RunFailure> {
    super::runtime()?.block_on(async {
        let server = ApiServer::in_process();
        let pods = Pods::owned(&server).await?;
        let mut client = Client::of(&server);
        let watches = Watches::start(&server, 1, 2 * load.operations).await?;
        let before = heap::live_bytes();
        let meter = Meter::start();
        let mut bytes = 0;
        for index in 0..load.operations {
            bytes += pods.store(&mut client, index).await? as u64;
        }
        watches.end().await?;
        let mut measured = meter.stop(load.operations);
        let live = heap::live_bytes().saturating_sub(before);
        measured.live_heap_bytes = Some(live);
        Ok(measured
            .with_figure(SHARE, as_f64(live) / as_f64(bytes))
            .with_figure("json_bytes", as_f64(bytes) / as_f64(load.operations)))
    })
}
