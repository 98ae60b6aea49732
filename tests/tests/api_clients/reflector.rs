//! kube's reflector and kube's client.

use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Config};
use kube_core::params::{DeleteParams, Patch, PatchParams, PostParams};
use kube_runtime::{
    WatchStreamExt,
    reflector::{self, Store},
    watcher::{self, Event},
};
use serde_json::json;

use crate::script::{self, State, Subject, map, objects_of};

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<ConfigMap>>>>>;

struct Reflected {
    maps: Api<ConfigMap>,
    cache: Store<ConfigMap>,
    events: Events,
    lists: u64,
}

impl Reflected {
    fn new(client: Client, config: watcher::Config) -> Self {
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let (cache, writer) = reflector::store();
        let events = watcher::watcher(maps.clone(), config).default_backoff().reflect(writer);
        Self { maps, cache, events: Box::pin(events), lists: 0 }
    }
}

impl Subject for Reflected {
    async fn becomes(&mut self, state: &State) {
        while objects_of(self.cache.state()) != state.objects {
            // The stream reports errors and retries.
            if let Ok(Event::Init) = self.events.next().await.unwrap() {
                self.lists += 1;
            }
        }
    }

    async fn create(&mut self, name: &str) {
        self.maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }

    async fn update(&mut self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({"data": {"k": value}}));
        self.maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn delete(&mut self, name: &str) {
        self.maps.delete(name, &DeleteParams::default()).await.unwrap();
    }

    fn relists(&self) -> u64 {
        self.lists - 1
    }
}

async fn in_process(config: watcher::Config) {
    let cluster = script::cluster().await;
    let wire = script::in_process(&cluster);
    script::run(&cluster, &wire, Reflected::new(wire.client(), config)).await;
}

async fn over_a_socket(config: watcher::Config) {
    let cluster = script::cluster().await;
    let wire = script::listening(&cluster).await;
    let client = Client::try_from(Config::new(wire.url().parse().unwrap())).unwrap();
    script::run(&cluster, &wire, Reflected::new(client, config)).await;
}

fn pages() -> watcher::Config {
    watcher::Config::default().page_size(7)
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_lists_pages_follows_the_server_in_process() {
    in_process(pages()).await;
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_lists_as_a_stream_follows_the_server_in_process() {
    in_process(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test]
async fn a_reflector_that_lists_pages_follows_the_server_over_a_socket() {
    over_a_socket(pages()).await;
}

#[tokio::test]
async fn a_reflector_that_lists_as_a_stream_follows_the_server_over_a_socket() {
    over_a_socket(watcher::Config::default().streaming_lists()).await;
}
