//! The budget: which objects stay decoded, and the accounts of memory.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{MemoryPolicy, factory::FactoryBuilder, reflector::ReflectorOptions};

use super::*;

/// A budget for this many objects of [`wide_objects`].
fn room_for(objects: u64) -> MemoryPolicy {
    let largest = wide_objects(99).iter().map(estimate).max().expect("99 objects");
    MemoryPolicy::Budget(objects * largest)
}

fn bytes_of(policy: MemoryPolicy) -> u64 {
    match policy {
        MemoryPolicy::Budget(bytes) => bytes,
        other => panic!("{other:?} has no fixed budget"),
    }
}

#[tokio::test(start_paused = true)]
async fn two_reads_return_the_same_object_while_it_is_resident() {
    let objects = wide_objects(30);
    let site = Site::synced(room_for(3), &objects).await;
    let key = nth_key(20);
    let (one, two) = (site.get(&key), site.get(&key));
    assert!(Arc::ptr_eq(&one, &two));
    assert!(Arc::ptr_eq(&one, &site.cached(&key).get().unwrap()));
    assert!(Arc::ptr_eq(&one, &site.cached(&key).decoded().unwrap()));
    assert_eq!((site.decodes(), site.stats().hits), (1, 2));

    let packed = Site::synced(MemoryPolicy::Packed, &objects).await;
    let (one, two) = (packed.get(&key), packed.get(&key));
    assert!(!Arc::ptr_eq(&one, &two) && one == two);
    assert!(packed.cached(&key).decoded().is_none());
    assert_eq!((packed.decodes(), packed.stats().decoded_bytes), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_scan_does_not_evict_the_working_set() {
    let site = Site::synced(room_for(10), &wide_objects(90)).await;
    let hot: Vec<String> = (40..45).map(nth_key).collect();
    let read_hot = || hot.iter().map(|key| site.get(key)).collect::<Vec<_>>();
    // Objects from the list are on probation, and these replace them.
    for _ in 0..4 {
        read_hot();
    }
    let before = site.decodes();
    let scans: [&dyn Fn() -> usize; 4] = [
        &|| site.informer.reader().list().len(),
        &|| site.informer.snapshot().iter().count(),
        &|| site.informer.snapshot().filter(|object| object.data.is_some()).len(),
        &|| site.informer.lister().list(&kube_core::Selector::default()).len(),
    ];
    for scan in scans {
        assert_eq!(scan(), 90);
        let scanned = site.decodes();
        read_hot();
        assert_eq!(site.decodes(), scanned, "the working set was evicted");
    }
    assert!(site.decodes() > before);

    // Reads of every object by its key are no scan, but each object is read once.
    for n in (1..=90).filter(|n| !(40..45).contains(n)) {
        site.get(&nth_key(n));
        if n % 8 == 0 {
            read_hot();
        }
    }
    let before = site.decodes();
    read_hot();
    assert_eq!(site.decodes(), before, "the working set was evicted");
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_kept_after_every_read_and_update() {
    for room in [1, 2, 5] {
        let (policy, objects) = (room_for(room), wide_objects(30));
        let site = Site::synced(policy, &objects).await;
        for round in 0..4 {
            for n in 1..=30 {
                assert_eq!(
                    *site.get(&nth_key((n * 7 + round) % 30 + 1)),
                    objects[((n * 7 + round) % 30) as usize]
                );
                let stats = site.stats();
                assert!(stats.decoded_bytes <= bytes_of(policy), "{stats:?}");
                assert!(stats.decoded_objects >= 1, "{stats:?}");
            }
        }
        site.send(Watch::new().modified(wide(&nth_key(3), 1001)), 1001).await;
        assert!(site.stats().decoded_bytes <= bytes_of(policy));
        assert!(site.stats().evictions > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_larger_than_the_budget_is_decoded_for_each_read_and_evicts_no_other() {
    let mut large = wide("large", 100);
    large.data.as_mut().unwrap().insert("text".to_owned(), "x".repeat(100_000));
    let site = Site::synced(room_for(2), &[wide("a", 1), wide("b", 2), large.clone()]).await;
    let (one, two) = (site.get("a"), site.get("b"));
    let before = site.decodes();
    for reads in 1..=3 {
        assert_eq!(*site.get("large"), large);
        assert!(site.cached("large").decoded().is_none());
        assert_eq!(site.decodes(), before + reads);
    }
    assert!(Arc::ptr_eq(&one, &site.get("a")) && Arc::ptr_eq(&two, &site.get("b")));
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_kept_with_objects_of_very_different_sizes() {
    let large = |n: u64| {
        let mut object = wide(&format!("large-{n}"), 100 + n);
        object.data.as_mut().unwrap().insert("text".to_owned(), "x".repeat(20_000));
        object
    };
    let mut objects = wide_objects(60);
    objects.extend((0..10).map(large));
    let room = 2 * estimate(&large(0));
    let site = Site::synced(MemoryPolicy::Budget(room), &objects).await;
    for n in 1..=60 {
        site.get(&nth_key(n));
    }
    for n in 0..10 {
        assert_eq!(*site.get(&format!("large-{n}")), large(n));
        let stats = site.stats();
        assert!(stats.decoded_bytes <= room, "{} of {room} bytes: {stats:?}", stats.decoded_bytes);
    }
    site.assert_contents(&objects);
}

#[tokio::test(start_paused = true)]
async fn the_counters_add_up_and_return_to_zero_with_the_objects() {
    for policy in [MemoryPolicy::Packed, room_for(3), MemoryPolicy::Auto] {
        let objects = wide_objects(30);
        let site = Site::synced_with(&objects, |config| {
            config.memory(policy).measured_objects(0).dictionary_samples(10)
        })
        .await;
        site.assert_contents(&objects);
        let stats = site.stats();
        assert_eq!(stats.encoded_objects, 30, "{policy:?}");
        let plain: u64 = objects.iter().map(|object| serde_json::to_vec(object).unwrap().len() as u64).sum();
        let is_compressed = policy != MemoryPolicy::Auto;
        assert_eq!(stats.dictionaries, u64::from(is_compressed), "{policy:?}");
        if is_compressed {
            assert_eq!(
                (stats.plain_bytes, stats.compressed_bytes),
                (plain, stats.encoded_bytes),
                "{policy:?}"
            );
            assert!(stats.encoded_bytes < plain);
        } else {
            assert_eq!(stats.encoded_bytes, plain);
        }
        let resident = objects.iter().zip(1..).filter(|(_, n)| site.cached(&nth_key(*n)).decoded().is_some());
        let resident: Vec<u64> = resident.map(|(object, _)| estimate(object)).collect();
        assert_eq!(stats.decoded_objects, resident.len() as u64, "{policy:?}");
        assert_eq!(stats.decoded_bytes, resident.iter().sum::<u64>(), "{policy:?}");
        let reads = 2 * 30 + 30;
        assert_eq!(stats.hits + stats.decodes, reads, "{policy:?}: each read is a hit or a decode");

        let deletions = objects.iter().zip(1001..).fold(Watch::new(), |events, (object, version)| {
            let mut last = object.clone();
            last.metadata.resource_version = Some(version.to_string());
            events.deleted(last)
        });
        site.send(deletions, 1030).await;
        assert_eq!(site.informer.reader().len(), 0);
        until(|| site.stats().encoded_objects == 0).await;
        let stats = site.stats();
        assert_eq!(
            (stats.encoded_bytes, stats.decoded_objects, stats.decoded_bytes),
            (0, 0, 0),
            "{policy:?}: {stats:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_informers_of_a_factory_share_one_budget() {
    let policy = room_for(10);
    let mut options = ReflectorOptions::default();
    options.streaming.is_enabled = false;
    options.history_check.on_reconnect = false;
    options.history_check.every = None;
    let sources = [Source::new(), Source::new()];
    let objects = wide_objects(30);
    let _servers = sources.each_ref().map(|source| {
        source.on_list(objects.iter().cloned().fold(List::at("1000"), List::item));
        source.open_watch(Watch::new())
    });
    let [first, second] = sources.map(Encoded::<ConfigMap, _>::new);
    // One type in two scopes would need a client, so the second type is the same data under another name.
    let factory = FactoryBuilder::without_client()
        .memory(policy)
        .reflector(options)
        .source::<ConfigMap>(first)
        .source::<Renamed>(second)
        .build();
    let (maps, renamed) = (factory.informer::<ConfigMap>(), factory.informer::<Renamed>());
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    let stats = || [maps.stats().memory.unwrap(), renamed.stats().memory.unwrap()];
    let used = || stats().iter().map(|stats| stats.decoded_bytes).sum::<u64>();
    assert_eq!(stats().map(|stats| stats.budget_bytes), [bytes_of(policy); 2]);
    assert!(used() <= bytes_of(policy) && used() > bytes_of(policy) / 2);

    for n in 1..=30 {
        maps.reader().get(nth_key(n)).unwrap();
        maps.reader().get(nth_key(n)).unwrap();
        assert!(used() <= bytes_of(policy));
    }
    let [_, before] = stats();
    for n in 1..=30 {
        renamed.reader().get(nth_key(n)).unwrap();
        renamed.reader().get(nth_key(n)).unwrap();
        assert!(used() <= bytes_of(policy));
    }
    let [one, two] = stats();
    assert!(two.decoded_bytes > before.decoded_bytes && one.evictions > 0, "{one:?} {two:?}");
    drop(renamed);
    factory.shutdown().await;
}

/// A `ConfigMap` under another type, read as its metadata and its data.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Renamed {
    metadata: kube_core::ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl kube_core::Resource for Renamed {
    type DynamicType = ();
    type Scope = kube_core::NamespaceResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "Renamed".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "test.example.com".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "renamed".into()
    }

    fn meta(&self) -> &kube_core::ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut kube_core::ObjectMeta {
        &mut self.metadata
    }
}
