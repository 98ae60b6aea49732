//! Waits for one object, and watches as streams, over wires that break and histories that are lost.

use std::time::Duration;

use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::{
    Resource,
    params::{ListParams, WatchParams},
    watch::WatchEvent,
};
use tokio::sync::mpsc;
use watchkeeper_client::{
    Client, Error,
    rest::ResourceClient,
    wait::{self, Condition, Observed},
};
use watchkeeper_tests::{Cluster, ServiceWire, Wire as _};

const MINUTE: Duration = Duration::from_mins(1);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Stage {
    cluster: Cluster,
    wire: ServiceWire,
    client: Client,
}

impl Stage {
    fn new() -> Self {
        let cluster = Cluster::new();
        let wire = ServiceWire::to(cluster.server());
        let client = Client::from(wire.client());
        Self { cluster, wire, client }
    }

    fn maps(&self) -> ResourceClient<ConfigMap> {
        self.client.resource().default_namespace()
    }

    async fn create(&self, value: &str) {
        let map = format!(r#"{{"metadata": {{"name": "a"}}, "data": {{"k": "{value}"}}}}"#);
        self.cluster.send("POST", MAPS, &map).await;
    }

    async fn update(&self, value: &str) {
        let patch = format!(r#"{{"data": {{"k": "{value}"}}}}"#);
        self.cluster.send("PATCH", &format!("{MAPS}/a"), &patch).await;
    }

    async fn delete(&self) {
        self.cluster.send("DELETE", &format!("{MAPS}/a"), "").await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the virtual clock of the test is what is measured")]
fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// A condition that reports each state it is called with.
struct Reported<C> {
    condition: C,
    states: mpsc::UnboundedSender<Option<String>>,
}

impl<C: Condition<ConfigMap>> Condition<ConfigMap> for Reported<C> {
    fn is_met(&mut self, object: Option<&ConfigMap>) -> bool {
        let value = object.map(|map| map.data.as_ref().map_or("", |data| &data["k"]).to_owned());
        self.states.send(value).unwrap();
        self.condition.is_met(object)
    }

    fn description(&self) -> String {
        self.condition.description()
    }
}

/// The states that a condition was called with, as a test awaits them.
struct States(mpsc::UnboundedReceiver<Option<String>>);

impl States {
    async fn next_is(&mut self, expected: Option<&str>) {
        assert_eq!(self.0.recv().await.unwrap().as_deref(), expected);
    }
}

fn reported<C>(condition: C) -> (Reported<C>, States) {
    let (states, receiver) = mpsc::unbounded_channel();
    (Reported { condition, states }, States(receiver))
}

fn value_is(expected: &'static str) -> impl FnMut(Option<&ConfigMap>) -> bool {
    move |map| map.and_then(|map| map.data.as_ref()).is_some_and(|data| data["k"] == expected)
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_object_exists_is_as_wanted_and_is_gone() {
    let stage = Stage::new();
    let (condition, mut states) = reported(wait::exists());
    let maps = stage.maps();
    let script = async {
        states.next_is(None).await;
        stage.create("1").await;
    };
    let (created, ()) = tokio::join!(maps.await_condition("a", condition, MINUTE), script);
    let created = created.unwrap().unwrap();
    assert_eq!(created.metadata.name.as_deref(), Some("a"));

    let (condition, mut states) = reported(value_is("3"));
    let script = async {
        states.next_is(Some("1")).await;
        stage.update("2").await;
        states.next_is(Some("2")).await;
        stage.update("3").await;
    };
    let (changed, ()) = tokio::join!(maps.await_condition("a", condition, MINUTE), script);
    assert_eq!(changed.unwrap().unwrap().data.unwrap()["k"], "3");

    let (condition, mut states) = reported(wait::deleted());
    let script = async {
        states.next_is(Some("3")).await;
        stage.delete().await;
    };
    let (gone, ()) = tokio::join!(maps.await_condition("a", condition, MINUTE), script);
    assert_eq!(gone.unwrap(), None);
    assert_eq!(maps.await_condition("a", wait::deleted(), MINUTE).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_wait_survives_a_broken_connection_and_a_lost_history() {
    for is_compacted in [false, true] {
        let stage = Stage::new();
        stage.create("1").await;
        let (condition, mut states) = reported(value_is("4"));
        let script = async {
            states.next_is(Some("1")).await;
            stage.update("2").await;
            // Delivered by the watch, which therefore exists.
            states.next_is(Some("2")).await;
            let outage = stage.wire.cut();
            stage.update("3").await;
            stage.update("4").await;
            if is_compacted {
                stage.cluster.compact().await;
            }
            drop(outage);
        };
        let maps = stage.maps();
        let (met, ()) = tokio::join!(maps.await_condition("a", condition, MINUTE), script);
        assert_eq!(met.unwrap().unwrap().data.unwrap()["k"], "4", "compacted: {is_compacted}");
        // Resumed, the watch delivers each change; after the history is lost, only the last state is known.
        if !is_compacted {
            states.next_is(Some("3")).await;
        }
        states.next_is(Some("4")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_replaced_while_no_watch_exists_counts_as_deleted() {
    let stage = Stage::new();
    stage.create("1").await;
    let (condition, mut states) = reported(wait::deleted());
    let script = async {
        states.next_is(Some("1")).await;
        stage.update("2").await;
        states.next_is(Some("2")).await;
        let outage = stage.wire.cut();
        stage.delete().await;
        stage.create("3").await;
        stage.cluster.compact().await;
        drop(outage);
    };
    let maps = stage.maps();
    let (met, ()) = tokio::join!(maps.await_condition("a", condition, MINUTE), script);
    assert_eq!(met.unwrap().unwrap().data.unwrap()["k"], "3", "the object that has the name now");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_condition_ends_when_the_status_has_it() {
    let stage = Stage::new();
    let pod = r#"{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;
    stage.cluster.send("POST", "/api/v1/namespaces/default/pods", pod).await;
    let pods = stage.client.resource::<Pod>().default_namespace();
    let status = async |ready: &str| {
        let patch = format!(
            r#"{{"status": {{"phase": "Running", "conditions": [{{"type": "Ready", "status": "{ready}", "reason": "Probe"}}]}}}}"#
        );
        stage.cluster.send("PATCH", "/api/v1/namespaces/default/pods/p/status", &patch).await;
    };
    status("False").await;
    let error = pods.await_condition("p", wait::condition_true("Ready"), MINUTE).await.unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with(
            "watch pods \"p\" in namespace \"default\": condition Ready=True not observed within 60s; last observed: resourceVersion "
        ) && message.ends_with(", phase Running, Ready=False (Probe)"),
        "{message}"
    );
    let ready = pods.await_condition("p", wait::condition_true("Ready"), MINUTE);
    let (ready, ()) = tokio::join!(ready, status("True"));
    assert_eq!(ready.unwrap().unwrap().status.unwrap().phase.as_deref(), Some("Running"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_time_is_an_error_with_the_last_state_and_the_last_failure() {
    let stage = Stage::new();
    let maps = stage.maps();
    let started = now();
    let error = maps.await_condition("a", wait::exists(), MINUTE).await.unwrap_err();
    assert_eq!(started.elapsed(), MINUTE);
    let Error::Unmet { last, source, .. } = &error else { panic!("{error}") };
    assert!(matches!(**last, Observed::Absent { .. }) && source.is_none(), "{error}");

    let _outage = stage.wire.cut();
    let error = maps.await_condition("a", wait::exists(), MINUTE).await.unwrap_err();
    let Error::Unmet { last, source: Some(source), .. } = &error else { panic!("{error}") };
    assert_eq!(**last, Observed::Nothing);
    assert!(matches!(**source, Error::Transport { .. }), "{source}");
    assert!(
        error.to_string().contains("existence not observed within 60s; last observed: nothing"),
        "{error}"
    );
    assert!(error.to_string().contains("last failure: list configmaps"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_does_not_pass_ends_a_wait_at_once() {
    let stage = Stage::new();
    let started = now();
    let widgets = stage.client.dynamic(&"example.com/v1/widgets".parse().unwrap()).namespace("default");
    let error = widgets.await_condition("a", wait::exists(), MINUTE).await.unwrap_err();
    assert!(error.is_not_found() && !error.is_object_not_found(), "{error}");
    let error = stage.client.resource::<ConfigMap>().await_condition("a", wait::exists(), MINUTE).await;
    assert!(matches!(error, Err(Error::Invalid { .. })), "a name without a namespace");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_object_is_awaited_with_its_kind_and_needs_its_namespace() {
    let stage = Stage::new();
    stage.create("1").await;
    let maps = stage.client.dynamic(&"v1/configmaps".parse().unwrap());
    let map = maps.namespace("default").await_condition("a", wait::exists(), MINUTE).await.unwrap().unwrap();
    assert_eq!(map.types.unwrap().kind, "ConfigMap");
    let error = maps.await_condition("a", wait::exists(), MINUTE).await.unwrap_err();
    assert!(error.to_string().contains("choose a namespace"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_delivers_typed_events_after_a_version_until_the_server_ends_it() {
    let stage = Stage::new();
    stage.create("1").await;
    let maps = stage.maps();
    let version = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    stage.update("2").await;
    stage.delete().await;
    stage.create("3").await;
    let params = WatchParams::default().timeout(5);
    let events: Vec<_> = maps.watch(&params, &version).await.unwrap().try_collect().await.unwrap();
    let named: Vec<_> = events
        .iter()
        .filter_map(|event| {
            let (name, map) = match event {
                WatchEvent::Added(map) => ("added", map),
                WatchEvent::Modified(map) => ("modified", map),
                WatchEvent::Deleted(map) => ("deleted", map),
                WatchEvent::Bookmark(_) => return None,
                WatchEvent::Error(status) => panic!("{status:?}"),
            };
            Some((name, map.data.as_ref().unwrap()["k"].clone(), map.meta().name.clone()))
        })
        .collect();
    let event = |name, value: &str| (name, value.to_owned(), Some("a".to_owned()));
    assert_eq!(named, [event("modified", "2"), event("deleted", "2"), event("added", "3")]);

    stage.cluster.compact().await;
    let started = maps.watch(&WatchParams::default(), &version).await;
    let expired = match started {
        Ok(mut events) => events.try_next().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(expired.is_expired(), "{expired}");
}
