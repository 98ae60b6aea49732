//! What to do after what: client-go's decision table beside ours.

use std::{ops::Range, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{error::TransportKind, list_watch::ScriptedSource};

use super::support::{
    List, Rig, Watch, expired, map, plain, seconds, status, streaming, too_large, too_many,
};

type Source = ScriptedSource<ConfigMap>;

struct Row {
    condition: &'static str,
    /// The behaviour of client-go, if it differs.
    theirs: Option<&'static str>,
    streaming: bool,
    script: fn(&Source),
    requests: &'static [&'static str],
    /// The delays before the second request and all later ones.
    waits: &'static [Wait],
}

#[derive(Debug, Clone, Copy)]
enum Wait {
    None,
    /// The first wait after a failure, the second...
    Backoff(u32),
}

impl Wait {
    fn range(self) -> Range<Duration> {
        match self {
            Self::None => Duration::ZERO..Duration::from_millis(1),
            Self::Backoff(n) => {
                // The first two waits have the shortest interval. A timer may be up to a millisecond late.
                let interval = Duration::from_millis(800) * 2_u32.pow(n.saturating_sub(2));
                interval / 2..interval + Duration::from_millis(2)
            }
        }
    }
}

fn listed(source: &Source) {
    source.on_list(List::at("10").item(map("a", "5")));
}

fn streamed(source: &Source) {
    source.on_watch(
        Watch::new().added(map("a", "5")).initial_events_end("10").wait(seconds(2)).error(expired()),
    );
}

const FIRST: &str = "list 0 limit=500";

#[expect(clippy::too_many_lines, reason = "a table")]
fn table() -> Vec<Row> {
    use Wait::{Backoff, None as Now};
    vec![
        Row {
            condition: "streaming list, connect: connection refused",
            theirs: None,
            streaming: true,
            script: |source| source.on_watch(Watch::unreachable(TransportKind::Refused)),
            requests: &["stream newest", "stream newest"],
            waits: &[Backoff(1)],
        },
        Row {
            condition: "streaming list, connect: 429",
            theirs: None,
            streaming: true,
            script: |source| {
                source.on_watch(Watch::refused(too_many(0)));
                source.on_watch(Watch::refused(too_many(0)));
            },
            requests: &["stream newest", "stream newest", "stream newest"],
            waits: &[Backoff(1), Backoff(2)],
        },
        Row {
            condition: "streaming list, connect: 410",
            theirs: None,
            streaming: true,
            script: |source| {
                streamed(source);
                source.on_watch(Watch::refused(expired()));
            },
            requests: &["stream newest", "stream >=10", "stream newest"],
            waits: &[],
        },
        Row {
            condition: "streaming list, ERROR event: too large",
            theirs: None,
            streaming: true,
            script: |source| {
                streamed(source);
                source.on_watch(Watch::new().error(too_large()));
            },
            requests: &["stream newest", "stream >=10", "stream newest"],
            waits: &[],
        },
        Row {
            condition: "streaming list, connect: 422 Invalid",
            theirs: Some("the same, and requests a stream again next time"),
            streaming: true,
            script: |source| source.on_watch(Watch::refused(status(422, "Invalid"))),
            requests: &["stream newest", FIRST],
            waits: &[Now],
        },
        Row {
            condition: "streaming list, ERROR event: 500",
            theirs: None,
            streaming: true,
            script: |source| source.on_watch(Watch::new().error(status(500, "InternalError"))),
            requests: &["stream newest", FIRST],
            waits: &[Now],
        },
        Row {
            condition: "streaming list, closed before its end, again and again",
            theirs: Some("restarts at once, for ever"),
            streaming: true,
            script: |source| {
                for _ in 0..3 {
                    source.on_watch(Watch::new().added(map("a", "5")));
                }
            },
            requests: &["stream newest", "stream newest", "stream newest", FIRST],
            waits: &[Now, Backoff(1), Now],
        },
        Row {
            condition: "streaming list, the end of the initial events",
            theirs: None,
            streaming: true,
            script: |source| {
                let events = Watch::new().added(map("a", "5")).initial_events_end("10");
                source.on_watch(events.modified(map("a", "11")));
            },
            requests: &["stream newest", "watch 11"],
            waits: &[Now],
        },
        Row {
            condition: "list: 410 on page 2",
            theirs: None,
            streaming: false,
            script: |source| {
                source.on_list(List::at("10").item(map("a", "5")).continued("t", None));
                source.on_list(List::refused(expired()));
            },
            requests: &[FIRST, "list continue=t limit=500", "list 0"],
            waits: &[Now, Now],
        },
        Row {
            condition: "list: 410",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(expired()));
                source.on_list(List::refused(expired()));
            },
            requests: &[FIRST, "watch 10", "list 10", "list newest limit=500"],
            waits: &[Now, Now, Now],
        },
        Row {
            condition: "list: too large",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(expired()));
                source.on_list(List::refused(too_large()));
            },
            requests: &[FIRST, "watch 10", "list 10", "list newest limit=500"],
            waits: &[Now, Now, Now],
        },
        Row {
            condition: "list: 403",
            theirs: None,
            streaming: false,
            script: |source| source.on_list(List::refused(status(403, "Forbidden"))),
            requests: &[FIRST, FIRST],
            waits: &[Backoff(1)],
        },
        Row {
            condition: "list: 500, and 503 after it",
            theirs: None,
            streaming: false,
            script: |source| {
                source.on_list(List::refused(status(500, "InternalError")));
                source.on_list(List::refused(status(503, "ServiceUnavailable")));
            },
            requests: &[FIRST, FIRST, FIRST],
            waits: &[Backoff(1), Backoff(2)],
        },
        Row {
            condition: "watch, connect: connection refused",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::unreachable(TransportKind::Refused));
            },
            requests: &[FIRST, "watch 10", "watch 10"],
            waits: &[Now, Backoff(1)],
        },
        Row {
            condition: "watch, connect: 429",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(too_many(0)));
            },
            requests: &[FIRST, "watch 10", "watch 10"],
            waits: &[Now, Backoff(1)],
        },
        Row {
            condition: "watch, connect: 410 as an HTTP status",
            theirs: Some("the same list, after a backoff"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(expired()));
            },
            requests: &[FIRST, "watch 10", "list 10"],
            waits: &[Now, Now],
        },
        Row {
            condition: "watch, connect: 504 too large",
            theirs: Some("lists at version 10, receives the same error, and then lists from scratch"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(too_large()));
            },
            requests: &[FIRST, "watch 10", "list newest limit=500"],
            waits: &[Now, Now],
        },
        Row {
            condition: "watch, connect: 403",
            theirs: Some("lists again"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(status(403, "Forbidden")));
            },
            requests: &[FIRST, "watch 10", "watch 10"],
            waits: &[Now, Backoff(1)],
        },
        Row {
            condition: "watch, connect: 404",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(status(404, "NotFound")));
            },
            requests: &[FIRST, "watch 10", "list 10"],
            waits: &[Now, Backoff(1)],
        },
        Row {
            condition: "watch, connect: 503, TLS, reset: the server lost nothing",
            theirs: Some("lists again each time"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::refused(status(503, "ServiceUnavailable")));
                source.on_watch(Watch::unreachable(TransportKind::Tls));
                source.on_watch(Watch::unreachable(TransportKind::Reset));
            },
            requests: &[FIRST, "watch 10", "watch 10", "watch 10", "watch 10"],
            waits: &[Now, Backoff(1), Backoff(1), Backoff(1)],
        },
        Row {
            condition: "watch: closed after an event",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().modified(map("a", "11")));
                source.on_watch(Watch::new().bookmark("15"));
            },
            requests: &[FIRST, "watch 10", "watch 11", "watch 15"],
            waits: &[Now, Now, Now],
        },
        Row {
            condition: "watch: closed at once and empty, twice",
            theirs: Some("lists again after the first"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new());
                source.on_watch(Watch::new());
            },
            requests: &[FIRST, "watch 10", "watch 10", "list 10"],
            waits: &[Now, Backoff(1), Backoff(2)],
        },
        Row {
            condition: "watch, ERROR event: 410",
            theirs: Some("the same list, after a backoff"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().modified(map("a", "11")).error(expired()));
            },
            requests: &[FIRST, "watch 10", "list 11"],
            waits: &[Now, Now],
        },
        Row {
            condition: "watch, ERROR event: 410 again and again, though each watch brings something",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().modified(map("a", "11")).error(expired()));
                source.on_list(List::at("20"));
                source.on_watch(Watch::new().modified(map("a", "21")).error(expired()));
                source.on_list(List::at("30"));
                source.on_watch(Watch::new().modified(map("a", "31")).error(expired()));
            },
            requests: &[FIRST, "watch 10", "list 11", "watch 20", "list 21", "watch 30", "list 31"],
            waits: &[Now, Now, Now, Backoff(1), Now, Backoff(1)],
        },
        Row {
            condition: "watch, ERROR event: 429",
            theirs: None,
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().error(too_many(0)));
            },
            requests: &[FIRST, "watch 10", "watch 10"],
            waits: &[Now, Backoff(1)],
        },
        Row {
            condition: "watch, ERROR event: 500, twice",
            theirs: Some("lists again after the first, unless configured to retry for a while"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().error(status(500, "InternalError")));
                source.on_watch(Watch::new().error(status(500, "InternalError")));
            },
            requests: &[FIRST, "watch 10", "watch 10", "list 10"],
            waits: &[Now, Backoff(1), Backoff(2)],
        },
        Row {
            condition: "watch, ERROR event: 503",
            theirs: Some("lists again"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().error(status(503, "ServiceUnavailable")));
            },
            requests: &[FIRST, "watch 10", "watch 10"],
            waits: &[Now, Backoff(1)],
        },
        Row {
            condition: "watch: the connection is cut after an event, and then before one",
            theirs: Some("a cut is as good as a clean close"),
            streaming: false,
            script: |source| {
                listed(source);
                source.on_watch(Watch::new().modified(map("a", "11")).broken(TransportKind::Reset));
                source.on_watch(Watch::new().broken(TransportKind::Reset));
            },
            requests: &[FIRST, "watch 10", "watch 11", "watch 11"],
            waits: &[Now, Now, Backoff(1)],
        },
    ]
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_watch_leads_to_the_request_and_the_delay_of_the_table() {
    for row in table() {
        let options = if row.streaming { streaming() } else { plain() };
        let rig = Rig::start_with(options, row.script, |reflector| reflector);
        let requests = rig.requests(row.requests.len()).await;
        let (condition, theirs) = (row.condition, row.theirs.unwrap_or("the same"));
        assert_eq!(requests, row.requests, "{condition} (client-go: {theirs})");
        for (n, wait) in row.waits.iter().enumerate() {
            let waited = rig.delay_after(n).await;
            assert!(
                wait.range().contains(&waited),
                "{condition}: waited {waited:?} before request {}",
                n + 1
            );
        }
        rig.pass(Duration::from_mins(1)).await;
        assert_eq!(rig.sent.all().len(), row.requests.len(), "{condition}: and no more than that");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_reflector_sends_no_further_request_in_any_state() {
    for row in table() {
        let options = if row.streaming { streaming() } else { plain() };
        for stop_after in 0..row.requests.len() {
            let mut rig = Rig::start_with(options.clone(), row.script, |reflector| reflector);
            rig.requests(stop_after).await;
            let asked_before = rig.sent.all().len();
            rig.stop().await;
            rig.pass(Duration::from_mins(10)).await;
            assert_eq!(rig.sent.all().len(), asked_before, "{}", row.condition);
        }
    }
}
