//! The writer of recorded events.

use std::{pin::Pin, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use k8s_openapi::api::events::v1::Event;
use kube_core::params::{Patch, PatchParams, PostParams};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::{Client, Error, error::ApiReason};

use super::{
    EventMetrics, EventOptions, Recorder,
    aggregator::{Aggregator, AggregatorAction, SeriesId, WriteOutcome},
    metrics::EventFate,
    object::Occurrence,
};
use crate::{leader::host_name, time::Time};

/// The maximum number of concurrent writes. More than one, so that a request that hangs does not delay other events.
const MAX_WRITES: usize = 4;

type Write = Pin<Box<dyn Future<Output = (SeriesId, WriteOutcome)> + Send>>;

/// The writer of the events that recorders accept.
///
/// Events wait in the queue until the writer is [run](Self::run). A few writes are in flight at a time, at most one per series, so
/// a request that hangs does not delay other events. Every event is written, or dropped and counted in [`EventMetrics`].
#[doc(alias = "EventBroadcaster")]
#[derive(Debug)]
#[must_use = "an event writer does nothing until it is run"]
#[doc(alias = "EventSink")]
pub struct EventWriter {
    events: mpsc::Receiver<Occurrence>,
    aggregator: Aggregator,
    client: Client,
    time: Time,
    metrics: EventMetrics,
}

/// Creates a recorder of events, and the writer that sends them to the API server.
///
/// A [`Manager`](crate::manager::Manager) does this itself: use
/// [`Manager::recorder`](crate::manager::Manager::recorder). Without a manager, run the writer in a task
/// ([`EventWriter::run`]), and name the recorder after the reporting controller ([`Recorder::named`]; the default is
/// `controller`). Recording never waits. Events that exceed the queue of
/// [`EventOptions::queue`] are dropped and counted in `metrics`.
#[doc(alias = "NewBroadcaster")]
pub fn channel(
    client: &Client,
    options: EventOptions,
    time: Time,
    metrics: &EventMetrics,
) -> (Recorder, EventWriter) {
    let (sender, events) = mpsc::channel(options.queue.max(1));
    let recorder = Recorder {
        sender,
        controller: "controller".into(),
        host: host_name().into(),
        metrics: metrics.clone(),
        time: time.clone(),
    };
    let aggregator = Aggregator::new(options);
    (recorder, EventWriter { events, aggregator, client: client.clone(), time, metrics: metrics.clone() })
}

impl EventWriter {
    /// Writes events until `stop` is cancelled or every recorder has been dropped. Then writes pending events, without
    /// retries, and returns.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut writes: FuturesUnordered<Write> = FuturesUnordered::new();
        let mut is_open = true;
        while is_open {
            let wake_at = self.start_writes(&mut writes);
            tokio::select! {
                biased;
                () = stop.cancelled() => is_open = false,
                Some((id, outcome)) = writes.next(), if !writes.is_empty() => self.written(id, outcome),
                occurrence = self.events.recv() => match occurrence {
                    Some(occurrence) => self.record(&occurrence),
                    None => is_open = false,
                },
                () = self.time.sleep_until(wake_at) => {}
            }
        }
        self.events.close();
        while let Some(occurrence) = self.events.recv().await {
            self.record(&occurrence);
        }
        self.aggregator.drain(self.time.now());
        while !self.aggregator.is_idle() {
            self.start_writes(&mut writes);
            let Some((id, outcome)) = writes.next().await else { return };
            self.written(id, outcome);
        }
    }

    /// Starts the writes that are due. Returns the time of the next one.
    fn start_writes(&mut self, writes: &mut FuturesUnordered<Write>) -> Duration {
        while writes.len() < MAX_WRITES {
            match self.aggregator.next(self.time.now()) {
                AggregatorAction::WaitUntil(at) => return at,
                action => writes.push(Box::pin(write(self.client.clone(), action))),
            }
        }
        // The end of a write starts the next one.
        Duration::MAX
    }

    fn record(&mut self, occurrence: &Occurrence) {
        let fate = self.aggregator.record(self.time.now(), occurrence);
        self.count(fate);
    }

    fn written(&mut self, id: SeriesId, outcome: WriteOutcome) {
        let fate = self.aggregator.outcome(self.time.now(), id, outcome);
        self.count(fate);
    }

    fn count(&self, fate: Option<EventFate>) {
        if let Some(fate) = fate {
            self.metrics.counter(fate).inc();
        }
    }
}

async fn write(client: Client, action: AggregatorAction) -> (SeriesId, WriteOutcome) {
    let events = |namespace: &str| client.resource::<Event>().namespace(namespace);
    let (id, result) = match action {
        AggregatorAction::Create(id, event) => {
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            (id, events(&namespace).create(&PostParams::default(), &event).await)
        }
        AggregatorAction::Patch { id, namespace, name, series } => {
            let patch = Patch::Merge(serde_json::json!({ "series": series }));
            (id, events(&namespace).patch(&name, &PatchParams::default(), &patch).await)
        }
        // A wait is not a write.
        AggregatorAction::WaitUntil(_) => return (SeriesId::MAX, WriteOutcome::Done),
    };
    let outcome = match result {
        Ok(_) => WriteOutcome::Done,
        Err(error) => {
            tracing::debug!(%error, "event write failed");
            outcome_of(&error)
        }
    };
    (id, outcome)
}

fn outcome_of(error: &Error) -> WriteOutcome {
    if error.is_object_not_found() {
        return WriteOutcome::Gone;
    }
    match error.reason() {
        Some(ApiReason::AlreadyExists) => WriteOutcome::Exists,
        Some(
            ApiReason::BadRequest
            | ApiReason::Forbidden
            | ApiReason::NotFound
            | ApiReason::MethodNotAllowed
            | ApiReason::RequestTooLarge
            | ApiReason::UnsupportedMediaType
            | ApiReason::Invalid,
        ) => WriteOutcome::Rejected,
        _ if matches!(error, Error::Invalid { .. }) => WriteOutcome::Rejected,
        _ => WriteOutcome::Failed,
    }
}
