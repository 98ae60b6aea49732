//! Watchkeeper's informer and clients.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::params::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use watchkeeper_client::{Client, config::ClientConfig, list_watch::ListWatch, rest::ResourceClient};
use watchkeeper_informer::{ResourceVersion, SharedIndexInformer, controller::Config};

use crate::script::{self, State, Subject, map, objects_of};

struct Informed {
    maps: ResourceClient<ConfigMap>,
    cache: SharedIndexInformer<ConfigMap>,
}

impl Informed {
    /// Creates an informer whose first list is a streaming list, or pages of seven.
    async fn new(client: Client, is_streaming: bool) -> Self {
        let maps = client.resource().namespace("default");
        let config = Config::new("configmaps", ListWatch::new(&maps)).reflector_with(|options| {
            options.streaming.is_enabled = is_streaming;
            options.page_size = Some(7);
        });
        let cache = SharedIndexInformer::new(config);
        cache.start();
        cache.wait_for_sync(Some(Duration::from_secs(30))).await.unwrap();
        Self { maps, cache }
    }
}

impl Subject for Informed {
    async fn becomes(&mut self, state: &State) {
        self.cache.wait_until(&ResourceVersion::new(&state.version).unwrap()).await.unwrap();
        let snapshot = self.cache.snapshot();
        assert_eq!(objects_of(snapshot.list()), state.objects);
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
        self.cache.monitors().iter().flat_map(|(_, monitor)| monitor.counters().relists.into_values()).sum()
    }
}

async fn in_process(is_streaming: bool) {
    let cluster = script::cluster().await;
    let wire = script::in_process(&cluster);
    let client = Client::from(wire.client());
    script::run(&cluster, &wire, Informed::new(client, is_streaming).await).await;
}

async fn over_a_socket(is_streaming: bool) {
    let cluster = script::cluster().await;
    let wire = script::listening(&cluster).await;
    let client = ClientConfig::new(&wire.url()).unwrap().into_client().unwrap();
    script::run(&cluster, &wire, Informed::new(client, is_streaming).await).await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_lists_pages_follows_the_server_in_process() {
    in_process(false).await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_lists_as_a_stream_follows_the_server_in_process() {
    in_process(true).await;
}

#[tokio::test]
async fn an_informer_that_lists_pages_follows_the_server_over_a_socket() {
    over_a_socket(false).await;
}

#[tokio::test]
async fn an_informer_that_lists_as_a_stream_follows_the_server_over_a_socket() {
    over_a_socket(true).await;
}
