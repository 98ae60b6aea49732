//! Servers that stop sending, on paused time: no socket, no waiting.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::client::Body;
use tokio::time::Instant;
use watchkeeper_client::{
    Client, Error,
    classify::{Decision, Failure, Next, Phase, Situation, classify},
    error::Awaited,
    list_watch::{ListRequest, ListWatch, ListerWatcher, Timeouts, WatchRequest},
};

const EVENT: &str = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"shop\",\"resourceVersion\":\"1\"}}}\n";

/// A step of the server in sending a body.
#[derive(Clone, Copy)]
enum Step {
    Send(&'static str),
    Wait(Duration),
    Stall,
}

/// Returns a source for a server that takes `head` to respond and then performs the steps.
fn source(head: Duration, steps: Vec<Step>) -> ListWatch<ConfigMap> {
    let service = tower::service_fn(move |_: Request<Body>| {
        let steps = steps.clone();
        async move {
            tokio::time::sleep(head).await;
            let body = stream::iter(steps).filter_map(|step| async move {
                match step {
                    Step::Send(text) => {
                        Some(Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(text.as_bytes()))))
                    }
                    Step::Wait(duration) => {
                        tokio::time::sleep(duration).await;
                        None
                    }
                    Step::Stall => std::future::pending().await,
                }
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(body.boxed())))
        }
    });
    let client = Client::from(kube_client::Client::new(service, "default"));
    ListWatch::new(&client.resource::<ConfigMap>())
}

#[expect(clippy::disallowed_methods, reason = "the virtual clock of the test is what is measured")]
fn now() -> Instant {
    Instant::now()
}

fn part(error: &Error) -> (Awaited, Duration) {
    match error {
        Error::Deadline { part, after, .. } => (*part, *after),
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stalls_ends_shortly_after_the_server_should_have_ended_it() {
    let steps = vec![Step::Wait(Duration::from_secs(100)), Step::Send(EVENT), Step::Stall];
    let source = source(Duration::ZERO, steps);
    let start = now();
    let mut events = source.watch(WatchRequest::new().timeout(Duration::from_mins(5))).await.unwrap();
    assert!(events.next().await.unwrap().is_ok());
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(now() - start, Duration::from_secs(305), "events in between do not extend the deadline");
    assert_eq!(part(&error), (Awaited::Chunk, Duration::from_secs(305)));
    assert!(events.next().await.is_none());
    let classification = classify(Situation::at(Phase::WatchStream), Failure::from(&error));
    assert_eq!((classification.reason.label(), classification.decision), ("idle", Decision::Resume));
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_response_head_fails_at_its_deadline() {
    let source = source(Duration::from_hours(1), Vec::new());
    let start = now();
    let error = source.watch(WatchRequest::new()).await.map(|_| ()).unwrap_err();
    assert_eq!(part(&error), (Awaited::Head, Duration::from_secs(65)));
    assert_eq!(now() - start, Duration::from_secs(65));
    let classification = classify(Situation::at(Phase::WatchStart), Failure::from(&error));
    assert_eq!(classification.decision.next(), Next::Resume);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_that_ends_in_time_is_no_error() {
    let steps = vec![Step::Wait(Duration::from_secs(301)), Step::Send(EVENT)];
    let mut events = source(Duration::ZERO, steps)
        .watch(WatchRequest::new().timeout(Duration::from_mins(5)))
        .await
        .unwrap();
    assert!(events.next().await.unwrap().is_ok());
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_stalls_is_given_up_by_its_silence() {
    let start = now();
    let item = Step::Send(r#"{"metadata":{"name":"a"}},"#);
    let steps = vec![Step::Send("{\"items\":["), Step::Wait(Duration::from_secs(50)), item, Step::Stall];
    let mut page = source(Duration::ZERO, steps).list(ListRequest::new()).await.unwrap();
    assert!(page.next().await.unwrap().is_ok());
    let error = page.next().await.unwrap().unwrap_err();
    assert_eq!(part(&error), (Awaited::Chunk, Duration::from_mins(1)));
    assert_eq!(now() - start, Duration::from_secs(110));
    assert!(page.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_sends_bytes_but_no_object_is_ended_for_lack_of_progress() {
    let drop_by_drop = [Step::Send(" "), Step::Wait(Duration::from_secs(25))].repeat(100);
    let start = now();
    let mut page = source(Duration::ZERO, drop_by_drop).list(ListRequest::new()).await.unwrap();
    let error = page.next().await.unwrap().unwrap_err();
    assert_eq!(part(&error), (Awaited::Body, Duration::from_mins(1)));
    assert_eq!(now() - start, Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_list_that_makes_progress_may_take_an_hour() {
    let item = [Step::Send(r#"{"metadata":{"name":"a"}},"#), Step::Wait(Duration::from_secs(50))];
    let mut steps = vec![Step::Send("{\"items\":[")];
    steps.extend(item.repeat(72));
    steps.push(Step::Send(r#"{"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"7"}}"#));
    let start = now();
    let page = source(Duration::ZERO, steps).list(ListRequest::new()).await.unwrap();
    let parts: Vec<_> = page.collect().await;
    assert_eq!((parts.len(), parts.iter().filter(|part| part.is_err()).count()), (74, 0));
    assert_eq!(now() - start, Duration::from_hours(1));
}

#[tokio::test(start_paused = true)]
async fn the_times_are_the_callers_to_choose() {
    let mut timeouts = Timeouts::default();
    timeouts.watch = Duration::from_secs(10);
    timeouts.watch_grace = Duration::from_secs(1);
    let start = now();
    let mut events = source(Duration::ZERO, vec![Step::Stall])
        .timeouts(timeouts)
        .watch(WatchRequest::new())
        .await
        .unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    let waited = now() - start;
    assert_eq!(part(&error), (Awaited::Chunk, waited));
    assert!((11..=21).contains(&waited.as_secs()), "{waited:?}");
}
