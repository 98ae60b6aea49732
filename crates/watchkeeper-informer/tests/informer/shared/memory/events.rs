//! Objects that were replaced or deleted: in events, and in snapshots.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use watchkeeper_informer::{MemoryPolicy, event::Event};

use super::*;

/// Adds a handler that keeps all events.
fn collect(informer: &Informer) -> Arc<Mutex<Vec<Event<ConfigMap>>>> {
    let events: Arc<Mutex<Vec<Event<ConfigMap>>>> = Arc::default();
    let received = Arc::clone(&events);
    let handler = move |event: &Event<ConfigMap>| received.lock().push(event.clone());
    informer.add_handler(handler).expect("the informer is running");
    events
}

#[tokio::test(start_paused = true)]
async fn the_old_object_of_an_update_is_decoded_on_request_even_after_a_deletion() {
    for policy in policies() {
        let [first, second, last] = [1, 1001, 1002].map(|version| wide("a", version));
        let site = Site::synced(policy, &[first.clone(), wide("b", 2), wide("c", 3)]).await;
        let events = collect(&site.informer);
        site.send(Watch::new().modified(second.clone()), 1001).await;
        site.send(Watch::new().deleted(last.clone()), 1002).await;
        until(|| events.lock().len() == 5).await;
        assert_eq!(site.decodes(), 0, "{policy:?}");

        let events = std::mem::take(&mut *events.lock());
        let [.., Event::Updated { old, new }, Event::Deleted(deleted)] = &events[..] else {
            panic!("{policy:?}: {events:?}");
        };
        assert_eq!(*old.get().unwrap(), first, "{policy:?}");
        if policy == MemoryPolicy::Packed {
            assert_eq!(site.decodes(), 1);
        }
        assert_eq!(*new.get().unwrap(), second, "{policy:?}");
        assert!(deleted.last_seen.ptr_eq(new), "{policy:?}");
        assert_eq!(*deleted.object.get().unwrap(), last, "{policy:?}");
        assert_eq!(label(&deleted.object), "a@1002");
        assert!(!site.informer.reader().contains("a"), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_stays_readable_and_unchanged_after_updates_deletions_and_a_relist() {
    for policy in policies() {
        let objects = wide_objects(20);
        let mut site = Site::synced_with(&objects, |config| {
            config.memory(policy).measured_objects(0).dictionary_samples(25)
        })
        .await;
        let snapshot = site.informer.snapshot();
        let events = (1..=10).fold(Watch::new(), |events, n| events.modified(wide(&nth_key(n), 1000 + n)));
        site.send(events.deleted(wide(&nth_key(11), 1011)), 1011).await;
        site.relist(&[wide("another", 1500)], 2000).await;
        drop(site.get("another"));
        assert_eq!(site.informer.reader().len(), 1);

        assert_eq!(snapshot.len(), 20);
        for (n, object) in (1..).zip(&objects) {
            let read = snapshot.get(nth_key(n)).expect("the snapshot has all objects");
            assert_eq!(**read, *object, "{policy:?}");
            let metadata = snapshot.metadata(nth_key(n)).unwrap();
            assert_eq!(metadata.resource_version(), object.metadata.resource_version.as_deref());
        }
        assert_eq!(snapshot.iter().count(), 20);
        let stats = site.stats();
        assert!(stats.encoded_objects == 21 || policy == MemoryPolicy::Decoded, "{policy:?}: {stats:?}");
        drop(snapshot);
        let stats = site.stats();
        assert!(stats.encoded_objects <= 1, "{policy:?}: {stats:?}");
    }
}
