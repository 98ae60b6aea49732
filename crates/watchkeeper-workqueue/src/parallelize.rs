//! A fixed amount of work, done by several tasks.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::task::JoinSet;

/// Runs `work(0)`, `work(1)`, … up to `pieces`, each exactly once, on up to `workers` tasks, until all are done or
/// `until` ends. Returns how many pieces were completed.
///
/// When `until` ends first, no further piece is begun; those under way are finished. Dropping the future
/// aborts them. A panic in `work` is passed on once the other tasks have stopped.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use watchkeeper_workqueue::parallelize_until;
///
/// let done = parallelize_until(std::future::pending(), 4, 100, |piece| async move { assert!(piece < 100) }).await;
/// assert_eq!(done, 100);
/// # });
/// ```
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
    let work = Arc::new(work);
    let next = Arc::new(AtomicUsize::new(0));
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
    let mut until = std::pin::pin!(until);
    let mut has_stopped = false;
    let (mut completed, mut panic) = (0, None);
    loop {
        let joined = std::future::poll_fn(|context| {
            if !has_stopped && until.as_mut().poll(context).is_ready() {
                has_stopped = true;
                stop();
            }
            tasks.poll_join_next(context)
        })
        .await;
        match joined {
            None => break,
            Some(Ok(count)) => completed += count,
            Some(Err(failed)) => {
                stop();
                panic = failed.try_into_panic().ok();
            }
        }
    }
    match panic {
        Some(panic) => std::panic::resume_unwind(panic),
        None => completed,
    }
}
