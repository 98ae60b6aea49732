//! A worker loop: three workers, a queue, work that sometimes fails, and an orderly shutdown.
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
    // Failed keys are retried after 20 ms, 40 ms, 80 ms ..., each extended by a random part.
    let limiter = Jittered::new(ItemExponential::new(Duration::from_millis(20), Duration::from_secs(5)), 0.5);
    let queue: WorkQueue<Key> = WorkQueue::builder("shop").rate_limiter(limiter).build();

    let mut workers = JoinSet::new();
    for number in 1..=3 {
        let queue = queue.clone();
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                work(number, item).await;
            }
        });
    }

    say("initial list: five keys with low priority");
    for name in ["cart", "catalog", "checkout", "mail", "search"] {
        let options = AddOptions::new().priority(Priority::LOW).cause(Cause::InitialList);
        queue.add_with(format!("shop/{name}").into(), options);
    }
    say("ten events of the cart: merged into one run");
    for _ in 0..10 {
        queue.add_with("shop/cart".into(), AddOptions::new().cause(Cause::Event("Deployment".into())));
        tokio::task::yield_now().await;
    }
    say("delayed add: the certificate, in 150 ms");
    queue.add_after("shop/certificate".into(), Duration::from_millis(150));

    // Wait until no key is queued, delayed or being processed.
    while queue.waiting_len() + queue.len() + queue.processing_len() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match queue.drain(Duration::from_secs(5)).await {
        Drained::Complete => say("drained: no key is queued or being processed"),
        Drained::DeadlineReached { queued, processing } => {
            say(&format!("deadline reached with {queued} keys queued and {processing} being processed"));
        }
    }
    workers.join_all().await;
    say("next: the crate's documentation, `cargo doc -p watchkeeper-workqueue --open`");
}

async fn work(worker: usize, item: Item<'_, Key>) {
    tokio::time::sleep(Duration::from_millis(5)).await; // a request to a server
    let why = if item.causes().is_empty() { "delay ended".into() } else { item.causes().to_string() };
    let what = format!("worker {worker}: {:<16} ({why})", item.key());
    if item.key().ends_with("mail") && item.failures() < 3 {
        say(&format!("{what}: failed, attempt {}", item.failures() + 1));
        item.retry();
    } else {
        say(&format!("{what}: done"));
        item.forget();
    }
}

#[expect(clippy::print_stdout, reason = "the output of the example")]
fn say(line: &str) {
    println!("{line}");
}
