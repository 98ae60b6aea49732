//! Watchers that receive every event.

use http::Method;
use http_body_util::BodyExt;
use tokio::task::JoinSet;
use watchkeeper_apiserver::{ApiServer, ResponseBody};

use super::client::Client;
use super::pods::{CREATE, PATH, Pods, Shape};
use crate::measure::{Measurement, Meter};
use crate::suite::{Load, RunFailure};

const WATCHERS: u64 = 1_000;
/// The number of objects that change in turn.
const PODS: u64 = 100;

/// A set of open watches.
#[derive(Debug)]
pub(super) struct Watches(JoinSet<Result<(), RunFailure>>);

impl Watches {
    /// Starts `count` watches of all pods from now on, each of which ends after it has received `events`.
    pub(super) async fn start(server: &ApiServer, count: u64, events: u64) -> Result<Self, RunFailure> {
        let mut client = Client::of(server);
        let list = client.value(Method::GET, &format!("{PATH}?limit=1"), "").await?;
        let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list without a version")?;
        let path = format!("/api/v1/pods?watch=true&resourceVersion={version}&allowWatchBookmarks=true");
        let mut watches = JoinSet::new();
        for _ in 0..count {
            let response = client.send(Method::GET, &path, "").await?;
            if !response.status().is_success() {
                return Err(format!("{path}: {}", response.status()).into());
            }
            watches.spawn(read(response.into_body(), events));
        }
        Ok(Self(watches))
    }

    /// Waits until each watch has received all events.
    pub(super) async fn end(mut self) -> Result<(), RunFailure> {
        while let Some(ended) = self.0.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Reads frames, one per event, until the requested number has arrived; a frame of another type is a failure.
async fn read(mut frames: ResponseBody, events: u64) -> Result<(), RunFailure> {
    let mut received = 0;
    while received < events {
        let Some(Ok(frame)) = frames.frame().await else {
            return Err(format!("a watch ended after {received} of {events} events").into());
        };
        let data = frame.data_ref().ok_or("a frame without data")?;
        let is_event = [&b"{\"type\":\"ADDED\""[..], b"{\"type\":\"MODIFIED\""]
            .iter()
            .any(|beginning| data.starts_with(beginning));
        if is_event {
            received += 1;
        } else if !data.starts_with(b"{\"type\":\"BOOKMARK\"") {
            return Err(format!("a watch received {}", String::from_utf8_lossy(data)).into());
        }
    }
    Ok(())
}

/// Changes pods while a thousand watchers are active. The figure includes the cost of the changes themselves.
pub(super) fn fan_out(load: Load) -> Result<Measurement, RunFailure> {
    let events = (load.operations / WATCHERS).max(1);
    super::runtime()?.block_on(async {
        let server = ApiServer::in_process();
        let mut client = Client::of(&server);
        for body in Pods::owned(&server).await?.creates(Shape::Cluster, PODS)? {
            client.done(Method::POST, CREATE, body).await?;
        }
        let watches = Watches::start(&server, WATCHERS, events).await?;
        let meter = Meter::start();
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            for event in 0..events {
                let patch = format!(r#"{{"metadata":{{"annotations":{{"change":"{event}"}}}}}}"#);
                let path = format!("{PATH}/{}", Pods::name(event % PODS));
                client.done(Method::PATCH, &path, patch).await?;
                // A watcher that is not scheduled during the changes would receive all of them at once.
                tokio::task::yield_now().await;
            }
            Ok::<_, RunFailure>(())
        });
        watches.end().await?;
        let measured = meter.stop(events * WATCHERS);
        for written in writer.join_all().await {
            written?;
        }
        Ok(measured)
    })
}
