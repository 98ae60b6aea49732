//! Bugs that informers have had, each as a test that this one has not.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{
    ObjectKey, SharedIndexInformer, Store,
    delta_fifo::{DeltaFifo, FifoOptions, NothingKnown},
    internals::process_deltas,
};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn case_25_there_is_no_way_to_write_to_the_cache_behind_the_servers_back() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    // A write was answered with version 12. The way to see it is to wait for it, not to put it there.
    let version = watchkeeper_informer::ResourceVersion::new("12").unwrap();
    let (seen, ()) = tokio::join!(within(informer.wait_for("a", &version)), async {
        server.send(Watch::new().modified(map("a", 11)).modified(map("a", 12)).modified(map("a", 13)));
    });
    assert!(seen.unwrap().is_some_and(|object| ["a@12", "a@13"].contains(&&*label(&object))));
}

#[tokio::test(start_paused = true)]
async fn case_39_an_index_added_while_the_first_list_is_on_its_way_waits_for_nothing_and_misses_nothing() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)).wait(Duration::from_mins(5)).item(map("b", 4)));
    let _server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::new(plain(&source));
    let before = informer.add_index("before", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let during = informer.add_index("during", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    assert!(!informer.has_synced(), "and it has not waited for the list");
    within(informer.wait_for_sync(None)).await.unwrap();
    let after = informer.add_index("after", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    for index in [before, during, after] {
        assert_eq!((index.count("a"), index.count("b")), (1, 1), "{}", index.name());
    }
    // And one that is stopped while its list is on the way ends at once.
    let slow = Source::new();
    slow.on_list(List::at("10").stall());
    let informer = SharedIndexInformer::new(plain(&slow));
    informer.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    within(informer.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn case_41_a_queue_of_one_with_a_burst_before_it_blocks_no_wait_forever() {
    let fifo = FifoOptions::new().max_queued_deltas(1);
    let (informer, _source, server) =
        synced_with([map("a", 1)], 1, |config| config.fifo(fifo).batch_keys(1)).await;
    let (delivered, _) = listen(&informer, options().every_event());
    let script = (2..500).fold(Watch::new(), |script, version| {
        script.modified(map(if version % 2 == 0 { "a" } else { "b" }, version))
    });
    server.send(script);
    reached(&informer, 499).await;
    assert_eq!(delivered.first(499).await.len(), 499);
    assert_eq!(informer.stats().queued_changes, 0);
}

#[tokio::test(start_paused = true)]
async fn case_44_and_46_deleted_objects_are_freed_and_not_retained_by_others() {
    let objects: Vec<ConfigMap> = (0..100).map(|n| map(&format!("k{n}"), n + 1)).collect();
    let (informer, _source, server) = synced(objects, 100).await;
    let (delivered, registration) = listen(&informer, options());
    within(registration.synced()).await.unwrap();
    let weak: Vec<Weak<ConfigMap>> = informer.reader().list().iter().map(Arc::downgrade).collect();
    let script = (0..99).fold(Watch::new(), |script, n| script.deleted(map(&format!("k{n}"), 101 + n)));
    server.send(script);
    reached(&informer, 199).await;
    delivered.first(199).await;
    until(|| registration.status().is_some_and(|status| status.pending == 0)).await;
    tokio::task::yield_now().await;
    let alive = weak.iter().filter(|object| object.strong_count() > 0).count();
    assert_eq!((alive, informer.reader().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn case_45_a_hundred_stopped_informers_leave_no_task_behind() {
    let running = Arc::new(AtomicUsize::new(0));
    for n in 0..100 {
        let source = Source::new();
        source.on_list(List::at("10").item(map("a", 3)));
        let _server = source.open_watch(Watch::new());
        let counted = Arc::clone(&running);
        let spawn = move |task: watchkeeper_informer::Task| {
            let counted = Arc::clone(&counted);
            counted.fetch_add(1, Ordering::SeqCst);
            drop(tokio::runtime::Handle::current().spawn(async move {
                task.await;
                counted.fetch_sub(1, Ordering::SeqCst);
            }));
        };
        let informer = SharedIndexInformer::spawned_by(plain(&source), &(), spawn);
        let (_, registration) = listen(&informer, options());
        informer.start();
        // Some are let go of before anything happened, some in the middle, some are shut down.
        for _ in 0..n % 10 {
            tokio::task::yield_now().await;
        }
        if n % 3 == 0 {
            within(informer.shutdown()).await;
        }
        drop(informer);
        drop(registration);
    }
    until(|| running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn an_object_without_a_name_is_left_out_and_the_others_of_its_batch_are_not() {
    let mut nameless = map("x", 1);
    nameless.metadata.name = None;
    let fifo = DeltaFifo::<ConfigMap>::new(NothingKnown, FifoOptions::new());
    fifo.replace(vec![map("a", 1), nameless, map("b", 2)], Some("2")).unwrap();
    let popped = fifo.pop_batch(10).await.unwrap();
    let store = Store::new();
    let handled = process_deltas(popped.keys(), &store);
    assert_eq!((handled.ops.len(), handled.notifications.len()), (2, 2), "{handled:?}");
    store.apply(handled.ops, None).unwrap();
    assert_eq!(store.keys(), ["a", "b"].map(|key| key.parse::<ObjectKey>().unwrap()));
    popped.done();
}

#[tokio::test(start_paused = true)]
async fn several_changes_of_a_key_in_one_batch_are_delivered_one_by_one() {
    // All changes below are queued before the loop runs, so that they are one batch.
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    let (delivered, registration) = listen(&informer, options().every_event());
    within(registration.synced()).await.unwrap();
    server.send(
        Watch::new()
            .modified(map("a", 11))
            .deleted(map("a", 12))
            .added(incarnation("a", "2", 13))
            .modified(incarnation("a", "2", 14)),
    );
    assert_eq!(
        delivered.first(5).await,
        ["initial a@3", "update a@3 to a@11", "delete a@12", "add a@13", "update a@13 to a@14"]
    );
}
