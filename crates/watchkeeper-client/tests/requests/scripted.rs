//! The guarantees of the scripted source, on which other tests rely.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ObjectMeta, Status};
use tokio::time::Instant;
use watchkeeper_client::{
    Error,
    decode::Identity,
    error::TransportKind,
    list_watch::{
        ListPart, ListRequest, ListScript, ListerWatcher, RecordedRequest, ScriptedSource, WatchEvent,
        WatchRequest, WatchScript,
    },
};

fn map(name: &str, version: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("shop".to_owned()),
        resource_version: Some(version.to_owned()),
        uid: Some(format!("uid-{name}")),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[expect(clippy::disallowed_methods, reason = "the virtual clock of the test is what is measured")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn a_list_follows_its_script() {
    let source = ScriptedSource::new();
    source.on_list(
        ListScript::at("10")
            .item(map("a", "7"))
            .wait(Duration::from_secs(5))
            .undecodable(Identity::new("shop", "bad", "u", "8"))
            .continued("next", Some(4)),
    );
    let start = now();
    let mut page = source.list(ListRequest::new().limit(2)).await.unwrap();
    let Some(Ok(ListPart::Item(item))) = page.next().await else { panic!("an item") };
    assert_eq!((item.identity().key(), item.identity().uid()), ("shop/a", Some("uid-a")));
    assert_eq!(item.decode().unwrap().metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(now(), start);
    let Some(Ok(ListPart::Item(item))) = page.next().await else { panic!("an item") };
    assert_eq!(now() - start, Duration::from_secs(5));
    assert_eq!(item.decode().unwrap_err().identity.key(), "shop/bad");
    let Some(Ok(ListPart::End(end))) = page.next().await else { panic!("an end") };
    assert_eq!((end.continue_token.as_deref(), end.remaining_item_count), (Some("next"), Some(4)));
    assert!(page.next().await.is_none());
    assert_eq!(source.requests(), [RecordedRequest::List(ListRequest::new().limit(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_source_can_be_chosen_when_the_program_runs() {
    async fn items(source: impl ListerWatcher<ConfigMap>) -> usize {
        source.list(ListRequest::new()).await.unwrap().count().await - 1
    }
    let scripted = ScriptedSource::new();
    scripted.on_list(ListScript::at("10").item(map("a", "7")));
    let chosen: Arc<dyn ListerWatcher<ConfigMap>> = Arc::new(scripted);
    assert_eq!(items(chosen).await, 1);
}

#[tokio::test(start_paused = true)]
async fn failures_come_where_they_were_scripted() {
    let source = ScriptedSource::<ConfigMap>::new();
    source.on_list(ListScript::refused(Status::failure("no", "Forbidden").with_code(403)));
    source.on_list(ListScript::at("10").item(map("a", "7")).broken(TransportKind::Reset).item(map("b", "8")));
    source.on_watch(WatchScript::unreachable(TransportKind::Refused));
    source.on_watch(
        WatchScript::new().error(Status::failure("old", "Expired").with_code(410)).added(map("a", "9")),
    );
    let request = ListRequest::new;

    assert!(source.list(request()).await.map(|_| ()).unwrap_err().is_forbidden());
    let mut page = source.list(request()).await.unwrap();
    assert!(page.next().await.unwrap().is_ok());
    let error = page.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Transport { kind: TransportKind::Reset, .. }), "{error}");
    assert!(page.next().await.is_none(), "neither items nor an end behind a failure");

    let error = source.watch(WatchRequest::new()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Transport { kind: TransportKind::Refused, .. }), "{error}");
    let mut events = source.watch(WatchRequest::new()).await.unwrap();
    assert!(events.next().await.unwrap().unwrap_err().is_expired());
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_script_and_a_stall_never_ends() {
    let source = ScriptedSource::<ConfigMap>::new();
    let mut opening = source.watch(WatchRequest::new());
    assert!((&mut opening).now_or_never().is_none());
    source.on_watch(WatchScript::new().bookmark("11").initial_events_end("12").stall());
    let mut events = opening.await.unwrap();
    for (version, is_end) in [("11", false), ("12", true)] {
        let Some(Ok(WatchEvent::Bookmark(mark))) = events.next().await else { panic!("a bookmark") };
        assert_eq!((mark.resource_version.as_str(), mark.initial_events_end), (version, is_end));
    }
    assert!(tokio::time::timeout(Duration::from_hours(100), events.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_is_fed_by_hand_and_ends_with_its_handle() {
    let source = ScriptedSource::new();
    let handle = source.open_watch(WatchScript::new().added(map("a", "1")));
    let mut events = source.watch(WatchRequest::new()).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    assert!(events.next().now_or_never().is_none());
    handle.send(WatchScript::new().modified(map("a", "2")).deleted(map("a", "3")));
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Modified(_)))));
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    assert!(handle.is_open());
    drop(handle);
    assert!(events.next().await.is_none());

    let handle = source.open_watch(WatchScript::new());
    drop(source.watch(WatchRequest::new()).await.unwrap());
    handle.closed().await;
    assert!(!handle.is_open());
}
