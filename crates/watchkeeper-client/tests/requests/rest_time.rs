//! Deadlines, idle timeouts, retries and waits, on virtual time and without a socket.

use std::{
    convert::Infallible,
    error::Error as StdError,
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::Pod;
use kube_client::client::{AuthError, Body};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use watchkeeper_client::{
    Client, Error,
    error::{Awaited, TransportKind},
    rest::{RequestBuilder, RestClient, Retry, retry_on_conflict},
};

type AnyBody = UnsyncBoxBody<Bytes, Infallible>;
type TestResult = Result<Response<AnyBody>, Box<dyn StdError + Send + Sync>>;

fn rest<F, Fut>(service: F) -> RestClient
where
    F: FnMut(Request<Body>) -> Fut + Send + 'static,
    Fut: Future<Output = TestResult> + Send + 'static,
{
    let kube = kube_client::Client::new(tower::service_fn(service), "default");
    Client::from(kube).rest()
}

/// Returns a client whose n-th request receives the n-th response, and the number of requests.
fn scripted(mut respond: impl FnMut(u32) -> TestResult + Send + 'static) -> (RestClient, Arc<AtomicU32>) {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let rest = rest(move |_| {
        let response = respond(counted.fetch_add(1, Ordering::Relaxed));
        async move { response }
    });
    (rest, count)
}

fn whole(code: u16, headers: &[(&str, &str)], body: &str) -> TestResult {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Ok(response.body(Full::from(body.to_owned()).boxed_unsync())?)
}

fn streaming(chunks: impl Stream<Item = &'static str> + Send + 'static) -> Response<AnyBody> {
    let frames = chunks.map(|chunk| Ok(Frame::data(Bytes::from(chunk))));
    Response::new(StreamBody::new(frames).boxed_unsync())
}

fn get(rest: &RestClient) -> RequestBuilder {
    rest.get().resource("nodes").name("n")
}

#[expect(clippy::disallowed_methods, reason = "virtual time, read to see how much of it has passed")]
fn now() -> Instant {
    Instant::now()
}

const SECOND: Duration = Duration::from_secs(1);

fn is_late(error: &Error, expected: Awaited) -> bool {
    matches!(error, Error::Deadline { part, .. } if *part == expected)
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_fails_after_65_seconds() {
    let rest = rest(|_| pending());
    let start = now();
    let error = get(&rest).send::<Value>().await.unwrap_err();
    assert_eq!(start.elapsed(), 65 * SECOND);
    assert_eq!(error.to_string(), "get nodes \"n\": no response within 65s");
    assert!(is_late(&error, Awaited::Head));

    let error = get(&rest).deadline(2 * SECOND).stream().await.unwrap_err();
    assert_eq!(start.elapsed(), 67 * SECOND);
    assert!(is_late(&error, Awaited::Head));
}

#[tokio::test(start_paused = true)]
async fn head_and_body_share_one_deadline() {
    let rest = rest(|_| async {
        sleep(40 * SECOND).await;
        Ok(streaming(stream::once(async { "{" }).chain(stream::pending())))
    });
    let start = now();
    let error = get(&rest).send::<Value>().await.unwrap_err();
    assert_eq!(start.elapsed(), 65 * SECOND);
    assert_eq!(error.to_string(), "get nodes \"n\": no complete response within 65s");
    assert!(is_late(&error, Awaited::Body));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_does_not_outlive_the_deadline() {
    let rest = rest(|_| async {
        Ok(streaming(stream::unfold((), |()| async {
            sleep(SECOND).await;
            Some((" ", ()))
        })))
    });
    let start = now();
    assert!(is_late(&get(&rest).send::<Value>().await.unwrap_err(), Awaited::Body));
    assert_eq!(start.elapsed(), 65 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_body_never_ends_is_still_that_error() {
    let rest = rest(|_| async {
        let body = StreamBody::new(stream::pending()).boxed_unsync();
        Ok(Response::builder().status(403).body(body)?)
    });
    let start = now();
    assert!(get(&rest).send::<Value>().await.unwrap_err().is_forbidden());
    assert_eq!(start.elapsed(), 65 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_stream_lives_as_long_as_it_is_not_silent() {
    let minutes_4 = 240 * SECOND;
    let chunks = move |n: u32| async move {
        if n == 100 {
            pending::<()>().await;
        }
        sleep(minutes_4).await;
        Some(("tick", n + 1))
    };
    let rest = rest(move |_| async move { Ok(streaming(stream::unfold(0, chunks))) });
    let start = now();
    let items: Vec<_> = get(&rest).stream().await.unwrap().collect().await;
    assert_eq!(items.len(), 101);
    let error = items.into_iter().next_back().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "get nodes \"n\": no further data within 300s");
    assert_eq!(start.elapsed(), 100 * minutes_4 + 300 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_a_silent_server() {
    let chunks = |n: u32| async move {
        sleep(10 * SECOND).await;
        (n < 3).then_some(("tick", n + 1))
    };
    let rest = rest(move |_| async move { Ok(streaming(stream::unfold(0, chunks))) });
    let mut stream = get(&rest).idle_deadline(11 * SECOND).stream().await.unwrap();
    for _ in 0..3 {
        stream.next().await.unwrap().unwrap();
        sleep(60 * SECOND).await;
    }
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn without_an_idle_deadline_a_stream_may_be_silent_forever() {
    let rest = rest(|_| async { Ok(streaming(stream::pending())) });
    let mut stream = get(&rest).idle_deadline(None).stream().await.unwrap();
    assert!(timeout(1_000_000 * SECOND, stream.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_retried_without_a_policy() {
    let (rest, count) = scripted(|_| whole(503, &[("retry-after", "1")], ""));
    let error = get(&rest).send::<Value>().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(SECOND));
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_retried_after_transient_failures_and_respects_retry_after() {
    let (rest, count) = scripted(|n| match n {
        0 => whole(503, &[], ""),
        1 => Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
        2 => whole(429, &[("retry-after", "20")], ""),
        _ => whole(200, &[], "{}"),
    });
    let start = now();
    get(&rest).retry(Retry::reads().seeded(1)).send::<Value>().await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 4);
    let waited = start.elapsed();
    // 0.1 to 0.15, 0.2 to 0.3, 20 to 25.
    assert!(waited >= Duration::from_millis(20_300) && waited <= Duration::from_millis(25_450), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn retries_end_with_the_last_error() {
    let (rest, count) = scripted(|n| whole(if n < 2 { 500 } else { 503 }, &[], ""));
    let error = get(&rest).retry(Retry::reads().attempts(3)).send::<Value>().await.unwrap_err();
    assert_eq!(error.status().unwrap().code, 503);
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn permanent_failures_are_not_retried() {
    for code in [400, 401, 403, 404, 405, 409, 410, 422] {
        let (rest, count) = scripted(move |_| whole(code, &[], ""));
        assert!(get(&rest).retry(Retry::reads()).send::<Value>().await.is_err());
        assert_eq!(count.load(Ordering::Relaxed), 1, "{code}");
    }
    let (rest, count) = scripted(|_| whole(200, &[], "not JSON"));
    assert!(get(&rest).retry(Retry::reads()).send::<Value>().await.is_err());
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_stream_is_retried_like_a_read() {
    let (rest, count) = scripted(|n| if n == 0 { whole(503, &[], "") } else { whole(200, &[], "log") });
    let mut stream = get(&rest).retry(Retry::reads()).stream().await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "log");
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn an_error_about_credentials_repeats_nothing_of_them() {
    let auth = || AuthError::AuthExec("plugin --token=canary failed".into());
    let (rest, _) = scripted(move |n| {
        Err(if n == 0 { kube_client::Error::Auth(auth()).into() } else { io::Error::other(auth()).into() })
    });
    for _ in 0..2 {
        let error = get(&rest).send::<Value>().await.unwrap_err();
        assert!(matches!(error, Error::Transport { kind: TransportKind::Credentials, .. }));
        let mut texts = vec![format!("{error:?}")];
        let mut next: Option<&dyn StdError> = Some(&error);
        while let Some(error) = next {
            texts.push(error.to_string());
            next = error.source();
        }
        assert!(texts.iter().all(|text| !text.contains("canary")), "{texts:?}");
    }
}

fn conflict() -> TestResult {
    whole(
        409,
        &[],
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}"#,
    )
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_met_by_reading_and_writing_again() {
    let (rest, count) = scripted(|n| if n < 2 { conflict() } else { whole(200, &[], "{}") });
    let start = now();
    let update = || rest.put().resource("nodes").name("n").body(&json!({})).send::<Value>();
    retry_on_conflict(&Retry::conflicts(), update).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 3);
    assert!(start.elapsed() >= Duration::from_millis(20) && start.elapsed() <= Duration::from_millis(24));
}

#[tokio::test(start_paused = true)]
async fn only_conflicts_are_retried_and_not_forever() {
    let exists =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}"#;
    let (rest, count) = scripted(move |n| if n == 0 { whole(409, &[], exists) } else { conflict() });
    let update = || rest.put().resource("nodes").name("n").body(&json!({})).send::<Pod>();
    assert!(retry_on_conflict(&Retry::conflicts(), update).await.unwrap_err().is_already_exists());
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert!(retry_on_conflict(&Retry::conflicts(), update).await.unwrap_err().is_conflict());
    assert_eq!(count.load(Ordering::Relaxed), 1 + 5);
}

#[test]
fn waits_grow_to_the_cap_within_their_jitter_and_repeat_with_the_seed() {
    let mut policy = Retry::reads().attempts(12).seeded(3);
    policy.cap = Duration::from_secs(1);
    let waits = |policy: &Retry| {
        let mut backoff = policy.backoff();
        std::iter::from_fn(move || backoff.next_wait(None)).collect::<Vec<_>>()
    };
    let first = waits(&policy);
    assert_eq!(first.len(), 11);
    for (n, wait) in first.iter().enumerate() {
        let base = Duration::from_millis(100 << n.min(10)).min(policy.cap);
        assert!(*wait >= base && *wait <= base.mul_f64(1.5), "wait {n} is {wait:?}");
    }
    assert_eq!(first, waits(&policy));
    assert_ne!(first, waits(&policy.clone().seeded(4)));
    assert!(waits(&policy.clone().attempts(1)).is_empty());
    assert!(waits(&policy.clone().attempts(0)).is_empty());
    policy.base = Duration::MAX;
    policy.cap = Duration::MAX;
    assert_eq!(waits(&policy).len(), 11, "absurd policies wait long and do not panic");
}

#[test]
fn a_reset_backoff_starts_over_with_the_first_wait() {
    let mut backoff = Retry::reads().attempts(4).seeded(3).backoff();
    while backoff.next_wait(None).is_some() {}
    backoff.reset();
    let waits: Vec<_> = std::iter::from_fn(|| backoff.next_wait(None)).collect();
    assert_eq!(waits.len(), 3);
    assert!(waits[0] <= Duration::from_millis(150), "{waits:?}");
}
