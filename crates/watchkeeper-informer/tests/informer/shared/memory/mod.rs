//! The cache under each memory policy: contents, decodes and the accounts of memory.

mod budget;
mod compression;
mod decodes;
mod events;
mod transforms;
mod undecodable;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use watchkeeper_client::list_watch::WatchHandle;
use watchkeeper_informer::{Cached, MemoryPolicy, MemoryStats, SharedIndexInformer, controller::Config};

use super::support::*;
use crate::encoded::{CountingJson, Encoded};

/// Returns one policy of each kind. The budget is that of two [`wide`] objects.
fn policies() -> [MemoryPolicy; 4] {
    [
        MemoryPolicy::Packed,
        MemoryPolicy::Budget(2 * estimate(&wide("x", 1))),
        MemoryPolicy::Auto,
        MemoryPolicy::Decoded,
    ]
}

/// Returns the policies under which not all objects fit into the budget.
fn tight_policies() -> [MemoryPolicy; 2] {
    let [packed, budget, ..] = policies();
    [packed, budget]
}

/// An object of about 2 KB with labels, an owner and data that depend on its key and version.
fn wide(key: &str, version: u64) -> ConfigMap {
    let mut object = map(key, version);
    let parity = if version.is_multiple_of(2) { "even" } else { "odd" };
    let labels = [("app", "web"), ("parity", parity)];
    object.metadata.labels = Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: format!("owner of {key}"),
        uid: format!("uid of the owner of {key}"),
        controller: Some(true),
        ..OwnerReference::default()
    }]);
    let data = (0..40_u64).map(|n| {
        let value = (version + 7).wrapping_mul(n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (format!("setting {n:03}"), format!("{key} {value:016x}"))
    });
    object.data = Some(data.collect::<BTreeMap<_, _>>());
    object
}

/// Returns `count` wide objects with the versions from 1 on.
fn wide_objects(count: u64) -> Vec<ConfigMap> {
    (1..=count).map(|n| wide(&format!("ns-{}/map-{n:03}", n % 3), n)).collect()
}

/// The key of an object of [`wide_objects`].
fn nth_key(n: u64) -> String {
    format!("ns-{}/map-{n:03}", n % 3)
}

/// The bytes that an object takes decoded, as the cache estimates them.
fn estimate(object: &ConfigMap) -> u64 {
    let encoded = serde_json::to_vec(object).expect("a config map is JSON").len();
    (size_of::<ConfigMap>() + 6 * encoded) as u64
}

/// An informer of encoded objects.
struct Site {
    informer: Informer,
    source: Source,
    server: WatchHandle<ConfigMap>,
    decoder: Arc<CountingJson>,
}

impl Site {
    /// Starts an informer on a list at version 1000, and waits until it has synced.
    async fn synced(policy: MemoryPolicy, objects: &[ConfigMap]) -> Self {
        Self::synced_with(objects, |config| config.memory(policy).measured_objects(0)).await
    }

    async fn synced_with(
        objects: &[ConfigMap],
        configure: impl FnOnce(Config<ConfigMap>) -> Config<ConfigMap>,
    ) -> Self {
        let site = Self::created(objects, configure);
        site.start().await;
        site
    }

    /// Creates an informer that is not started.
    fn created(
        objects: &[ConfigMap],
        configure: impl FnOnce(Config<ConfigMap>) -> Config<ConfigMap>,
    ) -> Self {
        let source = Source::new();
        source.on_list(objects.iter().cloned().fold(List::at("1000"), List::item));
        let server = source.open_watch(Watch::new());
        let encoded = Encoded::<ConfigMap, _>::new(source.clone());
        let decoder = encoded.decoder();
        let informer = SharedIndexInformer::new(configure(plain_of(encoded)));
        Self { informer, source, server, decoder }
    }

    async fn start(&self) {
        self.informer.start();
        within(self.informer.wait_for_sync(None)).await.expect("a list that is there is synced");
    }

    /// Sends events, and waits until the cache has reached `version`.
    async fn send(&self, events: Watch, version: u64) {
        self.server.send(events);
        reached(&self.informer, version).await;
    }

    /// Cuts the watch, and waits for a list of these objects at `version`.
    async fn relist(&mut self, objects: &[ConfigMap], version: u64) {
        let list = List::at(version.to_string());
        self.source.on_list(objects.iter().cloned().fold(list, List::item));
        let again = self.source.open_watch(Watch::new());
        self.server.send(Watch::new().error(status(410, "Expired")));
        self.server = again;
        reached(&self.informer, version).await;
    }

    fn stats(&self) -> MemoryStats {
        self.informer.stats().memory.unwrap_or_default()
    }

    /// The number of reads that decoded an object.
    fn decodes(&self) -> u64 {
        self.stats().decodes
    }

    fn cached(&self, key: &str) -> Cached<ConfigMap> {
        self.informer.reader().cached(key).expect("the object is in the cache")
    }

    fn get(&self, key: &str) -> Arc<ConfigMap> {
        self.informer.reader().get(key).expect("the object is in the cache and decodes")
    }

    /// Asserts that the cache contains exactly these objects, in every way to read it.
    fn assert_contents(&self, expected: &[ConfigMap]) {
        let mut expected: Vec<&ConfigMap> = expected.iter().collect();
        let by_key = |one: &&ConfigMap, other: &&ConfigMap| {
            let key = |object: &ConfigMap| (object.metadata.namespace.clone(), object.metadata.name.clone());
            key(one).cmp(&key(other))
        };
        expected.sort_by(by_key);
        let reader = self.informer.reader();
        let list = reader.list();
        let mut listed: Vec<&ConfigMap> = list.iter().map(|object| &**object).collect();
        listed.sort_by(by_key);
        assert_eq!(listed, expected);
        let keys = reader.keys();
        let read: Vec<_> = keys.iter().map(|key| reader.get(key).expect("a key of the cache")).collect();
        assert!(read.iter().map(|object| &**object).eq(expected.iter().copied()));
        let snapshot = reader.snapshot();
        assert_eq!(snapshot.iter().count(), expected.len());
    }
}
