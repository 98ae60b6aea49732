//! A fixed number of pieces of work, processed by several tasks.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    task::Context,
};

use tokio::task::JoinSet;

/// Calls `work` once for each index below `pieces`, on up to `workers` tasks, and returns the number of completed pieces.
///
/// Each task processes one piece at a time. Zero workers count as one. If `until` completes first, no further piece is started,
/// and running pieces are completed. Use [`std::future::pending`] to process all pieces. Dropping the returned future aborts
/// the running pieces.
///
/// # Panics
/// Panics outside a tokio runtime. If `work` panics, no further piece is started; this function panics with the same payload
/// when running pieces are completed.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use watchkeeper_workqueue::parallelize_until;
///
/// let done = parallelize_until(std::future::pending(), 4, 100, |piece| async move { assert!(piece < 100) }).await;
/// assert_eq!(done, 100);
/// # });
/// ```
#[doc(alias = "ParallelizeUntil")]
pub async fn parallelize_until<F, W>(
    until: impl Future<Output = ()>,
    workers: usize,
    pieces: usize,
    work: W,
) -> usize
where
    W: Fn(usize) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (work, next) = (Arc::new(work), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..workers.clamp(1, pieces.max(1)) {
        let (work, next) = (Arc::clone(&work), Arc::clone(&next));
        tasks.spawn(async move {
            let mut completed = 0;
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return completed;
                }
                work(piece).await;
                completed += 1;
            }
        });
    }
    let stop = || next.fetch_add(pieces, Ordering::Relaxed);
    let (mut completed, mut panic, mut until) = (0, None, pin!(Some(until)));
    let mut next_task = |context: &mut Context<'_>| {
        if until.as_mut().as_pin_mut().is_some_and(|until| until.poll(context).is_ready()) {
            until.set(None);
            stop();
        }
        tasks.poll_join_next(context)
    };
    while let Some(joined) = poll_fn(&mut next_task).await {
        match joined {
            Ok(count) => completed += count,
            Err(error) => {
                stop();
                panic = error.try_into_panic().ok();
            }
        }
    }
    panic.map_or(completed, |panic| std::panic::resume_unwind(panic))
}
