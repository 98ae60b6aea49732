//! An API server of config maps for one fault at a time, over a real socket.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::Client;
use watchkeeper_informer::{
    CachedRef, ResourceVersion, SharedIndexInformer, SharedInformerFactory,
    factory::{FactoryBuilder, Scope},
};
use watchkeeper_test_support::{Gate, Reply, ScriptedServer};

/// A request to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestRequest {
    /// A list, and which in order, counted from 1: as of any version from this one on, and the token of a
    /// page.
    List { number: usize, from: Option<String>, page: Option<String>, limit: Option<String> },
    /// A watch, and which in order, counted from 1.
    Watch { number: usize, from: Option<String> },
}

/// A server that responds with the result of `respond`.
pub(crate) async fn server(respond: impl Fn(TestRequest) -> Reply + Send + Sync + 'static) -> ScriptedServer {
    let (lists, watches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    ScriptedServer::handler(move |request| {
        let query = request.target().split_once('?').map_or("", |(_, query)| query).to_owned();
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let next = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::SeqCst) + 1;
        let from = value("resourceVersion");
        respond(if value("watch").is_some() {
            TestRequest::Watch { number: next(&watches), from }
        } else {
            TestRequest::List { number: next(&lists), from, page: value("continue"), limit: value("limit") }
        })
    })
    .await
}

/// An object on the wire.
pub(crate) fn object(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"uid-of-{name}","resourceVersion":"{version}"}},"data":{{"at":"{version}"}}}}"#
    )
}

/// A page of a list.
pub(crate) fn page(version: u64, token: &str, objects: &[String]) -> Reply {
    let items = objects.join(",");
    let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    let body =
        format!(r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{metadata},"items":[{items}]}}"#);
    Reply::json(200, body)
}

/// A whole list.
pub(crate) fn list(version: u64, objects: &[String]) -> Reply {
    page(version, "", objects)
}

/// A watch that brings these and stays open.
pub(crate) fn watch(events: &[(&str, String)]) -> Reply {
    let lines: Vec<String> = events
        .iter()
        .map(|(kind, object)| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
        .collect();
    let open = Reply::chunked(200, &[("content-type", "application/json")]);
    let open = if lines.is_empty() { open } else { open.chunk(lines.concat()) };
    open.wait_for(&Gate::new())
}

/// A factory for the server with short delays. Lists are paginated, and a reconnect sends no other request,
/// so that requests can be counted.
pub(crate) fn factory(server: &ScriptedServer) -> FactoryBuilder {
    let mut options = watchkeeper_informer::reflector::ReflectorOptions::default();
    options.streaming.is_enabled = false;
    options.history_check.on_reconnect = false;
    options.backoff.initial = Duration::from_millis(5);
    SharedInformerFactory::builder(Client::from(server.client()))
        .reflector(options)
        .scope(Scope::namespace("shop"))
}

/// An informer of the server's config maps, started.
pub(crate) fn informer(server: &ScriptedServer) -> SharedIndexInformer<ConfigMap> {
    started(factory(server))
}

pub(crate) fn started(factory: FactoryBuilder) -> SharedIndexInformer<ConfigMap> {
    let factory = factory.build();
    let informer = factory.informer();
    factory.start();
    informer
}

/// Waits until the cache is complete up to a version, and returns its contents.
pub(crate) async fn held_at(informer: &SharedIndexInformer<ConfigMap>, version: u64) -> Vec<String> {
    let version = ResourceVersion::new(&version.to_string()).expect("a number is a version");
    let reached = tokio::time::timeout(Duration::from_mins(1), informer.wait_until(&version)).await;
    reached.expect("in time").expect("the informer runs");
    let cache = informer.snapshot();
    let label = |object: CachedRef<'_, ConfigMap>| {
        let data = object.data.as_ref().and_then(|data| data.get("at").cloned());
        format!("{}@{}", object.metadata.name.as_deref().unwrap_or_default(), data.unwrap_or_default())
    };
    cache.keys().iter().filter_map(|key| cache.get(key)).map(label).collect()
}
