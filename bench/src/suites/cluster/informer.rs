//! Our side of the first list, the memory, the events and the list after an expired watch.

use k8s_openapi::api::core::v1::Pod;
use watchkeeper_client::dynamic::GroupVersionResource;
use watchkeeper_informer::factory::Scope;
use watchkeeper_informer::{Object, SharedIndexInformer, SharedInformerFactory};

use super::policy::{ENCODINGS, Policy};
use super::types::{Look, NarrowPod};
use super::watched::{Reads, Watched};
use super::{GROWTH_STEPS, events_of, memory, runtime};
use crate::machine::as_f64;
use crate::measure::{Measurement, Meter};
use crate::replay::ReplayServer;
use crate::suite::{Load, RunFailure};

pub(super) fn pods(load: Load, policy: Policy) -> Result<Measurement, RunFailure> {
    run(load, policy, SharedInformerFactory::informer::<Pod>)
}

pub(super) fn narrow(load: Load) -> Result<Measurement, RunFailure> {
    run(load, Policy::Auto, SharedInformerFactory::informer::<NarrowPod>)
}

pub(super) fn metadata(load: Load) -> Result<Measurement, RunFailure> {
    run(load, Policy::Auto, |factory| {
        factory.metadata_of(&GroupVersionResource::new("", "v1", "pods"), Scope::all())
    })
}

fn run<K: Object + Look>(
    load: Load,
    policy: Policy,
    informer: impl FnOnce(&SharedInformerFactory) -> SharedIndexInformer<K>,
) -> Result<Measurement, RunFailure> {
    let count = load.operations;
    let server = ReplayServer::start(count, ENCODINGS)?;
    runtime()?.block_on(async {
        let factory = policy.factory(&server)?;
        let informer = informer(&factory);
        let watched = Watched::new(server, factory, informer)?;
        let meter = Meter::start();
        watched.synced(count).await?;
        let mut measured = meter.stop(count);
        let mut add = |name: &str, value| _ = measured.figures.insert(name.to_owned(), value);
        add("sync_peak_mib", memory::peak_mib()?);
        add("synced_mib", memory::rss_mib()?);
        add("steady_mib", memory::settled_mib().await?);
        let events = events_of(count);
        let order = format!("/trigger?events={events}");
        let mut delivered = 0;
        for (name, reads) in [
            ("event_cpu_us", Reads::Key),
            ("event_new_cpu_us", Reads::New),
            ("event_both_cpu_us", Reads::Both),
        ] {
            watched.read(reads);
            let phase = watched.changed(&order, events).await?;
            delivered += phase.delivered;
            add(name, phase.cpu_us);
        }
        watched.read(Reads::Key);
        add("delivered_percent", as_f64(delivered) / as_f64(3 * events) * 100.0);
        add("relist_cpu_us", watched.relisted(count).await?);
        add("end_peak_mib", memory::peak_mib()?);
        let sync_cpu_us = as_f64(measured.cpu_ns) / 1e3 / as_f64(count);
        watched.check(count)?;
        Ok(measured.with_figure("sync_cpu_us", sync_cpu_us))
    })
}

/// Adds pods in steps, and measures how far memory is from a straight line.
pub(super) fn growth(load: Load) -> Result<Measurement, RunFailure> {
    let first = (load.operations / GROWTH_STEPS).max(1);
    let server = ReplayServer::start(first, ENCODINGS)?;
    runtime()?.block_on(async {
        let factory = Policy::Auto.factory(&server)?;
        let informer = factory.informer::<Pod>();
        let watched = Watched::new(server, factory, informer)?;
        let meter = Meter::start();
        watched.synced(first).await?;
        let mut sizes = vec![memory::settled_mib().await?];
        for _ in 1..GROWTH_STEPS {
            watched.changed(&format!("/trigger?added={first}"), first).await?;
            sizes.push(memory::settled_mib().await?);
        }
        let total = first * GROWTH_STEPS;
        let measured = meter.stop(total);
        watched.check(total)?;
        let (Some(&smallest), Some(&largest)) = (sizes.first(), sizes.last()) else {
            return Err("no sizes".into());
        };
        let slope = (largest - smallest) / as_f64(GROWTH_STEPS - 1);
        let off = sizes.iter().zip(0_u32..).map(|(size, step)| {
            let line = smallest + slope * f64::from(step);
            (size - line).abs() / line * 100.0
        });
        Ok(measured
            .with_figure("off_line_percent", off.fold(0.0, f64::max))
            .with_figure("steady_mib", largest)
            .with_figure("kib_per_pod", slope * 1024.0 / as_f64(first)))
    })
}
