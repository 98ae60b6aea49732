//! Creates and updates by several clients, with watchers that receive each event.

use std::sync::Arc;

use http::Method;
use serde_json::Value;
use tokio::task::JoinSet;
use watchkeeper_apiserver::ApiServer;

use super::client::Client;
use super::judged_by_wall;
use super::pods::{CREATE, PATH, Pods, Shape};
use super::watchers::Watches;
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

const CLIENTS: u64 = 4;
const WATCHERS: u64 = 10;
const UPDATED: u64 = 1_000;

/// Creates pods from several clients.
pub(super) fn create(load: Load, shape: Shape) -> Result<Measurement, RunFailure> {
    super::runtime()?.block_on(async {
        let server = ApiServer::in_process();
        let bodies: Arc<[String]> = Pods::owned(&server).await?.creates(shape, load.operations)?.into();
        let watches = Watches::start(&server, WATCHERS, load.operations).await?;
        let meter = Meter::start();
        let mut clients = JoinSet::new();
        for first in 0..CLIENTS {
            let (mut client, bodies) = (Client::of(&server), Arc::clone(&bodies));
            clients.spawn(async move {
                for body in every(CLIENTS, first, &bodies) {
                    client.done(Method::POST, CREATE, body.clone()).await?;
                }
                Ok::<_, RunFailure>(())
            });
        }
        finish(clients).await?;
        watches.end().await?;
        Ok(judged_by_wall(meter.stop(load.operations)))
    })
}

/// Updates pods: each client has its own, and sends back the last response with one annotation changed.
pub(super) fn update(load: Load, shape: Shape) -> Result<Measurement, RunFailure> {
    super::runtime()?.block_on(async {
        let server = ApiServer::in_process();
        let mut client = Client::of(&server);
        let mut pods = Vec::new();
        for body in Pods::owned(&server).await?.creates(shape, UPDATED.min(load.operations))? {
            pods.push(Written::read(&client.done(Method::POST, CREATE, body).await?)?);
        }
        let watches = Watches::start(&server, WATCHERS, load.operations).await?;
        let mut shares: Vec<Vec<Written>> = (0..CLIENTS).map(|_| Vec::new()).collect();
        let count = shares.len();
        for (place, pod) in pods.into_iter().enumerate() {
            shares[place % count].push(pod);
        }
        let meter = Meter::start();
        let mut clients = JoinSet::new();
        for (mut pods, client_number) in shares.into_iter().zip(0..) {
            let mut client = Client::of(&server);
            let updates = load.operations / CLIENTS + u64::from(client_number < load.operations % CLIENTS);
            clients.spawn(async move {
                let count = pods.len().max(1);
                for update in 0..updates {
                    let Some(pod) = pods.get_mut(usize::try_from(update)? % count) else { break };
                    let answer = client.done(Method::PUT, &pod.path, pod.with_annotation(update)?).await?;
                    std::str::from_utf8(&answer)?.clone_into(&mut pod.text);
                }
                Ok::<_, RunFailure>(())
            });
        }
        finish(clients).await?;
        watches.end().await?;
        Ok(judged_by_wall(meter.stop(load.operations)))
    })
}

/// A pod as a client knows it: the last response, including managers. Its text is split at the changing value
/// instead of being parsed, so that the client's own cost is negligible.
#[derive(Debug)]
struct Written {
    path: String,
    /// The last response.
    text: String,
}

impl Written {
    fn read(answer: &[u8]) -> Result<Self, RunFailure> {
        let pod: Value = serde_json::from_slice(answer)?;
        let name = pod["metadata"]["name"].as_str().ok_or("a pod without a name")?;
        let path = format!("{PATH}/{name}?fieldManager=watchkeeper-bench");
        Ok(Self { path, text: std::str::from_utf8(answer)?.to_owned() })
    }

    /// Returns the pod with its annotation changed.
    fn with_annotation(&self, update: u64) -> Result<String, RunFailure> {
        let (before, rest) = self.text.split_once(ANNOTATION).ok_or("an answer without the annotation")?;
        let (_, after) = rest.split_once('"').ok_or("an answer that is cut off")?;
        Ok(format!("{before}{ANNOTATION}{update}\"{after}"))
    }
}

/// The text before the value that changes.
const ANNOTATION: &str = r#""checksum/config":""#;

fn every<T>(step: u64, first: u64, items: &[T]) -> impl Iterator<Item = &T> {
    let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
    items.iter().skip(place(first)).step_by(place(step))
}

async fn finish(mut clients: JoinSet<Result<(), RunFailure>>) -> Result<(), RunFailure> {
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}
