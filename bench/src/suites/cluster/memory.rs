//! Resident memory of a run.

use std::time::Duration;

use tokio::time::sleep;

use crate::machine::{self, as_f64};
use crate::suite::RunFailure;

/// The number of samples in a row, a second apart, that differ by at most a hundredth.
const SETTLED_SAMPLES: u32 = 5;
/// The number of samples after which memory counts as settled.
const MOST_SAMPLES: u32 = 60;

/// Returns the resident memory in MiB when it has stopped changing, after a minute at the latest.
pub(super) async fn settled_mib() -> Result<f64, RunFailure> {
    let (mut last, mut same) = (0.0, 0);
    for _ in 0..MOST_SAMPLES {
        sleep(Duration::from_secs(1)).await;
        let now = rss_mib()?;
        same = if (now - last).abs() <= last / 100.0 { same + 1 } else { 0 };
        last = now;
        if same >= SETTLED_SAMPLES {
            break;
        }
    }
    Ok(last)
}

pub(super) fn rss_mib() -> Result<f64, RunFailure> {
    mib(machine::rss_bytes())
}

pub(super) fn peak_mib() -> Result<f64, RunFailure> {
    mib(machine::peak_rss_bytes())
}

fn mib(bytes: Option<u64>) -> Result<f64, RunFailure> {
    let bytes = bytes.ok_or("this machine does not report the memory of a process")?;
    Ok(as_f64(bytes) / f64::from(1 << 20))
}
