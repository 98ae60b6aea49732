//! Job and `CronJob`.

mod cron_job;
mod job;
mod schedule;
mod status;
#[cfg(test)]
mod tests;

use super::row::StrategyRow;

/// Returns the row of a kind of the group `batch`.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "Job" => job::JOB,
        "CronJob" => cron_job::CRON_JOB,
        _ => return None,
    })
}
