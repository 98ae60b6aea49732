//! Metrics of this process.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    time::{ClockId, clock_gettime},
};

/// Registers the metrics of this process, under the standard Prometheus names. Call this once per registry.
///
/// | name | kind |
/// |---|---|
/// | `process_cpu_seconds_total` | counter |
/// | `process_resident_memory_bytes` | gauge |
/// | `process_start_time_seconds` | gauge |
///
/// Values are read at each scrape. The last two come from `/proc`, and are omitted on platforms without it.
pub fn register_process_metrics(registry: &mut Registry) {
    registry.register_collector(Box::new(Process));
}

#[derive(Debug)]
struct Process;

/// Converts an integer to a metric value.
#[expect(clippy::cast_precision_loss, reason = "seconds, ticks and page sizes are far below 2^52")]
fn number(whole: u64) -> f64 {
    whole as f64
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let cpu = ConstCounter::<f64>::new(cpu_seconds());
        cpu.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "User and system CPU time spent",
            None,
            cpu.metric_type(),
        )?)?;
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let memory = read("/proc/self/statm")
            .and_then(|statm| resident_pages(&statm))
            .map(|pages| pages * number(page_size() as u64));
        let start =
            read("/proc/self/stat").zip(read("/proc/stat")).and_then(|(own, all)| start_time(&own, &all));
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory", memory),
            ("process_start_time_seconds", "Start time of the process since the Unix epoch", start),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::<f64>::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = |part: i64| number(u64::try_from(part).unwrap_or_default());
    whole(time.tv_sec) + whole(time.tv_nsec) / 1e9
}

/// Parses the second number of `/proc/self/statm`.
fn resident_pages(statm: &str) -> Option<f64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// Computes the start time of the process: the boot time plus the start of the process in clock ticks since
/// boot.
fn start_time(own_stat: &str, machine_stat: &str) -> Option<f64> {
    // The program name is in parentheses and may itself contain parentheses and blanks.
    let (_, after_name) = own_stat.rsplit_once(')')?;
    let ticks: f64 = after_name.split_whitespace().nth(19)?.parse().ok()?;
    let booted = machine_stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(booted.trim().parse::<f64>().ok()? + ticks / number(clock_ticks_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed_for_any_program_name() {
        let own = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1000 9 10";
        let ticks = number(clock_ticks_per_second());
        assert_eq!(start_time(own, "cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0 + 1000.0 / ticks));
        assert_eq!(resident_pages("100 42 7 1 0 30 0"), Some(42.0));
        for nonsense in ["", "42 (x", "42 (x) S"] {
            assert_eq!(start_time(nonsense, "btime 1"), None);
        }
    }
}
