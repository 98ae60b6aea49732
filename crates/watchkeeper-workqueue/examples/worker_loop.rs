//! A worker loop: three workers, a queue, work that sometimes fails, and an orderly end.
//!
//! `cargo run -p watchkeeper-workqueue --example worker_loop`

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use watchkeeper_workqueue::{
    AddOptions, Cause, Drained, Item, Priority, WorkQueue,
    limiter::{ItemExponential, Jittered},
};

type Key = Arc<str>;

#[tokio::main]
async fn main() {
    // Failed keys come back after 20 ms, 40 ms, 80 ms ..., each a little later than that, so that they spread out.
    let limiter = Jittered::new(ItemExponential::new(Duration::from_millis(20), Duration::from_secs(5)), 0.5);
    let queue: WorkQueue<Key> = WorkQueue::builder("shop").rate_limiter(limiter).build();

    let mut workers = JoinSet::new();
    for number in 1..=3 {
        let mut worker = queue.worker();
        workers.spawn(async move {
            while let Some(item) = worker.next().await {
                work(number, item).await;
            }
        });
    }

    say("a first list finds five objects: low priority, nothing has just changed");
    for name in ["cart", "catalog", "checkout", "mail", "search"] {
        let options = AddOptions::new().priority(Priority::LOW).cause(Cause::InitialList);
        queue.add_with(format!("shop/{name}").into(), options);
    }
    say("the cart changes ten times at once: the next hand-out covers them all");
    for _ in 0..10 {
        queue.add_with("shop/cart".into(), AddOptions::new().cause(Cause::Event("Deployment".into())));
        tokio::task::yield_now().await;
    }
    say("a certificate is due for renewal in 150 ms");
    queue.add_after("shop/certificate".into(), Duration::from_millis(150));

    // Wait until nothing is left that could still come back.
    while queue.waiting_len() + queue.len() + queue.processing_len() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match queue.drain(Duration::from_secs(5)).await {
        Drained::Complete => say("drained: nothing queued, nothing in hand"),
        Drained::DeadlineReached { queued, processing } => {
            say(&format!("gave up with {queued} queued and {processing} in hand"));
        }
    }
    workers.join_all().await;
    say("next: the crate's documentation, `cargo doc -p watchkeeper-workqueue --open`");
}

async fn work(worker: usize, item: Item<'_, Key>) {
    tokio::time::sleep(Duration::from_millis(5)).await; // as if talking to a server
    let why = if item.causes().is_empty() { "its time has come".into() } else { item.causes().to_string() };
    let what = format!("worker {worker}: {:<16} ({why})", item.key());
    if item.key().ends_with("mail") && item.failures() < 3 {
        say(&format!("{what}: failed, try {}", item.failures() + 1));
        item.retry();
    } else {
        say(&format!("{what}: done"));
        item.forget();
    }
}

#[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
fn say(line: &str) {
    println!("{line}");
}
