//! The loop with one handler.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::oneshot;
use watchkeeper_informer::{
    Store,
    controller::{new_indexer_informer, new_informer},
    event::Event,
};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn one_handler_is_called_in_the_same_task_after_the_cache_is_updated() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)).item(map("b", 4)));
    let server = source.open_watch(Watch::new());
    let store = Store::new();
    let by_name = store.add_index("name", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    let delivered = Deliveries::new();
    let (received, reader) = (delivered.clone(), store.clone());
    let handler = move |event: &Event<ConfigMap>| {
        if let Event::Updated { new, .. } = event {
            assert!(reader.cached("a").is_some_and(|held| held.ptr_eq(new)), "the cache is ahead");
        }
        received.take_unchecked(event);
        assert!(!matches!(event, Event::Updated { .. }), "a panic is caught");
    };
    let controller =
        new_indexer_informer(plain(&source).resync_period(Duration::from_secs(5)), handler, &store);
    let (stop, stopped) = oneshot::channel::<()>();
    let run = controller.run(async move { drop(stopped.await) });
    let test = async {
        assert_eq!(delivered.first(2).await, ["initial a@3", "initial b@4"]);
        server.send(Watch::new().modified(map("a", 11)).deleted(map("b", 12)));
        assert_eq!(delivered.first(4).await[2..], ["update a@3 to a@11", "delete b@12"]);
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(delivered.all()[4..], ["sync a@11"]);
        assert_eq!((by_name.count("a"), by_name.count("b")), (1, 0));
        drop(stop);
    };
    let (ended, ()) = tokio::join!(within(run), within(test));
    ended.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_ends_it() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let server = source.open_watch(Watch::new());
    let (received, mut delivered) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |event: &Event<ConfigMap>| _ = received.send(event.object().clone());
    let (cache, controller) = new_informer(plain(&source), handler);
    let (_, monitor) = controller.monitors().remove(0);
    tokio::select! {
        ended = controller.run(std::future::pending()) => panic!("{ended:?}"),
        object = delivered.recv() => assert!(cache.cached("a").is_some_and(|held| held.ptr_eq(&object.unwrap()))),
    }
    within(server.closed()).await;
    assert_eq!(monitor.status().label(), "stopped");
}
