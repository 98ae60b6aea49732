//! A worker: dequeues a key, reconciles it, and applies the outcome.

use std::{
    any::Any,
    future::pending,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use tracing::{Instrument as _, Level, Span, debug, error, info_span, level_filters::LevelFilter, warn};
use watchkeeper_informer::{CacheReader, Object, ObjectKey};
use watchkeeper_workqueue::{AddOptions, Cause, Item, WorkQueue};

use super::{
    Action, Context, ErrorClass, Freshness, ReconcileError, Reconciler, Request,
    context::{ContextSlot, ControllerContext},
    controller::{AbandonReason, AbandonedKey, ControllerOptions},
    outcome::{Decision, Outcome, decide},
    stop::StopTokens,
};
use crate::{
    HotLoop,
    hot_loop::HotLoopEvidence,
    metrics::ControllerSeries,
    panic::panic_message,
    writes::{MissedWrite, Readiness, ReconcileEnd, WriteTracker},
};

/// The state that the workers of a controller share.
pub(super) struct WorkerState<K: Object, R> {
    pub(super) reconciler: R,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) cache: CacheReader<K>,
    pub(super) tracker: Arc<WriteTracker>,
    pub(super) context: Arc<ControllerContext>,
    pub(super) metrics: Option<ControllerSeries>,
    pub(super) options: ControllerOptions,
    pub(super) kind: String,
    pub(super) reconciles: AtomicU64,
}

/// Processes keys until a stop is requested.
pub(super) async fn work<K: Object, R: Reconciler<K>>(state: &WorkerState<K, R>, tokens: &Arc<StopTokens>) {
    let mut slot = None;
    // Polling the stop token acquires a lock, so it is polled only when the queue is empty.
    while !tokens.is_stopping() {
        let item = tokio::select! {
            biased;
            item = state.queue.get() => item,
            () = tokens.stop.cancelled() => return,
        };
        let Some(item) = item else { return };
        // Panics of the reconciler are caught further inside; these come from hooks and destructors.
        if let Err(panic) = AssertUnwindSafe(process(state, tokens, &mut slot, item)).catch_unwind().await {
            error!(
                controller = &*state.options.name,
                panic = panic_message(&*panic),
                "hook or destructor panicked"
            );
        }
        // A reconciler that never waits would starve other tasks of the thread.
        tokio::task::coop::consume_budget().await;
    }
}

/// The result of a reconcile.
enum ReconcileResult {
    Returned(Result<Action, ReconcileError>),
    Panicked(Box<dyn Any + Send>),
    TimedOut(Duration),
    Cancelled,
}

async fn process<K: Object, R: Reconciler<K>>(
    state: &WorkerState<K, R>,
    tokens: &Arc<StopTokens>,
    slot: &mut Option<ContextSlot>,
    item: Item<'_, ObjectKey>,
) {
    let (freshness, missed) = match state.tracker.begin(item.key(), item.causes()) {
        Readiness::Ready(freshness) => (freshness, Vec::new()),
        Readiness::TimedOut { waited, missed } => (Freshness::TimedOut(waited), missed),
        Readiness::Wait { recheck_after, is_first } => {
            if is_first {
                debug!(
                    controller = &*state.options.name,
                    key = item.key().as_str(),
                    "waiting for own writes to be observed"
                );
            }
            item.put_back(recheck_after);
            return;
        }
    };
    let id = state.reconciles.fetch_add(1, Ordering::Relaxed) + 1;
    let span = span_of(state, &item, id);
    if let Freshness::TimedOut(waited) = freshness {
        span.in_scope(|| missed.iter().for_each(|missed| log_missed(missed, waited)));
    }
    let started_at = state.now_if_measured();
    let _active_worker = state.metrics.as_ref().map(|metrics| {
        metrics.waited(freshness);
        metrics.start_work()
    });
    let context_slot = slot.take().unwrap_or_else(|| ContextSlot::new(&state.context, tokens));
    let context = Context::new(context_slot, item.key(), id, freshness);
    let result = reconcile(state, tokens, &item, &context).instrument(span.clone()).await;
    *slot = context.end();
    let _in_span = span.enter();
    conclude(state, item, &result, started_at);
}

fn log_missed(missed: &MissedWrite, waited: Duration) {
    let (informer, object) = (missed.informer.as_str(), missed.object.as_str());
    if missed.is_selected {
        warn!(
            informer,
            object,
            ?waited,
            "own write not observed before timeout; reconciling with stale cache"
        );
    } else {
        warn!(
            informer,
            object,
            ?waited,
            "own write not observed before timeout; the informer probably does not select the object, so its next writes are \
             not waited for; widen the selector or write through Context::untracked_client"
        );
    }
}

/// Returns the span of a reconcile. If no subscriber is interested, the fields are not computed; the macro
/// would compute them for the `log` crate if any crate in the program enables its `log` feature.
fn span_of<K: Object, R>(state: &WorkerState<K, R>, item: &Item<'_, ObjectKey>, id: u64) -> Span {
    // Not `enabled!`, which ignores filters by span name or field.
    if LevelFilter::current() < Level::INFO {
        return Span::none();
    }
    info_span!(
        "reconcile",
        controller = &*state.options.name,
        controller_kind = state.kind.as_str(),
        namespace = item.key().namespace(),
        name = item.key().name(),
        reconcile_id = id,
        causes = %item.causes(),
        failures = item.failures(),
    )
}

/// Runs the reconciler on a key until it returns or is dropped.
async fn reconcile<K: Object, R: Reconciler<K>>(
    state: &WorkerState<K, R>,
    tokens: &StopTokens,
    item: &Item<'_, ObjectKey>,
    context: &Context,
) -> ReconcileResult {
    let object = match state.cache.cached(item.key()).map(|object| object.get()).transpose() {
        Ok(object) => object,
        // The object exists, so the reconciler must not clean up. Its next version enqueues the key.
        Err(error) => return ReconcileResult::Returned(Err(ReconcileError::terminal(error))),
    };
    let request = Request {
        key: item.key().clone(),
        object,
        causes: item.causes().clone(),
        failures: item.failures(),
        priority: item.priority(),
    };
    let timeout = state.options.timeout;
    let timed_out = async {
        match timeout {
            Some(timeout) => {
                let clock = &state.options.clock;
                clock.sleep_until(clock.now().saturating_add(timeout)).await;
                timeout
            }
            None => pending().await,
        }
    };
    // Called inside an async block, so that a panic before the future exists is caught too.
    let argument = context.clone();
    let reconcile = async move { state.reconciler.reconcile(request, argument).await };
    let result = tokio::select! {
        biased;
        returned = AssertUnwindSafe(reconcile).catch_unwind() => match returned {
            Ok(returned) => ReconcileResult::Returned(returned),
            Err(panic) => ReconcileResult::Panicked(panic),
        },
        () = tokens.abort.cancelled() => ReconcileResult::Cancelled,
        timeout = timed_out => ReconcileResult::TimedOut(timeout),
    };
    if !matches!(result, ReconcileResult::Returned(_)) {
        context.cancel();
    }
    result
}

/// Applies the outcome of a reconcile to the key.
fn conclude<K: Object, R: Reconciler<K>>(
    state: &WorkerState<K, R>,
    item: Item<'_, ObjectKey>,
    result: &ReconcileResult,
    started_at: Option<Duration>,
) {
    let outcome = result.outcome();
    if let Some((metrics, started_at)) = state.metrics.as_ref().zip(started_at) {
        metrics.reconciled(outcome, state.options.clock.now().saturating_sub(started_at));
    }
    let end = match outcome {
        Outcome::Failed(ErrorClass::Conflict) => ReconcileEnd::Conflict,
        _ => ReconcileEnd::Other,
    };
    // Done before the key is returned to the queue, while this worker still owns it.
    let (conflicts, evidence) = state.tracker.end(item.key(), item.causes(), end);
    let decision = decide(outcome, item.failures(), conflicts, state.options.retry_limit);
    let attempts = item.failures().saturating_add(1);
    match decision {
        // Logged together with the delay, which the rate limiter chooses when the key is requeued.
        Decision::Retry => {}
        Decision::RequeueUncounted(delay) => result.log(Some(delay), attempts),
        _ => result.log(None, attempts),
    }
    if decision == Decision::Forget && evidence.is_none() {
        item.forget();
        return;
    }
    let key = item.key().clone();
    match decision {
        Decision::Forget => item.forget(),
        Decision::Requeue(requeue) => match requeue.priority {
            None => _ = item.requeue_after(requeue.after),
            Some(priority) => {
                let options = AddOptions::new().after(requeue.after).priority(priority).cause(Cause::Requeue);
                state.queue.add_with(key.clone(), options);
                item.forget();
            }
        },
        Decision::Retry => result.log(Some(item.retry_with_delay().1), attempts),
        Decision::RequeueUncounted(delay) => _ = item.put_back(delay),
        Decision::AbandonTerminal => {
            item.forget();
            state.report_abandoned(&key, attempts, result);
        }
        Decision::AbandonExhausted => {
            item.forget();
            if let Some(metrics) = &state.metrics {
                metrics.retries_exhausted();
            }
            state.report_abandoned(&key, attempts, result);
        }
    }
    if let Some(evidence) = evidence {
        state.report_hot_loop(key, evidence);
    }
}

impl<K: Object, R> WorkerState<K, R> {
    fn now_if_measured(&self) -> Option<Duration> {
        self.metrics.as_ref().map(|_| self.options.clock.now())
    }

    fn report_abandoned(&self, key: &ObjectKey, attempts: u32, result: &ReconcileResult) {
        let Some(hook) = &self.options.on_abandon else { return };
        let reason = match result {
            ReconcileResult::Returned(Err(error)) => AbandonReason::Error(error),
            ReconcileResult::Panicked(panic) => AbandonReason::Panic(panic_message(&**panic)),
            ReconcileResult::TimedOut(timeout) => AbandonReason::Timeout(*timeout),
            // Success and cancellation are not reasons to abandon a key.
            ReconcileResult::Returned(Ok(_)) | ReconcileResult::Cancelled => return,
        };
        hook(&AbandonedKey { controller: &self.options.name, key, attempts, reason });
    }

    fn report_hot_loop(&self, key: ObjectKey, evidence: HotLoopEvidence) {
        let HotLoopEvidence { reconciles, from_own_events, within, writes } = evidence;
        let controller = self.options.name.clone();
        let hot_loop = HotLoop { controller, key, reconciles, from_own_events, within, writes };
        warn!(
            controller = &*hot_loop.controller,
            key = hot_loop.key.as_str(),
            evidence = %hot_loop,
            "hot loop detected: the key triggers its own reconciles; write only if the object differs from the wanted state"
        );
        if let Some(metrics) = &self.metrics {
            metrics.hot_loop();
        }
        if let Some(hook) = &self.options.on_hot_loop {
            hook(&hot_loop);
        }
    }
}

impl ReconcileResult {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Returned(Ok(action)) => Outcome::Succeeded(*action),
            Self::Returned(Err(error)) => Outcome::Failed(error.class()),
            Self::Panicked(_) => Outcome::Panicked,
            Self::TimedOut(_) => Outcome::TimedOut,
            Self::Cancelled => Outcome::Cancelled,
        }
    }

    /// Logs the outcome of a reconcile in its span. `attempt` counts from the last success; without a delay,
    /// a failed key is not retried.
    fn log(&self, retry_in: Option<Duration>, attempt: u32) {
        let retry_in = retry_in.map(|delay| format!("{delay:.1?}"));
        match (self, retry_in) {
            (Self::Returned(Ok(_)), _) => debug!("reconciled"),
            (Self::Cancelled, _) => debug!("reconcile cancelled; controller is stopping"),
            (Self::Returned(Err(error)), Some(retry_in)) if error.class() == ErrorClass::Conflict => {
                debug!(error = %error.chain(), %retry_in, "reconcile conflicted with another write; retrying");
            }
            (Self::Returned(Err(error)), Some(retry_in)) => {
                warn!(error = %error.chain(), %retry_in, attempt, "reconcile failed; retrying");
            }
            (Self::Returned(Err(error)), None) => {
                error!(error = %error.chain(), attempt, "reconcile failed; not retrying");
            }
            (Self::Panicked(panic), Some(retry_in)) => {
                error!(panic = panic_message(&**panic), %retry_in, attempt, "reconcile panicked; retrying");
            }
            (Self::Panicked(panic), None) => {
                error!(panic = panic_message(&**panic), attempt, "reconcile panicked; not retrying");
            }
            (Self::TimedOut(timeout), Some(retry_in)) => {
                warn!(?timeout, %retry_in, attempt, "reconcile timed out; retrying");
            }
            (Self::TimedOut(timeout), None) => {
                error!(?timeout, attempt, "reconcile timed out; not retrying");
            }
        }
    }
}
