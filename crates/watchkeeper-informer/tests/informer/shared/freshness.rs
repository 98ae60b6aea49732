//! Reading one's own writes.

use std::time::Duration;

use tokio::time::timeout;
use watchkeeper_informer::{FreshnessError, ResourceVersion};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn a_version_is_reached_by_a_list_an_event_or_a_bookmark() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    within(informer.wait_until(&version(10))).await.unwrap();
    assert!(timeout(Duration::from_mins(1), informer.wait_until(&version(11))).await.is_err());
    server.send(Watch::new().modified(map("a", 11)));
    within(informer.wait_until(&version(11))).await.unwrap();
    server.send(Watch::new().bookmark("15"));
    within(informer.wait_until(&version(14))).await.unwrap();
    assert_eq!(informer.snapshot().resource_version(), Some(&version(15)));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_waited_for_until_it_is_there_or_has_been_passed() {
    let (informer, _source, server) = synced([map("a", 3)], 10).await;
    let found = within(informer.wait_for("a", &version(2))).await.unwrap();
    assert_eq!(found.map(|object| label(&object)).as_deref(), Some("a@3"));
    assert!(timeout(Duration::from_mins(1), informer.wait_for("b", &version(12))).await.is_err());
    server.send(Watch::new().added(map("b", 12)));
    let found = within(informer.wait_for("b", &version(12))).await.unwrap();
    assert_eq!(found.map(|object| label(&object)).as_deref(), Some("b@12"));
    // Deleted, or never in the collection: when everything up to there is known, it is known too.
    server.send(Watch::new().deleted(map("b", 14)));
    assert!(within(informer.wait_for("b", &version(13))).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wait_fails_when_the_informer_stops() {
    let (informer, _source, _server) = synced([map("a", 3)], 10).await;
    let waiting = informer.clone();
    let (waited, ()) = tokio::join!(async move { within(waiting.wait_until(&version(99))).await }, async {
        within(informer.shutdown()).await;
    });
    assert_eq!(waited, Err(FreshnessError::Stopped { version: version(99) }));
    let unordered = ResourceVersion::new("v7").unwrap();
    assert!(matches!(informer.wait_until(&unordered).await, Err(FreshnessError::Unordered { .. })));
}
