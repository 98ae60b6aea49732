//! What lists and watches come to in the cache: relists, other incarnations, quarantine, transforms, epochs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{decode::Identity, error::TransportKind};
use watchkeeper_informer::{
    SharedIndexInformer,
    reflector::{QuarantineCause, TransformError},
    status::Status,
};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn a_relist_deletes_missing_objects_with_their_last_known_state_before_it_adds_new_ones() {
    let (informer, source, server) = synced([map("a", 3), map("b", 4)], 10).await;
    let (delivered, registration) = listen(&informer, options());
    within(registration.synced()).await.unwrap();
    let by_name = informer.add_index("name", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    source.on_list(List::at("20").item(map("c", 15)).item(map("b", 4)));
    let _again = source.open_watch(Watch::new());
    server.send(Watch::new().error(status(410, "Expired")));
    reached(&informer, 20).await;
    assert_eq!(delivered.first(4).await[2..], ["lost a@3", "add c@15"]);
    assert_eq!(held(&informer), ["b@4", "c@15"]);
    // Case 14: the index agrees after a deletion that was inferred from a list.
    assert_eq!((by_name.count("a"), by_name.count("b"), by_name.count("c")), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_object_created_anew_under_its_name_is_a_deletion_and_an_addition() {
    let (informer, source, server) = synced([map("a", 3)], 10).await;
    let (delivered, _) = listen(&informer, options());
    delivered.first(1).await;
    source.on_list(List::at("20").item(incarnation("a", "2", 15)));
    let _again = source.open_watch(Watch::new());
    server.send(Watch::new().error(status(410, "Expired")));
    assert_eq!(delivered.first(3).await[1..], ["lost a@3", "add a@15"]);
}

#[tokio::test(start_paused = true)]
async fn case_37_an_undecodable_object_is_quarantined_keeps_its_last_good_state_and_blocks_no_other() {
    let identity = |version: &str| Identity::new("", "a", "a-1", version);
    let (informer, source, server) = synced([map("a", 3), map("b", 4)], 10).await;
    let (delivered, _) = listen(&informer, options());
    server.send(Watch::new().undecodable(identity("11")).modified(map("b", 12)));
    reached(&informer, 12).await;
    assert_eq!(held(&informer), ["a@3", "b@12"]);
    let aside = informer.quarantined();
    assert_eq!((aside.len(), &*aside[0].key, aside[0].resource_version.as_deref()), (1, "a", Some("11")));
    assert_eq!(aside[0].cause, QuarantineCause::Decode);
    assert_eq!(informer.stats().quarantined, 1);

    // A list that cannot read it either does not take it for gone.
    source.on_list(List::at("20").undecodable(identity("11")).item(map("b", 12)));
    let again = source.open_watch(Watch::new());
    server.send(Watch::new().error(status(410, "Expired")));
    reached(&informer, 20).await;
    assert_eq!(held(&informer), ["a@3", "b@12"]);

    again.send(Watch::new().modified(map("a", 21)));
    reached(&informer, 21).await;
    assert_eq!((informer.quarantined(), informer.stats().quarantined), (vec![], 0));
    assert_eq!(delivered.first(4).await[2..], ["update b@4 to b@12", "update a@3 to a@21"]);
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_of_another_incarnation_ends_the_one_that_was() {
    let (informer, source, server) = synced([map("a", 3)], 10).await;
    let (delivered, _) = listen(&informer, options());
    delivered.first(1).await;
    source.on_list(List::at("20").undecodable(Identity::new("", "a", "a-2", "15")));
    let _again = source.open_watch(Watch::new());
    server.send(Watch::new().error(status(410, "Expired")));
    reached(&informer, 20).await;
    assert_eq!(delivered.first(2).await[1..], ["lost a@3"]);
    assert_eq!(held(&informer), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_cannot_be_read_carries_the_last_state_known() {
    // A transform that refuses stands for whatever cannot be read.
    let refuse_at_12 = |object: ConfigMap| match object.metadata.resource_version.as_deref() {
        Some("12") => Err(TransformError::new("refused")),
        _ => Ok(object),
    };
    let (informer, _source, server) =
        synced_with([map("a", 3)], 10, |config| config.transform(refuse_at_12)).await;
    let (delivered, _) = listen(&informer, options());
    server.send(Watch::new().deleted(map("a", 12)));
    reached(&informer, 12).await;
    assert_eq!(delivered.first(2).await, ["initial a@3", "lost a@3"]);
}

#[tokio::test(start_paused = true)]
async fn case_17_every_object_is_transformed_once_on_every_way_in() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let transform = move |mut object: ConfigMap| {
        counted.fetch_add(1, Ordering::Relaxed);
        let data = object.data.get_or_insert_default();
        assert!(data.insert("transformed".to_owned(), "yes".to_owned()).is_none(), "twice");
        Ok(object)
    };
    let (informer, source, server) = synced_with([map("a", 3), map("b", 4)], 10, |config| {
        config.transform(transform).resync_period(std::time::Duration::from_secs(1))
    })
    .await;
    let (delivered, _) = listen(&informer, options());
    server.send(Watch::new().modified(map("a", 11)).deleted(map("b", 12)));
    reached(&informer, 12).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    source.on_list(List::at("20").item(map("a", 11)).item(map("c", 15)));
    let _again = source.open_watch(Watch::new());
    server.send(Watch::new().error(status(410, "Expired")));
    reached(&informer, 20).await;
    delivered.first(5).await;
    assert!(informer.reader().list().iter().all(|object| object.data.is_some()));
    assert_eq!(
        calls.load(Ordering::Relaxed),
        5,
        "a b, a, b, c: what the relist found unchanged is not received"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_name_the_transform_changes_is_set_aside() {
    let rename = |mut object: ConfigMap| {
        if object.metadata.name.as_deref() == Some("b") {
            object.metadata.name = Some("a".to_owned());
        }
        Ok(object)
    };
    let (informer, _source, _server) =
        synced_with([map("a", 3), map("b", 4)], 10, |config| config.transform(rename)).await;
    assert_eq!(held(&informer), ["a@3"]);
    let aside = informer.quarantined();
    assert_eq!((&*aside[0].key, aside[0].cause), ("b", QuarantineCause::Transform));
}

#[tokio::test(start_paused = true)]
async fn the_version_of_the_cache_follows_the_server_whatever_a_transform_takes_off() {
    let strip = |mut object: ConfigMap| {
        object.metadata.resource_version = None;
        Ok(object)
    };
    let (informer, _source, server) = synced_with([map("a", 3)], 10, |config| config.transform(strip)).await;
    server.send(Watch::new().modified(map("a", 11)));
    reached(&informer, 11).await;
}

#[tokio::test(start_paused = true)]
async fn case_20_a_server_that_went_back_in_time_starts_a_new_epoch_in_which_the_same_version_is_an_update() {
    let source = Source::new();
    source.on_list(List::at("1200").item(map("a", 900)).item(map("b", 1100)));
    let server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::new(plain(&source).reflector_with(|options| {
        options.history_check.on_reconnect = true;
    }));
    let (delivered, _) = listen(&informer, options());
    informer.start();
    reached(&informer, 1200).await;
    let version = watchkeeper_informer::ResourceVersion::new("5000").unwrap();
    let waiting = informer.clone();
    let waiter = async move { waiting.wait_until(&version).await };

    // Before the watch is resumed, the server is found to be at 1001.
    source.on_list(List::at("1001"));
    source.on_list(List::at("1001").item(map("a", 900)));
    let again = source.open_watch(Watch::new());
    let (waited, ()) = tokio::join!(within(waiter), async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        server.send(Watch::new().bookmark("1200"));
        drop(server);
    });
    assert!(waited.unwrap_err().to_string().contains("history was replaced"));
    assert_eq!(informer.snapshot().epoch(), 1);
    assert_eq!(informer.resource_version().unwrap().as_str(), "1001");
    assert_eq!(held(&informer), ["a@900"]);
    assert_eq!(
        delivered.first(4).await,
        ["initial a@900", "initial b@1100", "lost b@1100", "update a@900 to a@900"]
    );
    again.send(Watch::new().added(map("b", 1002)));
    reached(&informer, 1002).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_shows_in_the_status_and_missed_changes_are_delivered() {
    let (informer, source, server) = synced([map("a", 3)], 10).await;
    let mut statuses = informer.status_watch();
    assert!(informer.status().is_synced());
    source.on_watch(Watch::unreachable(TransportKind::Refused));
    server.send(Watch::new().broken(TransportKind::Reset));
    let stale = within(statuses.changed()).await;
    assert!(matches!(stale, Status::Stale { .. }), "{stale:?}");
    let _again = source.open_watch(Watch::new().modified(map("a", 11)));
    reached(&informer, 11).await;
    assert!(informer.status().is_synced());
    let stats = informer.stats();
    assert_eq!((stats.objects, stats.sources[&None].lists, stats.sources[&None].failures), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn servers_that_number_each_object_apart_are_followed_and_their_versions_not_compared() {
    let (informer, _source, server) = synced_with([map("a", 30), map("b", 4)], 10, |config| {
        config.reflector_with(|options| {
            options.versions = watchkeeper_informer::reflector::VersionOrder::Opaque;
        })
    })
    .await;
    server.send(Watch::new().modified(map("b", 5)).modified(map("a", 31)));
    let version = watchkeeper_informer::ResourceVersion::new("31").unwrap();
    within(informer.wait_for("a", &version)).await.unwrap();
    assert_eq!(held(&informer), ["a@31", "b@5"]);
    assert_eq!(informer.resource_version(), None);
    assert!(informer.wait_until(&version).await.unwrap_err().to_string().contains("cannot be compared"));
}
