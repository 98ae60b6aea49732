//! The time until a server responds.

use http::Method;
use watchkeeper_apiserver::ApiServer;

use super::client::Client;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

pub(super) const MILLISECONDS: &str = "wall_ms";

/// Creates a server and reads a namespace from it. Each run is a separate process, in which only the runtime
/// exists beforehand.
pub(super) fn first_answer(load: Load) -> Result<Measurement, RunFailure> {
    let runtime = super::runtime()?;
    let meter = Meter::start();
    for _ in 0..load.operations {
        runtime.block_on(async {
            let server = ApiServer::in_process();
            Client::of(&server).done(Method::GET, "/api/v1/namespaces/default", "").await
        })?;
    }
    let measured = meter.stop(load.operations);
    let milliseconds = as_f64(measured.wall_ns) / as_f64(measured.operations) / 1e6;
    Ok(measured.with_figure(MILLISECONDS, milliseconds))
}
