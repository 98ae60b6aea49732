//! The half that writes.

use std::{pin::Pin, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use k8s_openapi::api::events::v1::Event;
use kube_core::params::{Patch, PatchParams, PostParams};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::{Client, Error, error::ApiReason};

use super::{
    EventMetrics, EventOptions, Recorder,
    aggregator::{Action, Aggregator, Outcome, SeriesId},
    metrics::Fate,
    object::Occurrence,
};
use crate::{leader::host_name, time::Time};

/// Writes on their way at a time: so that one that hangs does not hold up the others.
const WRITES_AT_A_TIME: usize = 4;

type Write = Pin<Box<dyn Future<Output = (SeriesId, Outcome)> + Send>>;

/// Writes what recorders take, while it is [run](Self::run).
#[derive(Debug)]
#[must_use = "no event is written until it is run"]
pub struct EventWriter {
    events: mpsc::Receiver<Occurrence>,
    aggregator: Aggregator,
    client: Client,
    time: Time,
    metrics: EventMetrics,
}

/// Both halves. The recorder's controller has no name until it is [named](Recorder::named).
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
    /// Writes events until `stop` is cancelled, or every recorder is gone; then what waits, once, and returns.
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
                    Some(occurrence) => self.occur(&occurrence),
                    None => is_open = false,
                },
                () = self.time.sleep_until(wake_at) => {}
            }
        }
        self.events.close();
        while let Some(occurrence) = self.events.recv().await {
            self.occur(&occurrence);
        }
        self.aggregator.drain(self.time.now());
        while !self.aggregator.is_idle() {
            self.start_writes(&mut writes);
            let Some((id, outcome)) = writes.next().await else { return };
            self.written(id, outcome);
        }
    }

    /// Starts what is due, and answers when to look again.
    fn start_writes(&mut self, writes: &mut FuturesUnordered<Write>) -> Duration {
        while writes.len() < WRITES_AT_A_TIME {
            match self.aggregator.next(self.time.now()) {
                Action::WaitUntil(at) => return at,
                action => writes.push(Box::pin(write(self.client.clone(), action))),
            }
        }
        // Room is made by a write that ends.
        Duration::MAX
    }

    fn occur(&mut self, occurrence: &Occurrence) {
        let fate = self.aggregator.occur(self.time.now(), occurrence);
        self.count(fate);
    }

    fn written(&mut self, id: SeriesId, outcome: Outcome) {
        let fate = self.aggregator.outcome(self.time.now(), id, outcome);
        self.count(fate);
    }

    fn count(&self, fate: Option<Fate>) {
        if let Some(fate) = fate {
            self.metrics.of(fate).inc();
        }
    }
}

async fn write(client: Client, action: Action) -> (SeriesId, Outcome) {
    let events = |namespace: &str| client.resource::<Event>().namespace(namespace);
    let (id, result) = match action {
        Action::Create(id, event) => {
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            (id, events(&namespace).create(&PostParams::default(), &event).await)
        }
        Action::Patch { id, namespace, name, series } => {
            let patch = Patch::Merge(serde_json::json!({ "series": series }));
            (id, events(&namespace).patch(&name, &PatchParams::default(), &patch).await)
        }
        // Not written, so nothing came of it.
        Action::WaitUntil(_) => return (SeriesId::MAX, Outcome::Done),
    };
    let outcome = match result {
        Ok(_) => Outcome::Done,
        Err(error) => {
            tracing::debug!(%error, "an event could not be written");
            outcome_of(&error)
        }
    };
    (id, outcome)
}

fn outcome_of(error: &Error) -> Outcome {
    if error.is_object_not_found() {
        return Outcome::Gone;
    }
    match error.reason() {
        Some(ApiReason::AlreadyExists) => Outcome::Exists,
        Some(
            ApiReason::BadRequest
            | ApiReason::Forbidden
            | ApiReason::NotFound
            | ApiReason::MethodNotAllowed
            | ApiReason::RequestTooLarge
            | ApiReason::UnsupportedMediaType
            | ApiReason::Invalid,
        ) => Outcome::Refused,
        _ if matches!(error, Error::Invalid { .. }) => Outcome::Refused,
        _ => Outcome::Failed,
    }
}
