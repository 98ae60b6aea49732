//! Statistics of the machine and of this process, read from `/proc`.
//!
//! All values are optional: without `/proc` a figure is missing, never invented.

use std::fs;

/// The CPU time of the whole machine, and of this process and its finished children, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    total: u64,
    busy: u64,
    own: u64,
}

impl CpuTicks {
    /// Returns the current counters.
    pub(crate) fn now() -> Option<Self> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&machine, &process)
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        let (total, busy) = machine_ticks(machine)?;
        let own = process_ticks(process)?;
        Some(Self { total, busy, own })
    }

    /// Returns the share of the machine's CPU time since `start` that other processes, and other guests of
    /// the same host, used. 0 is an idle machine, 1 a machine with no time left for this process.
    pub(crate) fn foreign_share_since(self, start: Self) -> Option<f64> {
        let total = self.total.checked_sub(start.total).filter(|ticks| *ticks > 0)?;
        let busy = self.busy.saturating_sub(start.busy);
        // Ticks are sampled, so our own may exceed the busy time of the machine.
        let foreign = busy.saturating_sub(self.own.saturating_sub(start.own));
        Some((as_f64(foreign) / as_f64(total)).min(1.0))
    }
}

/// Parses `(total, busy)` from the summary line of `/proc/stat`. Time stolen by the host counts as busy;
/// guest time is not added, because it is part of user time.
fn machine_ticks(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = fields.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [user, nice, system, idle, io_wait, irq, soft_irq, steal, ..] = *ticks else {
        return None;
    };
    let busy = user + nice + system + irq + soft_irq + steal;
    Some((busy + idle + io_wait, busy))
}

/// Parses the user and system time in `/proc/<pid>/stat`, including finished children. The second field is
/// the program name in parentheses and may contain anything, so fields are counted from the last closing
/// parenthesis.
fn process_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).take(4);
    let mut sum = 0;
    for _ in 0..4 {
        sum += times.next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

/// Returns the peak resident memory of this process in bytes.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    memory(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn rss_bytes() -> Option<u64> {
    memory(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

fn memory(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Converts a count to a float, exactly for every count that occurs here.
#[expect(
    clippy::cast_precision_loss,
    reason = "ticks, bytes and nanoseconds measured here stay far below 2^53"
)]
pub(crate) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "cpu  100 10 50 800 40 3 2 5 7 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5\n";

    #[test]
    fn machine_time_splits_into_busy_and_idle() {
        let cases = [
            ("the summary line", MACHINE, Some((1010, 170))),
            ("no summary line", "cpu0 1 2 3 4 5 6 7 8 0 0\n", None),
            ("too few fields", "cpu  1 2 3 4\n", None),
            ("not a number", "cpu  1 2 x 4 5 6 7 8\n", None),
            ("nothing", "", None),
        ];
        for (case, text, want) in cases {
            assert_eq!(machine_ticks(text), want, "{case}");
        }
    }

    #[test]
    fn process_time_includes_children_and_survives_odd_names() {
        let cases = [
            ("plain", "7 (bench) R 1 7 7 0 -1 0 9 9 9 9 11 22 33 44 20 0", Some(110)),
            ("parentheses and spaces", "7 (a) R (b c) S 1 7 7 0 -1 0 9 9 9 9 1 2 3 4 20", Some(10)),
            ("cut short", "7 (bench) R 1 7 7 0 -1 0 9 9 9 9 11 22", None),
            ("no name", "7 R 1", None),
        ];
        for (case, text, want) in cases {
            assert_eq!(process_ticks(text), want, "{case}");
        }
    }

    #[test]
    fn foreign_share_is_what_is_busy_and_not_ours() {
        let start = CpuTicks { total: 1000, busy: 400, own: 50 };
        let cases = [
            ("all ours", CpuTicks { total: 1200, busy: 500, own: 150 }, Some(0.0)),
            ("half of the machine to others", CpuTicks { total: 1200, busy: 600, own: 150 }, Some(0.5)),
            ("sampled less busy than our own time", CpuTicks { total: 1200, busy: 500, own: 170 }, Some(0.0)),
            ("no time passed", start, None),
            ("counters went back", CpuTicks { total: 900, busy: 400, own: 50 }, None),
        ];
        for (case, end, want) in cases {
            assert_eq!(end.foreign_share_since(start), want, "{case}");
        }
    }

    #[test]
    fn peak_memory_is_read_in_bytes() {
        let cases = [
            ("present", "Name:\tx\nVmHWM:\t    1536 kB\nVmRSS:\t 1 kB\n", Some(1536 * 1024)),
            ("absent", "Name:\tx\n", None),
            ("another unit", "VmHWM:\t 1 MB\n", None),
        ];
        for (case, text, want) in cases {
            assert_eq!(memory(text, "VmHWM:"), want, "{case}");
        }
    }
}
