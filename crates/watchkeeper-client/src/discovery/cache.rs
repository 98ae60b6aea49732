//! A cached value that concurrent callers fetch only once.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// A cache of the last valid value, in which concurrent callers share one fetch.
///
/// Fetches are numbered in the order in which they start. On arrival, a caller determines the first fetch
/// whose result is acceptable, waits for its turn, and fetches only if no such result has arrived meanwhile.
/// A caller that is dropped during a fetch passes its turn to the next caller, which starts over. No partial
/// state is left behind, and no caller waits for an abandoned fetch.
pub(super) struct FetchCache<T, E> {
    state: Mutex<State<T, E>>,
    /// Held while fetching. The mutex is asynchronous, so that waiting blocks no thread.
    turn: tokio::sync::Mutex<()>,
}

struct State<T, E> {
    /// The number of the last fetch that was started.
    started: u64,
    /// The number of the first fetch whose value is still valid.
    valid_from: u64,
    last_value: Option<Fetched<T>>,
    /// The outcome of the last finished fetch.
    last_outcome: Option<(u64, Result<Arc<T>, E>)>,
}

struct Fetched<T> {
    number: u64,
    /// The time at which the fetch started. Later changes on the server may be missing.
    at: Instant,
    value: Arc<T>,
}

impl<T, E: Clone> FetchCache<T, E> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State { started: 0, valid_from: 1, last_value: None, last_outcome: None }),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Returns the cached value, or fetches it. A failure is not cached, but shared by the callers that
    /// waited for it.
    pub(super) async fn get(&self, fetch: impl AsyncFnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let will_do = {
            let state = self.state();
            if let Some(value) = state.valid() {
                return Ok(Arc::clone(&value.value));
            }
            let finished = state.last_outcome.as_ref().map_or(0, |(number, _)| *number);
            state.valid_from.max(finished + 1)
        };
        self.fetch(will_do, fetch).await
    }

    /// Returns a value whose fetch starts after this call.
    pub(super) async fn refresh(&self, fetch: impl AsyncFnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let will_do = self.state().started + 1;
        self.fetch(will_do, fetch).await
    }

    /// Makes the next [`get`](Self::get) fetch, even if a fetch is in progress.
    pub(super) fn invalidate(&self) {
        let mut state = self.state();
        state.valid_from = state.started + 1;
    }

    /// Returns the cached value, if it is valid.
    pub(super) fn peek(&self) -> Option<Arc<T>> {
        self.state().valid().map(|value| Arc::clone(&value.value))
    }

    /// Returns the age of the cached value; `None` if there is no valid one.
    pub(super) fn age(&self) -> Option<Duration> {
        let at = self.state().valid()?.at;
        Some(now().duration_since(at))
    }

    async fn fetch(&self, will_do: u64, fetch: impl AsyncFnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let _turn = self.turn.lock().await;
        let (number, at) = {
            let mut state = self.state();
            if let Some(value) = state.last_value.as_ref().filter(|value| value.number >= will_do) {
                return Ok(Arc::clone(&value.value));
            }
            if let Some((_, outcome)) = state.last_outcome.as_ref().filter(|(number, _)| *number >= will_do) {
                return outcome.clone();
            }
            state.started += 1;
            (state.started, now())
        };
        let outcome = fetch().await.map(Arc::new);
        let mut state = self.state();
        if let Ok(value) = &outcome {
            state.last_value = Some(Fetched { number, at, value: Arc::clone(value) });
        }
        state.last_outcome = Some((number, outcome.clone()));
        outcome
    }

    /// Locks the state. No code panics while holding the lock, so a poisoned one still guards a consistent
    /// state.
    fn state(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E> State<T, E> {
    fn valid(&self) -> Option<&Fetched<T>> {
        self.last_value.as_ref().filter(|value| value.number >= self.valid_from)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the runtime's clock, which tests pause; nothing is decided by it"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::{
        FutureExt,
        future::{LocalBoxFuture, join_all},
    };
    use tokio::sync::oneshot;

    use super::*;

    type TestCache = FetchCache<u32, &'static str>;

    /// Counts fetches and returns the number of each.
    async fn counted(counter: &AtomicU32) -> Result<u32, &'static str> {
        tokio::task::yield_now().await;
        Ok(counter.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Starts a fetch that completes after `release`, and polls it once.
    fn started_fetch<'a>(
        cache: &'a TestCache,
        count: &'a AtomicU32,
    ) -> (oneshot::Sender<()>, LocalBoxFuture<'a, Result<Arc<u32>, &'static str>>) {
        let (release, released) = oneshot::channel();
        let mut fetch: LocalBoxFuture<'a, _> = Box::pin(cache.get(async || {
            let _ = released.await;
            counted(count).await
        }));
        assert!((&mut fetch).now_or_never().is_none());
        (release, fetch)
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_fetch() {
        let (cache, count) = (TestCache::new(), AtomicU32::new(0));
        let values = join_all((0..10).map(|_| cache.get(async || counted(&count).await))).await;
        assert!(values.iter().all(|value| **value.as_ref().unwrap() == 1));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert_eq!(*cache.get(async || counted(&count).await).await.unwrap(), 1, "and so do later ones");
    }

    #[tokio::test]
    async fn waiting_callers_share_a_failure_and_the_next_caller_tries_again() {
        let (cache, count) = (TestCache::new(), AtomicU32::new(0));
        let fail = async || {
            counted(&count).await?;
            Err("refused")
        };
        let outcomes = join_all((0..10).map(|_| cache.get(fail))).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Err("refused")));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert_eq!(*cache.get(async || counted(&count).await).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_dropped_caller_gives_its_turn_to_the_next() {
        let (cache, count) = (TestCache::new(), AtomicU32::new(0));
        let mut stuck = Box::pin(cache.get(async || std::future::pending().await));
        assert!((&mut stuck).now_or_never().is_none());
        let mut waiting = Box::pin(cache.get(async || counted(&count).await));
        assert!((&mut waiting).now_or_never().is_none());
        drop(stuck);
        assert_eq!(*waiting.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_refresh_does_not_use_an_earlier_fetch() {
        let (cache, count) = (TestCache::new(), AtomicU32::new(0));
        let (release, early) = started_fetch(&cache, &count);
        let later = join_all((0..3).map(|_| cache.refresh(async || counted(&count).await)));
        release.send(()).unwrap();
        let (early, later) = tokio::join!(early, later);
        assert_eq!(*early.unwrap(), 1);
        assert!(later.into_iter().all(|value| *value.unwrap() == 2), "three refreshes, one fetch");
    }

    #[tokio::test]
    async fn a_fetch_under_way_does_not_outlive_an_invalidation() {
        let (cache, count) = (TestCache::new(), AtomicU32::new(0));
        let (release, early) = started_fetch(&cache, &count);
        cache.invalidate();
        let late = cache.get(async || counted(&count).await);
        release.send(()).unwrap();
        let (early, late) = tokio::join!(early, late);
        assert_eq!((*early.unwrap(), *late.unwrap()), (1, 2));
    }

    #[tokio::test]
    async fn a_failed_refresh_keeps_the_cached_value() {
        let (cache, count) = (TestCache::new(), AtomicU32::new(0));
        cache.get(async || counted(&count).await).await.unwrap();
        assert_eq!(cache.refresh(async || Err("down")).await, Err("down"));
        assert_eq!(cache.get(async || counted(&count).await).now_or_never().unwrap(), Ok(Arc::new(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn age_counts_from_the_start_of_the_fetch_and_ends_with_an_invalidation() {
        let cache = TestCache::new();
        assert_eq!(cache.age(), None);
        let slow = async || {
            tokio::time::advance(Duration::from_secs(2)).await;
            Ok(7)
        };
        cache.get(slow).await.unwrap();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(cache.age(), Some(Duration::from_secs(5)));
        cache.invalidate();
        assert_eq!(cache.age(), None);
    }
}
