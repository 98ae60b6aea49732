//! Injected faults, as clients see them in process and on a socket.

use std::{io::ErrorKind, pin::pin, time::Duration};

use crate::support::{Cluster, read};
use futures_util::poll;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client, Config,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use tower::ServiceExt;
use watchkeeper_apiserver::{
    ApiServer, Clock, TokioClock,
    faults::{Fault, Faults, Requests, Verb},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true";

fn maps() -> Requests {
    Requests::of::<ConfigMap>()
}

fn creates() -> Requests {
    maps().verb(Verb::Create)
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// Sends a request and returns its code and body, or the kind of its connection error.
async fn try_call(
    cluster: &Cluster,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<(u16, Value), ErrorKind> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = cluster.server.service().oneshot(request.body(body.to_string()).unwrap()).await;
    match response {
        Ok(response) => Ok(read(response).await),
        Err(error) => Err(error.kind()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_receives_a_status_and_is_not_executed() {
    let cluster = Cluster::new();
    for (fault, code, reason) in [
        (Fault::conflict(), 409, "Conflict"),
        (Fault::too_many_requests(3), 429, "TooManyRequests"),
        (Fault::internal_error(), 500, "InternalError"),
        (Fault::unavailable(), 503, "ServiceUnavailable"),
        (Fault::expired(), 410, "Expired"),
        (Fault::status(403, "Forbidden", "no"), 403, "Forbidden"),
    ] {
        let fault = cluster.server.faults().inject(creates(), fault);
        let (actual, status) = cluster.call("POST", MAPS, named("a")).await;
        assert_eq!((actual, &status["reason"], &status["kind"]), (code, &json!(reason), &json!("Status")));
        assert_eq!(cluster.get(&format!("{MAPS}/a")).await.0, 404);
        assert_eq!(fault.count(), 1, "{reason}");
    }
    cluster.ok("POST", MAPS, named("a")).await;
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_receives_a_delay_before_retries() {
    let cluster = Cluster::new();
    let _fault = cluster.server.faults().inject(maps(), Fault::too_many_requests(3));
    let response = cluster.send("GET", MAPS, &Value::Null).await;
    assert_eq!(response.headers()["retry-after"], "3");
    let (_, status) = read(response).await;
    assert_eq!(status["details"]["retryAfterSeconds"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_has_no_effect_and_a_lost_response_has() {
    let cluster = Cluster::new();
    let faults = cluster.server.faults();
    let lost = Err(ErrorKind::ConnectionReset);
    let fault = faults.inject(creates(), Fault::lose_request().times(1));
    assert_eq!(try_call(&cluster, "POST", MAPS, &named("a")).await, lost);
    assert_eq!(cluster.get(&format!("{MAPS}/a")).await.0, 404);
    assert_eq!(fault.count(), 1);

    let fault = faults.inject(creates(), Fault::lose_response().times(1));
    assert_eq!(try_call(&cluster, "POST", MAPS, &named("a")).await, lost);
    assert_eq!(cluster.get(&format!("{MAPS}/a")).await.0, 200);
    assert_eq!(fault.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn delays_run_on_the_clock_of_the_server() {
    let cluster = Cluster::new();
    let clock = TokioClock::new();
    for (fault, is_executed_before) in [
        (Fault::delay_request(Duration::from_secs(90)), false),
        (Fault::delay_response(Duration::from_secs(90)), true),
    ] {
        let fault = cluster.server.faults().inject(creates(), fault.times(1));
        let (name, began) = (if is_executed_before { "b" } else { "a" }, clock.now());
        let body = named(name);
        let mut create = pin!(cluster.send("POST", MAPS, &body));
        assert!(poll!(create.as_mut()).is_pending());
        let code = cluster.get(&format!("{MAPS}/{name}")).await.0;
        assert_eq!(code, if is_executed_before { 200 } else { 404 });
        assert_eq!(create.await.status(), StatusCode::CREATED);
        assert_eq!(clock.now().saturating_sub(began), Duration::from_secs(90));
        assert_eq!(fault.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_running_watches_and_refuses_new_ones_until_it_is_removed() {
    let cluster = Cluster::new();
    let mut running = cluster.watch(WATCH).await;
    let mut other = cluster.watch("/api/v1/namespaces?watch=true").await;
    cluster.ok("POST", MAPS, named("a")).await;
    assert!(running.next().await.is_some());

    let cut = cluster.server.faults().inject(maps(), Fault::cut_watches());
    let error = running.body.frame().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(running.body.frame().await.is_none());
    assert!(try_call(&cluster, "GET", WATCH, &Value::Null).await.is_err());
    assert_eq!(cluster.get(MAPS).await.0, 200, "only watches are affected");
    assert_eq!(cut.count(), 2);
    assert!(other.next().await.is_some(), "watches of other resources continue");

    drop(cut);
    assert!(cluster.watch(WATCH).await.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_resumes_before_the_expired_history_receives_410() {
    let cluster = Cluster::new();
    let made = cluster.ok("POST", MAPS, named("a")).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    cluster.ok("POST", MAPS, named("b")).await;
    cluster.server.expire_history();
    let mut watch = cluster.watch(&format!("{WATCH}&resourceVersion={version}")).await;
    let (frame, status) = watch.next().await.unwrap();
    assert_eq!((frame.as_str(), &status["code"]), ("ERROR", &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn a_test_can_wait_until_a_fault_was_injected() {
    let cluster = Cluster::new();
    let fault = cluster.server.faults().inject(maps().verb(Verb::List), Fault::unavailable());
    let mut reached = pin!(fault.reached(2));
    cluster.get(MAPS).await;
    assert!(poll!(reached.as_mut()).is_pending());
    cluster.get(MAPS).await;
    reached.await;
}

#[tokio::test(start_paused = true)]
async fn faults_of_one_client_do_not_affect_another() {
    let server = ApiServer::in_process();
    let faults = Faults::new();
    let faulty: Api<ConfigMap> = Api::default_namespaced(faults.client(&server.client()));
    let healthy: Api<ConfigMap> = Api::default_namespaced(server.client());
    let map: ConfigMap = serde_json::from_value(named("a")).unwrap();

    let outage = faults.inject(Requests::all(), Fault::lose_request());
    assert!(faulty.create(&PostParams::default(), &map).await.is_err());
    healthy.create(&PostParams::default(), &map).await.unwrap();
    drop(outage);
    assert_eq!(faulty.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn on_a_socket_a_fault_breaks_the_connection() {
    let server = ApiServer::in_process();
    let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let client = Client::try_from(Config::new(endpoint.url().parse().unwrap())).unwrap();
    let get = |path: &str| Request::get(path).body(kube_client::client::Body::empty()).unwrap();

    let lost = server.faults().inject(maps().verb(Verb::List), Fault::lose_response().times(1));
    assert!(client.send(get(MAPS)).await.is_err());
    assert_eq!(client.send(get(MAPS)).await.unwrap().status(), StatusCode::OK);
    assert_eq!(lost.count(), 1);

    let watch = client.send(get("/api/v1/namespaces?watch=true")).await.unwrap();
    let mut frames = watch.into_body();
    assert!(frames.frame().await.unwrap().is_ok());
    let cut = server.faults().inject(Requests::all(), Fault::cut_watches());
    loop {
        match frames.frame().await {
            Some(Ok(_)) => {}
            Some(Err(_)) => break,
            None => panic!("a cut watch must not end as if it were complete"),
        }
    }
    assert!(client.send(get("/api/v1/namespaces?watch=true")).await.is_err());
    assert_eq!(cut.count(), 2);
    server.shutdown().await;
}
