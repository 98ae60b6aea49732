//! The task that runs the controllers.

use std::time::Duration;

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::watch,
};

use super::{
    Controllers,
    objects::{Objects, ServerEvent},
};
use crate::Clock;

/// The number of consecutive steps after which the task yields: a step may delete dozens of objects.
const STEPS_IN_A_ROW: usize = 8;

/// A source of changes to the server's objects, in order.
pub(crate) trait Feed {
    /// Waits until changes may be available to [drained](Feed::drain_into). Returns false if no more changes can occur.
    async fn wait(&mut self) -> bool;
    /// Appends the changes since the last call to `changes`, in order.
    fn drain_into(&mut self, changes: &mut Vec<ServerEvent>);
}

/// Runs `step` without delaying requests: on a multi-threaded runtime, the other tasks of this thread move to another thread
/// first. Without `may_be_long` this is not worth its cost.
fn yield_to_others<T>(may_be_long: bool, step: impl FnOnce() -> T) -> T {
    let is_multi_thread =
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if may_be_long && is_multi_thread { tokio::task::block_in_place(step) } else { step() }
}

/// Runs the controllers until `stop` becomes true or its sender is dropped.
///
/// All pending changes are applied before each step, so that a step decides on current information. Without work, the task
/// sleeps until the next change or until a retry is due.
pub(crate) async fn run(
    mut controllers: Controllers,
    objects: &impl Objects,
    mut feed: impl Feed,
    clock: &dyn Clock,
    mut stop: watch::Receiver<bool>,
) {
    let start = clock.now();
    let mut changes = Vec::new();
    let mut steps = 0;
    while !*stop.borrow() {
        feed.drain_into(&mut changes);
        changes.drain(..).for_each(|change| controllers.handle(&change));
        let now = clock.now().saturating_sub(start);
        let is_due = controllers.next_due() == Some(Duration::ZERO);
        if yield_to_others(is_due, || controllers.step(now, objects)) {
            steps += 1;
            if steps % STEPS_IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
            continue;
        }
        let due = async {
            match controllers.next_due() {
                Some(due) => clock.sleep(due.saturating_sub(now).max(Duration::from_millis(1))).await,
                None => std::future::pending().await,
            }
        };
        // Biased, so that a run is reproducible.
        tokio::select! {
            biased;
            changed = stop.changed() => if changed.is_err() { return },
            has_more = feed.wait() => if !has_more { return },
            () = due => {}
        }
    }
}
