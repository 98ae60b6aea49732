//! Events written to an embedded server.

use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{ConfigMap, Node},
    events::v1::Event,
};
use kube_core::params::{DeleteParams, ListParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::Client;
use watchkeeper_client::kube_client::Api;
use watchkeeper_controller::{
    events::{self, EventMetrics, EventOptions, EventType, Recorder},
    manager::Manager,
    time::Time,
};

use crate::faults::{Fate, Faults};

const SECOND: Duration = Duration::from_secs(1);

struct Writing {
    recorder: Recorder,
    metrics: EventMetrics,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Writing {
    fn start(client: impl Into<Client>, options: EventOptions) -> Self {
        let time = Time::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        let metrics = EventMetrics::default();
        let (recorder, writer) = events::channel(&client.into(), options, time, &metrics);
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(writer.run(stop.clone()));
        Self { recorder: recorder.named("shop"), metrics, stop, tasks }
    }

    async fn end(&mut self) {
        self.stop.cancel();
        self.tasks.join_next().await.expect("started").expect("no panic");
    }

    fn record(&self, object: &ConfigMap, reason: &str) {
        self.recorder.event(object, EventType::Normal, reason, "Sync", "the object is up to date");
    }
}

fn config(name: &str) -> ConfigMap {
    serde_json::from_value(
        json!({"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "7"}}),
    )
    .unwrap()
}

async fn events(server: &ApiServer) -> Vec<Event> {
    Api::<Event>::all(server.client()).list(&ListParams::default()).await.unwrap().items
}

#[tokio::test(start_paused = true)]
async fn an_event_has_the_fields_that_kubernetes_expects() {
    let server = ApiServer::in_process();
    let writing = Writing::start(server.client(), EventOptions::default());
    writing.recorder.event(&config("a"), EventType::Warning, "Failed", "Sync", "no disk");
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
    let regarding = kube_core::Resource::object_ref(&node, &());
    let related = kube_core::Resource::object_ref(&config("a"), &());
    let ready = (EventType::Normal, "Ready", "Watch", "the node is ready");
    writing.recorder.event_on(regarding, Some(related), ready.0, ready.1, ready.2, ready.3);
    tokio::time::sleep(SECOND).await;
    let events = events(&server).await;
    let event = events.iter().find(|event| event.reason.as_deref() == Some("Failed")).unwrap();
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert!(event.metadata.name.as_deref().unwrap().starts_with("a."));
    assert_eq!((event.type_.as_deref(), event.action.as_deref()), (Some("Warning"), Some("Sync")));
    assert_eq!(event.note.as_deref(), Some("no disk"));
    assert_eq!(event.reporting_controller.as_deref(), Some("shop"));
    assert!(event.reporting_instance.as_deref().unwrap().starts_with("shop-"));
    let regarding = event.regarding.clone().unwrap();
    assert_eq!(
        (regarding.kind.as_deref(), regarding.api_version.as_deref()),
        (Some("ConfigMap"), Some("v1"))
    );
    assert_eq!((regarding.uid.as_deref(), regarding.resource_version), (Some("a"), None));
    assert_eq!(event.series, None);
    assert_eq!(event.event_time.as_ref().unwrap().0, "2026-01-02T03:04:05Z".parse().unwrap());
    let of_node = events.iter().find(|event| event.reason.as_deref() == Some("Ready")).unwrap();
    assert_eq!(
        of_node.metadata.namespace.as_deref(),
        Some("default"),
        "the event of a cluster-scoped object"
    );
    assert_eq!(of_node.related.as_ref().unwrap().name.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_one_object_with_a_count() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let mut writing = Writing::start(faults.client(&server), EventOptions::default());
    for _ in 0..100 {
        writing.record(&config("a"), "Synced");
        tokio::time::sleep(SECOND).await;
    }
    writing.record(&config("b"), "Synced");
    tokio::time::sleep(SECOND).await;
    let requests = faults.requests().len();
    assert!(requests <= 6, "a create, the second occurrence, one a minute: {:?}", faults.requests());
    writing.end().await;
    let events = events(&server).await;
    assert_eq!(events.len(), 2);
    let series = events.iter().find_map(|event| event.series.clone()).unwrap();
    assert_eq!(series.count, 100, "unwritten occurrences are written at the end");
    assert_eq!(series.last_observed_time.0, "2026-01-02T03:05:44Z".parse().unwrap());
    assert_eq!(writing.metrics.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_are_retried_while_the_server_is_unavailable_and_recording_does_not_block() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    faults.plan(|_, _| Fate::Lost);
    let writing = Writing::start(faults.client(&server), EventOptions::default());
    writing.record(&config("a"), "Synced");
    tokio::time::sleep(SECOND * 25).await;
    assert_eq!(faults.requests().len(), 3);
    faults.plan(|_, _| Fate::AnswerLost);
    tokio::time::sleep(SECOND * 10).await;
    faults.plan(|_, _| Fate::Pass);
    tokio::time::sleep(SECOND * 10).await;
    assert_eq!(events(&server).await.len(), 1, "written once, although the first response was lost");
    assert_eq!(writing.metrics.dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_does_not_delay_other_events() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let mut is_first = true;
    faults.plan(move |_, _| if std::mem::take(&mut is_first) { Fate::Hangs } else { Fate::Pass });
    let writing = Writing::start(faults.client(&server), EventOptions::default());
    writing.record(&config("a"), "Hangs");
    writing.record(&config("b"), "Synced");
    tokio::time::sleep(SECOND).await;
    assert_eq!(events(&server).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_beyond_the_queue_are_dropped_and_counted_without_blocking() {
    let server = ApiServer::in_process();
    let mut options = EventOptions::default();
    options.queue = 10;
    let mut writing = Writing::start(server.client(), options);
    // No other task runs meanwhile, so the writer cannot dequeue any event.
    for number in 0..15 {
        writing.record(&config(&format!("c{number}")), "Synced");
    }
    assert_eq!(writing.metrics.dropped(), 5);
    writing.end().await;
    assert_eq!(events(&server).await.len(), 10, "the queued events are written");
    writing.record(&config("late"), "Synced");
    assert_eq!(writing.metrics.dropped(), 6, "the writer has ended");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_rejects_is_dropped() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let writing = Writing::start(faults.client(&server), EventOptions::default());
    let mut nowhere = config("a");
    nowhere.metadata.namespace = Some("no-such-namespace".to_owned());
    writing.record(&nowhere, "Synced");
    tokio::time::sleep(SECOND * 300).await;
    assert_eq!((faults.requests().len(), writing.metrics.dropped()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_series_whose_object_was_deleted_continues_as_a_new_object() {
    let server = ApiServer::in_process();
    let writing = Writing::start(server.client(), EventOptions::default());
    writing.record(&config("a"), "Synced");
    writing.record(&config("a"), "Synced");
    tokio::time::sleep(SECOND).await;
    let name = events(&server).await[0].metadata.name.clone().unwrap();
    Api::<Event>::default_namespaced(server.client()).delete(&name, &DeleteParams::default()).await.unwrap();
    writing.record(&config("a"), "Synced");
    tokio::time::sleep(SECOND * 61).await;
    let events = events(&server).await;
    assert_eq!(events.len(), 1);
    assert_ne!(events[0].metadata.name.as_ref(), Some(&name));
    assert_eq!(events[0].series.as_ref().unwrap().count, 3);
}

#[tokio::test(start_paused = true)]
async fn a_manager_writes_pending_events_before_it_ends() {
    let server = ApiServer::in_process();
    let manager = Manager::builder(server.client()).build();
    assert!(
        !manager.access().iter().any(|access| access.resource == "events"),
        "without a recorder no access to events is declared"
    );
    let recorder = manager.recorder("shop");
    assert!(manager.access().iter().any(|access| access.resource == "events"));
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run_until(stop.clone()));
    tokio::time::sleep(SECOND).await;
    recorder.event(&config("a"), EventType::Normal, "Synced", "Sync", "the object is up to date");
    stop.cancel();
    tasks.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(events(&server).await.len(), 1);
}
