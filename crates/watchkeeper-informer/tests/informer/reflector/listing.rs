//! Lists: the requested version, the paging, and the fallbacks when pages fail.

use kube_core::response::{StatusCause, StatusDetails};
use watchkeeper_client::{classify::Reason, error::TransportKind};
use watchkeeper_informer::status::SyncError;

use super::support::{List, Rig, Watch, details, expired, map, plain, seconds, status, too_large};

#[tokio::test(start_paused = true)]
async fn the_first_list_accepts_any_version_and_the_watch_starts_from_it() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("b", "7")).item(map("a", "5")));
    assert_eq!(rig.requests(2).await, ["list 0 limit=500", "watch 10"]);
    assert_eq!(rig.deliveries(1).await, ["replace 10: b@7 a@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_later_list_is_not_older_than_the_observed_version_and_is_requested_in_one_page() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "5")));
    rig.source.on_watch(Watch::new().modified(map("a", "15")).error(expired()));
    rig.source.on_list(List::at("20").item(map("a", "15")));
    assert_eq!(rig.requests(4).await, ["list 0 limit=500", "watch 10", "list 15", "watch 20"]);
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@5", "update a@15", "replace 20: a@15"]);
}

#[tokio::test(start_paused = true)]
async fn after_progress_a_list_from_scratch_is_not_requested_again() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::refused(expired()));
    rig.source.on_list(List::refused(expired()));
    rig.source.on_list(List::at("30"));
    rig.source.on_watch(Watch::new().bookmark("40").wait(seconds(300)).error(expired()));
    let requests = rig.requests(6).await;
    assert_eq!(requests[2..], ["list 10", "list newest limit=500", "watch 30", "list 40"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_keeps_expiring_even_from_scratch_is_requested_with_growing_delays() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::refused(expired()));
    for _ in 0..12 {
        rig.source.on_list(List::refused(expired()));
    }
    let requests = rig.requests(15).await;
    assert_eq!(requests[2], "list 10");
    assert!(requests[3..].iter().all(|request| request == "list newest limit=500"), "{requests:?}");
    assert!(rig.delay_after(2).await < seconds(1));
    assert!(rig.delay_after(13).await > seconds(10));
    let waits = [rig.delay_after(3).await, rig.delay_after(4).await, rig.delay_after(5).await];
    assert!(waits.iter().all(|wait| *wait >= std::time::Duration::from_millis(400)), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn all_three_ways_to_say_too_large_lead_to_a_list_from_scratch() {
    let with_cause = |reason: &str, message: &str| {
        let mut status = status(504, "Timeout");
        let cause = StatusCause { reason: reason.into(), message: message.into(), field: String::new() };
        status.details = Some(StatusDetails { causes: vec![cause], ..details() });
        status
    };
    let dialects = [
        with_cause("ResourceVersionTooLarge", "x"),
        with_cause("", "Too large resource version"),
        too_large(),
    ];
    for dialect in dialects {
        let rig = Rig::start(plain());
        rig.source.on_list(List::at("10"));
        rig.source.on_watch(Watch::refused(expired()));
        rig.source.on_list(List::refused(dialect.clone()));
        assert_eq!(rig.requests(4).await[2..], ["list 10", "list newest limit=500"], "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_followed_by_their_tokens_and_passed_on_as_one_list() {
    let mut options = plain();
    options.page_size = Some(4);
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10").item(map("a", "1")).item(map("b", "2")).continued("two", Some(3)));
    rig.source.on_list(List::at("10").item(map("c", "3")).continued("three", Some(1)));
    rig.source.on_list(List::at("10").item(map("d", "4")));
    assert_eq!(
        rig.requests(4).await,
        ["list 0 limit=4", "list continue=two limit=4", "list continue=three limit=4", "watch 10"]
    );
    assert_eq!(rig.deliveries(1).await, ["replace 10: a@1 b@2 c@3 d@4"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_continue_token_is_none() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "1")).continued("", None));
    assert_eq!(rig.requests(2).await, ["list 0 limit=500", "watch 10"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_pages_even_version_0_gets_pages_from_then_on() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").continued("t", None));
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().error(expired()));
    assert_eq!(rig.requests(4).await[3], "list 10 limit=500");
}

#[tokio::test(start_paused = true)]
async fn a_chosen_page_size_counts_everywhere() {
    let mut options = plain();
    options.page_size = Some(7);
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().error(expired()));
    rig.source.on_list(List::refused(expired()));
    let requests = rig.requests(4).await;
    assert_eq!(requests, ["list 0 limit=7", "watch 10", "list 10 limit=7", "list newest limit=7"]);
}

#[tokio::test(start_paused = true)]
async fn when_pages_expire_the_whole_list_is_requested_once_at_the_same_version() {
    let mut options = plain();
    options.page_size = Some(2);
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10"));
    rig.source.on_watch(Watch::new().bookmark("15").error(expired()));
    rig.source.on_list(List::at("20").item(map("a", "1")).continued("t", None));
    rig.source.on_list(List::refused(expired()));
    rig.source.on_list(List::at("21").item(map("b", "2")));
    let requests = rig.requests(6).await;
    assert_eq!(requests[2..], ["list 15 limit=2", "list continue=t limit=2", "list 15", "watch 21"]);
    assert_eq!(rig.deliveries(3).await[2], "replace 21: b@2", "nothing is left of the pages that were read");
}

#[tokio::test(start_paused = true)]
async fn when_the_whole_list_expires_too_it_is_requested_from_scratch() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").continued("t", None));
    rig.source.on_list(List::refused(expired()));
    rig.source.on_list(List::refused(expired()));
    assert_eq!(rig.requests(4).await[2..], ["list 0", "list newest limit=500"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_continue_token_is_not_followed_forever() {
    let rig = Rig::start(plain());
    let page = |n: u32| List::at("10").item(map(&format!("object {n}"), "1"));
    rig.source.on_list(page(1).continued("one", None));
    rig.source.on_list(page(2).continued("two", None));
    rig.source.on_list(page(3).continued("one", None));
    rig.source.on_list(page(1));
    let requests = rig.requests(5).await;
    assert_eq!(
        requests[1..],
        ["list continue=one limit=500", "list continue=two limit=500", "list 0", "watch 10"]
    );
    assert_eq!(rig.failures.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn new_tokens_without_new_objects_are_not_followed_forever() {
    let rig = Rig::start(plain());
    for n in 0..18 {
        rig.source.on_list(List::at("10").item(map("a", "1")).continued(format!("token {n}"), None));
    }
    assert_eq!(rig.requests(19).await[18], "list 0");
    for n in 0..18 {
        rig.source.on_list(List::at("10").item(map("a", "1")).continued(format!("another {n}"), None));
    }
    let requests = rig.requests(37).await;
    assert_eq!(requests[36], "list 0 limit=500", "and that is a failure like others, with a wait");
    assert!(rig.delay_after(35).await >= std::time::Duration::from_millis(400));
}

#[tokio::test(start_paused = true)]
async fn an_object_on_two_pages_is_passed_on_once_in_its_newest_version() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "9")).item(map("b", "2")).continued("t", None));
    rig.source.on_list(List::at("10").item(map("a", "4")).item(map("c", "3")));
    assert_eq!(rig.deliveries(1).await, ["replace 10: a@9 b@2 c@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_on_a_later_page_is_not_passed_on_again_by_the_watch() {
    // Pages of different moments: the second is of version 15 and the list of version 10.
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "9")).continued("t", None));
    rig.source.on_list(List::at("15").item(map("b", "14")));
    rig.source.on_watch(
        Watch::new()
            .modified(map("b", "12"))
            .modified(map("a", "13"))
            .modified(map("b", "14"))
            .modified(map("b", "16")),
    );
    assert_eq!(rig.requests(3).await[2], "watch 10", "nothing the first page does not show may be missed");
    assert_eq!(
        rig.deliveries(5).await,
        ["replace 10: a@9 b@14", "bookmark 12", "update a@13", "update b@14", "update b@16"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_not_used() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "5")));
    rig.source.on_watch(Watch::new().bookmark("11").error(expired()));
    rig.source.on_list(List::at("20").broken(TransportKind::UnexpectedEof));
    rig.source.on_list(List::at("20").item(map("a", "5")).item(map("b", "6")));
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@5", "bookmark 11", "replace 20: a@5 b@6"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_is_not_watched_from_anywhere() {
    for missing in ["", "0"] {
        let rig = Rig::start(plain());
        rig.source.on_list(List::at(missing).item(map("a", "5")));
        rig.source.on_list(List::at("10").item(map("a", "5")));
        assert_eq!(rig.requests(3).await, ["list 0 limit=500", "list 0 limit=500", "watch 10"]);
        assert_eq!(rig.deliveries(1).await, ["replace 10: a@5"]);
        assert!(rig.failures.all()[0].message.contains("no resourceVersion"), "{missing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_a_list() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    assert_eq!(rig.deliveries(1).await, ["replace 10: "]);
    assert!(rig.monitor.wait_for_sync(None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_list_older_than_requested_is_rejected_and_requested_from_scratch() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "10")));
    rig.source.on_watch(Watch::new().modified(map("a", "20")).error(expired()));
    // A replica that lags and ignores the requested version.
    rig.source.on_list(List::at("15").item(map("a", "10")));
    rig.source.on_list(List::at("21").item(map("a", "20")));
    assert_eq!(rig.requests(5).await[2..], ["list 20", "list newest limit=500", "watch 21"]);
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@10", "update a@20", "replace 21: a@20"]);
    let counters = rig.monitor.counters();
    assert_eq!((counters.older_versions, counters.epochs), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_newest_list_older_than_the_observed_version_starts_a_new_epoch() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("1200").item(map("a", "1100")).item(map("b", "1150")));
    rig.source.on_watch(Watch::new().error(too_large()));
    rig.source.on_list(List::at("1001").item(map("a", "900")));
    rig.source.on_watch(Watch::new().modified(map("a", "1002")));
    assert_eq!(rig.requests(5).await[2..], ["list newest limit=500", "watch 1001", "watch 1002"]);
    assert_eq!(
        rig.deliveries(3).await,
        ["replace 1200: a@1100 b@1150", "replace 1001: a@900 (new epoch)", "update a@1002"]
    );
    assert_eq!(rig.monitor.counters().epochs, 1);
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_not_numbers_are_taken_as_they_come() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("zeta").item(map("a", "x")));
    rig.source.on_watch(Watch::new().modified(map("a", "beta")).modified(map("a", "007")).error(expired()));
    rig.source.on_list(List::at("alpha").item(map("a", "y")));
    assert_eq!(rig.requests(4).await[1..], ["watch zeta", "list 007", "watch alpha"]);
    assert_eq!(rig.deliveries(4).await[3], "replace alpha: a@y");
    assert_eq!(rig.monitor.counters().older_versions, 0);
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_list_from_storage_do_not_make_later_lists_paginate() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("20"));
    rig.source.on_watch(Watch::refused(too_large()));
    rig.source.on_list(List::at("30").item(map("a", "7")).continued("token", None));
    rig.source.on_list(List::at("30").item(map("b", "8")));
    rig.source.on_watch(Watch::new().wait(seconds(2)).error(expired()));
    let requests = rig.requests(6).await;
    assert_eq!(
        requests[2..],
        ["list newest limit=500", "list continue=token limit=500", "watch 30", "list 30"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_exceeds_a_limit_is_read_in_pages_from_storage_before_it_is_reported() {
    let rig = Rig::start(plain());
    let too_much = || List::exceeding("object_bytes", 16);
    rig.source.on_list(too_much());
    rig.source.on_list(List::at("10").item(map("a", "5")));
    assert_eq!(rig.requests(3).await, ["list 0 limit=500", "list newest limit=500", "watch 10"]);
    assert_eq!(rig.monitor.counters().relists.get("limit"), Some(&1));

    let rig = Rig::start(plain());
    rig.source.on_list(too_much());
    rig.source.on_list(too_much());
    let failed = rig.monitor.wait_for_sync(None).await;
    assert!(matches!(&failed, Err(SyncError::Refused { why: Reason::Limit, .. })), "{failed:?}");
    assert!(failed.unwrap_err().to_string().contains("object_bytes"));
    assert_eq!(rig.requests(3).await[2], "list 0 limit=500", "and it is tried again, slowly");
}
