//! The number of decodes: none for metadata, one for each received object with an index, one for each read of a packed
//! object.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{Expression, Selector};
use tokio::time::sleep;
use watchkeeper_informer::{
    LabelFilter, MemoryPolicy, NAMESPACE_INDEX,
    event::Event,
    handler::{FilteringHandler, HandlerFuncs},
};

use super::*;

fn is_even() -> Selector {
    Selector::from(Expression::Equal("parity".to_owned(), "even".to_owned()))
}

#[tokio::test(start_paused = true)]
async fn handlers_that_read_keys_and_metadata_decode_nothing() {
    for policy in tight_policies() {
        let objects = wide_objects(30);
        let mut site = Site::created(&objects, |config| {
            config.memory(policy).measured_objects(0).resync_period(Duration::from_secs(2))
        });
        let (delivered, registration) = listen(&site.informer, options().unchanged());
        let filtered = Deliveries::new();
        let received = filtered.clone();
        let is_owned = FilteringHandler::by_metadata(
            |object| {
                object.label("parity") == Some("even")
                    && object.owner_references().any(|owner| owner.is_controller)
            },
            move |event: &Event<ConfigMap>| received.take_unchecked(event),
        );
        let _filtering = site.informer.add_handler(is_owned).unwrap();
        site.start().await;
        within(registration.synced()).await.unwrap();
        let at_ingest = site.decoder.decoded();

        site.send(Watch::new().modified(wide(&nth_key(7), 1001)).deleted(wide(&nth_key(8), 1002)), 1002)
            .await;
        let mut left: Vec<_> = objects.iter().filter(|object| **object != objects[7]).cloned().collect();
        left[6] = wide(&nth_key(7), 1001);
        site.relist(&left, 1010).await;
        sleep(Duration::from_secs(5)).await;
        let all = delivered.first(30 + 2 + 2 * 29).await;
        assert!(all.iter().any(|event| event.starts_with("sync")), "a resync was delivered");
        assert!(filtered.all().iter().any(|event| event.starts_with("delete")));
        assert_eq!(site.decodes(), 0, "{policy:?}");
        assert!(site.stats().encoded_objects >= 29, "{policy:?}");
        // What is decoded on receipt is kept.
        let received = site.decoder.decoded();
        if policy == MemoryPolicy::Packed {
            assert_eq!((at_ingest, received), (0, 0));
        }
        assert!(at_ingest <= 2 && received <= 4, "{policy:?}: {at_ingest}, then {received}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_of_metadata_decode_nothing() {
    for policy in tight_policies() {
        let site = Site::synced(policy, &wide_objects(30)).await;
        let before = site.decoder.decoded();
        let filter = LabelFilter::from(is_even());
        let snapshot = site.informer.snapshot();
        assert_eq!(snapshot.filter_cached(|object| filter.matches(object)).len(), 15);
        let key = nth_key(4);
        let owner = snapshot.metadata(&key).unwrap().owner_references().next().unwrap();
        assert_eq!((owner.kind, owner.is_controller), ("ReplicaSet", true));
        assert_eq!(snapshot.index_keys(NAMESPACE_INDEX, "ns-1").unwrap().len(), 10);
        assert_eq!(snapshot.in_namespace_cached("ns-1").len(), 10);
        let index = site.informer.reader().index(NAMESPACE_INDEX).unwrap();
        assert_eq!((index.count("ns-2"), index.get_cached("ns-2").len()), (10, 10));
        assert_eq!((snapshot.keys().len(), snapshot.contains(&key)), (30, true));
        assert!(snapshot.iter_cached().all(|object| object.resource_version().is_some()));
        assert_eq!(site.decodes(), 0, "{policy:?}");
        assert_eq!(site.decoder.decoded(), before, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_selector_decodes_only_the_objects_that_match() {
    let objects = wide_objects(30);
    let site = Site::synced(MemoryPolicy::Packed, &objects).await;
    let lister = site.informer.lister();
    assert_eq!(lister.list(&is_even()).len(), 15);
    assert_eq!((site.decodes(), site.decoder.decoded()), (15, 15));
    assert_eq!(lister.namespace("ns-1").list(&is_even()).len(), 5);
    assert_eq!((site.decodes(), site.decoder.decoded()), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn indexes_on_the_object_decode_each_received_object_once() {
    for policy in policies() {
        let objects = wide_objects(30);
        let mut site = Site::created(&objects, |config| config.memory(policy).measured_objects(0));
        let by_last = |object: &ConfigMap| object.data.as_ref()?.values().last().cloned();
        let one = site.informer.add_index("last value", by_last).unwrap();
        let two = site
            .informer
            .add_index("size", |object: &ConfigMap| object.data.as_ref().map(|data| data.len().to_string()));
        let two = two.unwrap();
        site.start().await;
        assert_eq!(site.decoder.decoded(), 30, "{policy:?}");
        assert_eq!((one.values().len(), two.count("40")), (30, 30), "{policy:?}");
        if let MemoryPolicy::Packed = policy {
            assert_eq!(site.decodes(), 30);
        }

        let changed = wide(&nth_key(7), 1001);
        site.send(Watch::new().modified(changed.clone()), 1001).await;
        assert_eq!(site.decoder.decoded(), 31, "{policy:?}: of two indexes the object is decoded once");
        let mut now = objects.clone();
        now[6] = changed.clone();
        site.relist(&now, 1010).await;
        assert_eq!(site.decoder.decoded(), 31, "{policy:?}: a relist of known versions decodes nothing");

        let before = site.decoder.decoded();
        assert_eq!(one.keys(&by_last(&changed).unwrap()), [nth_key(7).parse().unwrap()]);
        assert_eq!(one.count(&by_last(&objects[6]).unwrap()), 0);
        assert_eq!(site.decoder.decoded(), before, "{policy:?}: keys of an index are not decoded");
        for object in &now {
            let found = one.get(&by_last(object).unwrap());
            assert_eq!(found.iter().map(|object| &**object).collect::<Vec<_>>(), [object], "{policy:?}");
        }
        assert_eq!(two.like(&now[0]).len(), 30, "{policy:?}");
        site.assert_contents(&now);
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_that_is_added_later_decodes_each_cached_object_once() {
    let objects = wide_objects(30);
    let site = Site::synced(MemoryPolicy::Packed, &objects).await;
    assert_eq!(site.decoder.decoded(), 0);
    let by_name = site.informer.add_index("name", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    assert_eq!((site.decoder.decoded(), by_name.values().len()), (30, 30));
}

#[tokio::test(start_paused = true)]
async fn a_small_cache_decodes_each_received_object_once_and_reads_decode_nothing() {
    for policy in [MemoryPolicy::Auto, MemoryPolicy::Decoded, MemoryPolicy::Budget(u64::MAX)] {
        let objects = wide_objects(30);
        let mut site = Site::synced(policy, &objects).await;
        let updated = Arc::new(parking_lot::Mutex::new(0));
        let count = Arc::clone(&updated);
        let handler = HandlerFuncs::<ConfigMap>::new()
            .on_update(move |old, new| *count.lock() += u32::from(old.get().unwrap() != new.get().unwrap()));
        let registration = site.informer.add_handler(handler).unwrap();
        within(registration.synced()).await.unwrap();
        site.send(Watch::new().modified(wide(&nth_key(7), 1001)), 1001).await;
        until(|| *updated.lock() == 1).await;
        let mut now = objects.clone();
        now[6] = wide(&nth_key(7), 1001);
        site.relist(&now, 1010).await;
        site.assert_contents(&now);
        assert_eq!(site.informer.lister().list(&is_even()).len(), 15);
        assert_eq!(site.decodes(), 0, "{policy:?}");
        assert_eq!(site.decoder.decoded(), 31, "{policy:?}");
        assert_eq!(site.stats().evictions, 0, "{policy:?}");
        assert_eq!(site.stats().dictionaries, 0, "{policy:?}");
    }
}
