//! A worker: dequeues a key, reconciles it, and applies the outcome.

use std::{
    any::Any,
    future::pending,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt as _;
use tracing::{Instrument as _, Level, Span, debug, error, info_span, level_filters::LevelFilter, warn};
use watchkeeper_informer::{Object, ObjectKey};
use watchkeeper_workqueue::{AddOptions, Cause, Item};

use super::{
    options::{GaveUp, GiveUpReason},
    reconcile_loop::Shared,
};
use crate::{
    Action, Context, ErrorClass, Freshness, HotLoop, ReconcileError, Reconciler, Request,
    context::{Room, Signals},
    hot_loop::Evidence,
    memory::{Begin, End, Missed},
    outcome::{Outcome, Verdict, decide},
};

/// Processes keys until a stop is requested.
pub(super) async fn work<K: Object, R: Reconciler<K>>(shared: &Shared<K, R>, signals: &Arc<Signals>) {
    let mut room = None;
    // Waiting for the stop signal takes a lock, so it is done only when the queue is empty.
    while !signals.is_stopping() {
        let item = tokio::select! {
            biased;
            item = shared.queue.get() => item,
            () = signals.stop.cancelled() => return,
        };
        let Some(item) = item else { return };
        // Panics of the reconciler are caught further inside; these come from hooks and destructors.
        if let Err(panic) = AssertUnwindSafe(process(shared, signals, &mut room, item)).catch_unwind().await {
            error!(
                controller = &*shared.options.name,
                panic = panic_message(&*panic),
                "hook or destructor panicked"
            );
        }
        // A reconciler that never waits would starve other tasks of the thread.
        tokio::task::coop::consume_budget().await;
    }
}

/// The end of a reconcile, with its result.
enum Said {
    Returned(Result<Action, ReconcileError>),
    Panicked(Box<dyn Any + Send>),
    TimedOut(Duration),
    Cancelled,
}

async fn process<K: Object, R: Reconciler<K>>(
    shared: &Shared<K, R>,
    signals: &Arc<Signals>,
    room: &mut Option<Room>,
    item: Item<'_, ObjectKey>,
) {
    let (freshness, missed) = match shared.memory.begin(item.key(), item.causes()) {
        Begin::Now(freshness) => (freshness, Vec::new()),
        Begin::Late { waited, missed } => (Freshness::TimedOut(waited), missed),
        Begin::Wait { look_after, is_first } => {
            if is_first {
                debug!(
                    controller = &*shared.options.name,
                    key = item.key().as_str(),
                    "waiting for own writes to be observed"
                );
            }
            item.put_back(look_after);
            return;
        }
    };
    let id = shared.reconciles.fetch_add(1, Ordering::Relaxed) + 1;
    let span = span_of(shared, &item, id);
    if let Freshness::TimedOut(waited) = freshness {
        span.in_scope(|| missed.iter().for_each(|missed| log_missed(missed, waited)));
    }
    let began = shared.now_if_measured();
    let _at_work = shared.metrics.as_ref().map(|metrics| {
        metrics.waited(freshness);
        metrics.at_work()
    });
    let room_now = room.take().unwrap_or_else(|| Room::new(&shared.context, signals));
    let context = Context::new(room_now, item.key(), id, freshness);
    let said = reconcile(shared, signals, &item, &context).instrument(span.clone()).await;
    *room = context.end();
    let _in_span = span.enter();
    conclude(shared, item, &said, began);
}

fn log_missed(missed: &Missed, waited: Duration) {
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
fn span_of<K: Object, R>(shared: &Shared<K, R>, item: &Item<'_, ObjectKey>, id: u64) -> Span {
    // Not `enabled!`, which ignores filters by span name or field.
    if LevelFilter::current() < Level::INFO {
        return Span::none();
    }
    info_span!(
        "reconcile",
        controller = &*shared.options.name,
        controller_kind = shared.kind.as_str(),
        namespace = item.key().namespace(),
        name = item.key().name(),
        reconcile_id = id,
        causes = %item.causes(),
        failures = item.failures(),
    )
}

/// Runs the reconciler on a key until it returns or is dropped.
async fn reconcile<K: Object, R: Reconciler<K>>(
    shared: &Shared<K, R>,
    signals: &Signals,
    item: &Item<'_, ObjectKey>,
    context: &Context,
) -> Said {
    let request = Request {
        key: item.key().clone(),
        object: shared.cache.get(item.key()),
        causes: item.causes().clone(),
        failures: item.failures(),
        priority: item.priority(),
    };
    let timeout = shared.options.timeout;
    let too_long = async {
        match timeout {
            Some(timeout) => {
                let clock = &shared.options.clock;
                clock.sleep_until(clock.now().saturating_add(timeout)).await;
                timeout
            }
            None => pending().await,
        }
    };
    // Called inside an async block, so that a panic before the future exists is caught too.
    let given = context.clone();
    let reconcile = async move { shared.reconciler.reconcile(request, given).await };
    let said = tokio::select! {
        biased;
        returned = AssertUnwindSafe(reconcile).catch_unwind() => match returned {
            Ok(returned) => Said::Returned(returned),
            Err(panic) => Said::Panicked(panic),
        },
        () = signals.abort.cancelled() => Said::Cancelled,
        timeout = too_long => Said::TimedOut(timeout),
    };
    if !matches!(said, Said::Returned(_)) {
        context.cancel();
    }
    said
}

/// Applies the outcome of a reconcile to the key.
fn conclude<K: Object, R: Reconciler<K>>(
    shared: &Shared<K, R>,
    item: Item<'_, ObjectKey>,
    said: &Said,
    began: Option<Duration>,
) {
    let outcome = said.outcome();
    if let Some((metrics, began)) = shared.metrics.as_ref().zip(began) {
        metrics.reconciled(outcome, shared.options.clock.now().saturating_sub(began));
    }
    let end = match outcome {
        Outcome::Failed(ErrorClass::Conflict) => End::Conflict,
        _ => End::Other,
    };
    // Done before the key is returned to the queue, while this worker still owns it.
    let (conflicts, evidence) = shared.memory.end(item.key(), item.causes(), end);
    let verdict = decide(outcome, item.failures(), conflicts, shared.options.retry_limit);
    let tries = item.failures().saturating_add(1);
    match verdict {
        // Logged together with the delay, which the rate limiter chooses when the key is requeued.
        Verdict::Retry => {}
        Verdict::PutBack(delay) => said.log(Some(delay), tries),
        _ => said.log(None, tries),
    }
    if verdict == Verdict::Forget && evidence.is_none() {
        item.forget();
        return;
    }
    let key = item.key().clone();
    match verdict {
        Verdict::Forget => item.forget(),
        Verdict::Requeue(requeue) => match requeue.priority {
            None => _ = item.requeue_after(requeue.after),
            Some(priority) => {
                let options = AddOptions::new().after(requeue.after).priority(priority).cause(Cause::Requeue);
                shared.queue.add_with(key.clone(), options);
                item.forget();
            }
        },
        Verdict::Retry => said.log(Some(item.retry_with_delay().1), tries),
        Verdict::PutBack(delay) => _ = item.put_back(delay),
        Verdict::Abandon => {
            item.forget();
            shared.gave_up(&key, tries, said);
        }
        Verdict::GiveUp => {
            item.forget();
            if let Some(metrics) = &shared.metrics {
                metrics.gave_up();
            }
            shared.gave_up(&key, tries, said);
        }
    }
    if let Some(evidence) = evidence {
        shared.found_hot_loop(key, evidence);
    }
}

impl<K: Object, R> Shared<K, R> {
    fn now_if_measured(&self) -> Option<Duration> {
        self.metrics.as_ref().map(|_| self.options.clock.now())
    }

    fn gave_up(&self, key: &ObjectKey, tries: u32, said: &Said) {
        let Some(hook) = &self.options.on_give_up else { return };
        let reason = match said {
            Said::Returned(Err(error)) => GiveUpReason::Error(error),
            Said::Panicked(panic) => GiveUpReason::Panic(panic_message(&**panic)),
            Said::TimedOut(timeout) => GiveUpReason::Timeout(*timeout),
            // Success and cancellation are not reasons to give up.
            Said::Returned(Ok(_)) | Said::Cancelled => return,
        };
        hook(&GaveUp { controller: &self.options.name, key, tries, reason });
    }

    fn found_hot_loop(&self, key: ObjectKey, evidence: Evidence) {
        let Evidence { reconciles, echoes, within, writes } = evidence;
        let found =
            HotLoop { controller: self.options.name.clone(), key, reconciles, echoes, within, writes };
        warn!("hot loop detected: {found}");
        if let Some(metrics) = &self.metrics {
            metrics.hot_loop();
        }
        if let Some(hook) = &self.options.on_hot_loop {
            hook(&found);
        }
    }
}

impl Said {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Returned(Ok(action)) => Outcome::Worked(*action),
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

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}
