//! Who is resynced when.

use std::time::Duration;

use watchkeeper_informer::{
    delta_fifo::DeltaKind::{Added, Sync},
    handler::HandlerOptions,
};

use super::{Informer, Listener, fifo_fixture::object, settle};

const SECOND: Duration = Duration::from_secs(1);

impl Informer {
    /// Acts as a timer with the check period.
    fn tick(&mut self) {
        if self.processor.mark_due() {
            let cached: Vec<_> = self.cache.values().cloned().collect();
            self.apply(cached.into_iter().map(|object| (Sync, object)));
        }
    }

    /// Lets `seconds` pass, with a tick at each of them, and returns at which of them the handlers were
    /// resynced.
    async fn pass(&mut self, seconds: u32, listeners: &[&Listener]) -> Vec<Vec<u32>> {
        let mut synced = vec![Vec::new(); listeners.len()];
        for second in 1..=seconds {
            tokio::time::advance(SECOND).await;
            self.tick();
            settle().await;
            for (listener, synced) in listeners.iter().zip(&mut synced) {
                if !listener.take().is_empty() {
                    synced.push(second);
                }
            }
        }
        synced
    }
}

fn every(seconds: u64) -> HandlerOptions {
    HandlerOptions::new(format!("every {seconds} s")).resync_period(Duration::from_secs(seconds))
}

#[tokio::test(start_paused = true)]
async fn handlers_are_resynced_at_their_own_times_only() {
    let mut informer = Informer::new(SECOND);
    let never = informer.add(every(0));
    let two = informer.add(every(2));
    let three = informer.add(every(3));
    let default = informer.add(HandlerOptions::new("default"));
    informer.processor.fix_check_period();
    informer.start();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    for listener in [&never, &two, &three, &default] {
        listener.take();
    }
    let synced = informer.pass(7, &[&never, &two, &three, &default]).await;
    assert_eq!(synced, [vec![], vec![2, 4, 6], vec![3, 6], vec![1, 2, 3, 4, 5, 6, 7]]);
    informer.stop().await;
}

/// With all handlers due and none of them running yet, client-go's distributor and its starter waited for
/// each other (kubernetes#136509, kubernetes#137296).
#[tokio::test(start_paused = true)]
async fn case_40_a_resync_before_the_handlers_run_does_not_block() {
    let mut informer = Informer::new(SECOND);
    let listener = informer.add(every(1));
    informer.apply([(Added, object("a", 1))]);
    tokio::time::advance(SECOND).await;
    informer.tick();
    informer.start();
    settle().await;
    assert_eq!(listener.take(), ["added a@1", "synced a@1"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_check_period_is_the_shortest_requested_one_until_it_is_fixed() {
    let mut informer = Informer::new(Duration::from_hours(12));
    let long = informer.add(HandlerOptions::new("default"));
    for (requested, expected) in [(60, 60), (55, 55), (90, 55), (5, 5), (0, 5)] {
        informer.add(every(requested));
        assert_eq!(informer.processor.check_period(), Duration::from_secs(expected), "after {requested} s");
    }
    assert_eq!(informer.processor.fix_check_period(), Duration::from_secs(5));
    let late = informer.add(every(2));
    assert_eq!(informer.processor.fix_check_period(), Duration::from_secs(5));
    informer.start();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    long.take();
    late.take();
    let synced = informer.pass(11, &[&long, &late]).await;
    assert_eq!(synced, [vec![], vec![5, 10]]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_added_with_the_shortest_period_does_not_postpone_the_resyncs_of_others() {
    let mut informer = Informer::new(Duration::from_mins(1));
    let first = informer.add(every(3));
    informer.start();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    first.take();
    assert_eq!(informer.pass(2, &[&first]).await, [<[u32; 0]>::default()]);
    let second = informer.add(every(3));
    settle().await;
    second.take();
    assert_eq!(informer.pass(4, &[&first, &second]).await, [vec![1, 4], vec![3]]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_handler_is_resynced_more_often_than_each_second() {
    let informer = Informer::new(Duration::from_mins(1));
    informer.add(HandlerOptions::new("eager").resync_period(Duration::from_millis(10)));
    assert_eq!(informer.processor.fix_check_period(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_never_resyncs_does_not_for_any_handler() {
    let mut informer = Informer::new(Duration::ZERO);
    let listener = informer.add(every(1));
    assert_eq!(informer.processor.fix_check_period(), Duration::ZERO);
    informer.start();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    listener.take();
    assert_eq!(informer.pass(5, &[&listener]).await, [<[u32; 0]>::default()]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_adds_no_event_for_a_key_with_a_pending_event() {
    let mut informer = Informer::new(SECOND);
    informer.start();
    let listener = informer.add(every(1).max_lag_events(0));
    listener.block();
    informer.apply([(Added, object("a", 1))]);
    settle().await;
    informer.apply([(Added, object("b", 2))]);
    for _ in 0..3 {
        tokio::time::advance(SECOND).await;
        informer.tick();
    }
    listener.unblock();
    settle().await;
    assert_eq!(listener.take(), ["added a@1", "added b@2", "synced a@1"]);
    informer.stop().await;
}
