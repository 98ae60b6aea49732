//! Waits for the first list, and the reasons for which they fail.

use std::time::Duration;

use watchkeeper_client::classify::Reason;
use watchkeeper_informer::{SharedIndexInformer, controller::Config, status::SyncError};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn waiting_on_an_informer_that_was_not_started_is_an_error() {
    let (informer, version) = (SharedIndexInformer::new(plain(&Source::new())), version(7));
    let (_, monitor) = informer.monitors().remove(0);
    let (_, registration) = listen(&informer, options());
    let no_namespaces = SharedIndexInformer::new(Config::by_namespace("none", [] as [(String, Source); 0]));
    let errors = [
        within(informer.wait_for_sync(None)).await.unwrap_err().to_string(),
        within(informer.wait_for_sync(Some(Duration::from_secs(5)))).await.unwrap_err().to_string(),
        within(no_namespaces.wait_for_sync(None)).await.unwrap_err().to_string(),
        within(informer.wait_until(&version)).await.unwrap_err().to_string(),
        within(informer.wait_for("a", &version)).await.unwrap_err().to_string(),
        within(monitor.wait_for_sync(None)).await.unwrap_err().to_string(),
        within(monitor.refusal()).await.to_string(),
        within(registration.synced()).await.unwrap_err().to_string(),
    ];
    for error in errors {
        assert!(error.contains("has not been started") && error.contains("call `start()`"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_failed_before_the_start_succeeds_after_it() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    let informer = SharedIndexInformer::new(plain(&source));
    let (_, monitor) = informer.monitors().remove(0);
    let (_, registration) = listen(&informer, options());
    within(informer.wait_for_sync(None)).await.unwrap_err();
    informer.start();
    within(informer.wait_for_sync(None)).await.unwrap();
    within(monitor.wait_for_sync(None)).await.unwrap();
    within(registration.synced()).await.unwrap();
    within(informer.wait_until(&version(10))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_forbidden_fails_the_wait_with_the_reason_and_is_still_tried() {
    let source = Source::new();
    source.on_list(List::refused(status(403, "Forbidden")));
    let informer = SharedIndexInformer::new(plain(&source));
    informer.start();
    let refused = within(informer.wait_for_sync(None)).await.unwrap_err();
    assert!(matches!(refused, SyncError::Refused { why: Reason::Api(_), .. }), "{refused:?}");
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    // The next attempt is in progress, and a new wait receives its result.
    at_last(|| informer.wait_for_sync(None)).await;
    assert_eq!(held(&informer), ["a@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_does_not_exist_yet_fails_the_wait_and_is_there_when_it_is_installed() {
    let source = Source::new();
    source.on_list(List::refused(status(404, "NotFound")));
    let informer = SharedIndexInformer::new(plain(&source));
    informer.start();
    let refused = within(informer.wait_for_sync(None)).await.unwrap_err();
    assert!(matches!(refused, SyncError::NotServed { .. }), "{refused:?}");
    assert_eq!(informer.status().label(), "parked");
    source.on_list(List::at("10"));
    let _server = source.open_watch(Watch::new());
    let mut statuses = informer.status_watch();
    while !informer.status().is_synced() {
        within(statuses.changed()).await;
    }
    within(informer.wait_for_sync(None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_and_the_error_contains_the_last_status() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)).continued("more", Some(1)));
    source.on_list(List::at("10").stall());
    let informer = SharedIndexInformer::new(plain(&source));
    informer.start();
    let late = informer.wait_for_sync(Some(Duration::from_secs(5))).await.unwrap_err();
    assert!(matches!(&late, SyncError::Deadline { last, .. } if last.label() == "listing"), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_synced_and_so_is_an_informer_of_no_namespaces() {
    let (informer, _source, _server) = synced([], 10).await;
    assert!(informer.has_synced());
    let none = SharedIndexInformer::new(Config::by_namespace("nothing", [] as [(String, Source); 0]));
    let (delivered, registration) = listen(&none, options());
    none.start();
    within(none.wait_for_sync(None)).await.unwrap();
    within(registration.synced()).await.unwrap();
    assert!(delivered.all().is_empty());
    within(none.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_are_one_cache_synced_when_all_are_and_a_list_of_one_is_not_about_the_others() {
    let [shop, mail] = [Source::new(), Source::new()];
    shop.on_list(List::at("10").item(map("shop/a", 3)));
    let shop_server = shop.open_watch(Watch::new());
    let config =
        Config::by_namespace("two", [("shop".to_owned(), shop.clone()), ("mail".to_owned(), mail.clone())])
            .reflector_with(|options| {
                options.streaming.is_enabled = false;
                options.history_check.on_reconnect = false;
                options.history_check.every = None;
            })
            .resync_period(Duration::from_mins(1));
    let informer = SharedIndexInformer::new(config);
    let (delivered, registration) = listen(&informer, options());
    informer.start();
    delivered.first(1).await;
    assert!(!informer.has_synced() && informer.resource_version().is_none(), "mail is not there yet");

    mail.on_list(List::at("12").item(map("mail/a", 4)));
    let mail_server = mail.open_watch(Watch::new());
    within(informer.wait_for_sync(None)).await.unwrap();
    within(registration.synced()).await.unwrap();
    reached(&informer, 10).await;
    assert_eq!(held(&informer), ["mail/a@4", "shop/a@3"]);

    // Everything up to 10 is known of both; of one alone, more.
    mail_server.send(Watch::new().modified(map("mail/a", 20)));
    delivered.first(3).await;
    assert_eq!(informer.resource_version().unwrap().as_str(), "10");
    shop.on_list(List::at("30"));
    let _again = shop.open_watch(Watch::new());
    shop_server.send(Watch::new().error(status(410, "Expired")));
    assert_eq!(delivered.first(4).await[3..], ["lost shop/a@3"]);
    reached(&informer, 20).await;
    assert_eq!(held(&informer), ["mail/a@20"]);

    // One resync for all of them.
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(delivered.all()[4..], ["sync mail/a@20"]);
    assert_eq!(informer.monitors().len(), 2);
}
