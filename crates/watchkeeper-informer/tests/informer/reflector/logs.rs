//! Log lines of a reflector.

use std::{cell::RefCell, io, mem, sync::Once, time::Duration};

use watchkeeper_client::error::TransportKind;

use super::support::{List, Rig, Watch, expired, now, plain, seconds, status};

thread_local! {
    /// The log of this thread: of one test.
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the current thread.
struct ToThread;

impl io::Write for ToThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records what this thread logs at level INFO and above.
///
/// One subscriber for the whole process: whether a log line is wanted is cached for all threads, and a thread without a
/// subscriber would decide for those that have one.
fn record() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let format = tracing_subscriber::fmt().with_writer(|| ToThread).with_max_level(tracing::Level::INFO);
        format.with_ansi(false).with_target(false).without_time().init();
    });
    WRITTEN.take();
}

/// Returns the lines that were recorded.
fn lines() -> Vec<String> {
    let written = WRITTEN.with_borrow_mut(mem::take);
    String::from_utf8_lossy(&written).lines().map(|line| line.trim_start().to_owned()).collect()
}

/// The value of a field such as `failing_for=61.2s`.
fn seconds_of(line: &str, field: &str) -> f64 {
    let value = line.split(&format!(" {field}=")).nth(1).and_then(|rest| rest.split("s ").next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field} in {line}"))
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_as_a_warning_then_as_an_error_with_its_age_then_as_recovered() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    let watch = rig.source.open_watch(Watch::new());
    rig.pass(seconds(30)).await;
    record();
    drop(watch);
    let began = now();
    let mut failures = 0;
    while now() - began < Duration::from_mins(7) {
        rig.source.on_watch(Watch::unreachable(TransportKind::Refused));
        failures += 1;
        rig.failures.first(failures).await;
    }
    let _watch = rig.source.open_watch(Watch::new());
    rig.pass(Duration::from_mins(2)).await;

    let lines = lines();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[0].starts_with("WARN watch failed; resuming the watch reflector=\"test\""), "{lines:#?}");
    assert!(seconds_of(&lines[0], "retry_in") < 60.0, "{lines:#?}");
    for (line, age) in [(&lines[1], 60.0..120.0), (&lines[2], 360.0..420.0)] {
        assert!(
            line.starts_with("ERROR watch still failing; resuming the watch reflector=\"test\""),
            "{lines:#?}"
        );
        assert!(line.contains("reason=\"connection_refused\""), "{lines:#?}");
        assert!(age.contains(&seconds_of(line, "failing_for")), "{lines:#?}");
        assert!(seconds_of(line, "retry_in") <= 60.0, "{lines:#?}");
    }
    assert!(lines[3].starts_with("INFO list and watch recovered reflector=\"test\""), "{lines:#?}");
    assert!((420.0..520.0).contains(&seconds_of(&lines[3], "failed_for")), "{lines:#?}");
    assert!(lines[3].ends_with(&format!("failures={failures}")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_logged_with_code_reason_and_message_and_without_the_whole_status() {
    record();
    let rig = Rig::start(plain());
    rig.source.on_list(List::refused(status(403, "Forbidden")));
    rig.failures.first(1).await;
    let lines = lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("WARN list failed; relisting"), "{lines:#?}");
    assert!(lines[0].contains("forbidden (403 Forbidden): scripted"), "{lines:#?}");
    assert!(!lines[0].contains("Status"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_that_ends_immediately_is_not_logged_as_a_warning() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().wait(seconds(30)).error(expired()));
    record();
    rig.source.on_list(List::at("20"));
    let _watch = rig.source.open_watch(Watch::new());
    rig.failures.first(1).await;
    rig.pass(seconds(10)).await;
    let lines = lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("INFO watch interrupted; relisting"), "{lines:#?}");
}
