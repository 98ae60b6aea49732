//! How long a write takes while somebody lists.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::pods::{self, COUNT, filled_store};
use crate::clock;
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

/// The figure of the row.
pub(super) const P99: &str = "write_p99_us";

/// The pause between updates, for a busy watch with 20,000 events per second. The writer spins: after a sleep, caches are cold, and
/// the 99th percentile is 16 µs without any reader.
const PAUSE: Duration = Duration::from_micros(50);

pub(super) fn update_while_listing(load: Load) -> Result<Measurement, RunFailure> {
    let generations = [pods::pods(0), pods::pods(1)];
    let (store, _) = filled_store(&generations[0])?;
    let mut nanos: Vec<u64> = Vec::with_capacity(usize::try_from(load.operations)?);
    let (is_over, lists) = (AtomicBool::new(false), AtomicU64::new(0));
    let meter = Meter::start();
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // The list is read and dropped, as in a controller.
                let listed = store.list();
                lists.fetch_add(u64::from(listed.len() as u64 == COUNT), Ordering::Relaxed);
            }
        });
        let written = (|| -> Result<(), RunFailure> {
            let mut round = 1;
            for (step, at) in (1..=load.operations).zip(pods::strided(COUNT)) {
                let pod = Arc::clone(&generations[round % 2][usize::try_from(at)?]);
                let start = clock::wall();
                store.update(pod)?;
                nanos.push(u64::try_from(start.elapsed().as_nanos())?);
                round += usize::from(step % COUNT == 0);
                while start.elapsed() < PAUSE {
                    hint::spin_loop();
                }
            }
            Ok(())
        })();
        is_over.store(true, Ordering::Relaxed);
        written.map(|()| meter.stop(load.operations))
    })?;
    nanos.sort_unstable();
    let at = |share: usize| nanos.get((nanos.len() * share / 1000).min(nanos.len().saturating_sub(1)));
    let micros = |nanos: Option<&u64>| as_f64(nanos.copied().unwrap_or_default()) / 1000.0;
    Ok(measured
        .with_figure(P99, micros(at(990)))
        .with_figure("write_p50_us", micros(at(500)))
        .with_figure("write_p999_us", micros(at(999)))
        .with_figure("lists", as_f64(lists.into_inner())))
}
