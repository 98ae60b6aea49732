//! Random sequences of calls, each result and figure compared with those of the reference queue.

use std::{sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use proptest::prelude::*;
use watchkeeper_workqueue::{
    AddOptions, Admission, Cause, Causes, DurationHistogram, Item, ManualClock, Priority, WorkQueue,
    limiter::ItemExponential, prometheus::QueueMetrics,
};

use crate::{
    reference::{Entry, Figures, Key, Outcome, Reference, STARVATION_LIMIT, Wanted},
    scrape,
};

#[derive(Debug, Clone)]
enum Call {
    Add { key: Key, priority: i8, cause: Option<Cause>, when: When },
    Get,
    Finish { which: usize, say: Say },
    Cancel(Key),
    Postpone(Key, u64),
    Forget(Key),
    Advance(u64),
    Scrape,
    Shutdown,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Now,
    Immediately,
    After(u64),
    RateLimited,
}

#[derive(Debug, Clone, Copy)]
enum Say {
    Done,
    Forget,
    Retry,
    RequeueAfter(u64),
    PutBack(u64),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let key = || 0..5_u8;
    let millis = || prop_oneof![Just(0_u64), 1..60_u64];
    let when = prop_oneof![
        4 => Just(When::Now),
        1 => Just(When::Immediately),
        3 => millis().prop_map(When::After),
        2 => Just(When::RateLimited),
    ];
    let cause = prop_oneof![
        Just(None),
        Just(Some(Cause::Resync)),
        (0..12_u8).prop_map(|kind| Some(Cause::Event(Arc::from(format!("kind {kind}"))))),
    ];
    let say = prop_oneof![
        1 => Just(Say::Done),
        2 => Just(Say::Forget),
        3 => Just(Say::Retry),
        1 => millis().prop_map(Say::RequeueAfter),
        1 => millis().prop_map(Say::PutBack),
    ];
    let priority = prop_oneof![3 => Just(0_i8), 1 => Just(-100), 1 => Just(7)];
    let call = prop_oneof![
        12 => (key(), priority, cause, when)
            .prop_map(|(key, priority, cause, when)| Call::Add { key, priority, cause, when }),
        8 => Just(Call::Get),
        8 => (any::<usize>(), say).prop_map(|(which, say)| Call::Finish { which, say }),
        1 => key().prop_map(Call::Cancel),
        1 => (key(), millis()).prop_map(|(key, millis)| Call::Postpone(key, millis)),
        1 => key().prop_map(Call::Forget),
        4 => (0..40_u64).prop_map(Call::Advance),
        2 => Just(Call::Scrape),
    ];
    let ending = prop_oneof![4 => Just(None), 1 => Just(Some(Call::Shutdown))];
    (prop::collection::vec(call.clone(), 1..120), ending, prop::collection::vec(call, 0..30)).prop_map(
        |(mut calls, ending, after)| {
            calls.extend(ending);
            calls.extend(after);
            calls
        },
    )
}

/// Returns the causes that an item shows for these adds: each different cause once, of retries the last, up to the limit.
fn shown(causes: &[Cause]) -> (Vec<Cause>, u32) {
    let mut shown: Vec<Cause> = Vec::new();
    for cause in causes {
        let is_retry = |kept: &Cause| matches!((kept, cause), (Cause::Retry(_), Cause::Retry(_)));
        match shown.iter().position(is_retry) {
            Some(place) => shown[place] = cause.clone(),
            None if shown.contains(cause) || shown.len() == Causes::CAP => {}
            None => shown.push(cause.clone()),
        }
    }
    (shown, u32::try_from(causes.len()).expect("few"))
}

/// The queue, registered for metrics, and the reference.
struct Pair {
    queue: WorkQueue<Key>,
    registry: Registry,
    clock: ManualClock,
    reference: Reference,
    held: Vec<(Item<'static, Key>, Entry)>,
}

impl Pair {
    fn new() -> Self {
        let clock = ManualClock::new();
        let limiter = ItemExponential::new(Duration::from_millis(10), Duration::from_millis(80));
        let queue = WorkQueue::builder("model")
            .clock(clock.clone())
            .rate_limiter(limiter)
            .starvation_limit(STARVATION_LIMIT)
            .build();
        let mut registry = Registry::default();
        QueueMetrics::register(&mut registry).add_queue(&queue).expect("the only queue");
        let (reference, held) = (Reference::default(), Vec::new());
        Self { queue, registry, clock, reference, held }
    }

    fn run(&mut self, call: Call) -> Result<(), TestCaseError> {
        match call {
            Call::Add { key, priority, cause, when } => self.add(key, priority, cause, when)?,
            Call::Get => self.get()?,
            Call::Finish { which, say } => self.finish(which, say)?,
            Call::Cancel(key) => prop_assert_eq!(self.queue.cancel(&key), self.reference.cancel(key)),
            Call::Postpone(key, millis) => {
                let postponed = self.queue.postpone(&key, Duration::from_millis(millis));
                let until = self.reference.now + millis;
                prop_assert_eq!(postponed, self.reference.postpone(key, until));
            }
            Call::Forget(key) => {
                self.queue.forget(&key);
                self.reference.entries.entry(key).and_modify(|entry| entry.failures = 0);
            }
            Call::Advance(millis) => {
                self.clock.advance(Duration::from_millis(millis));
                self.reference.advance(millis);
            }
            Call::Scrape => self.compare_scrape()?,
            Call::Shutdown => {
                let mut dropped = self.queue.shutdown();
                dropped.sort_unstable();
                prop_assert_eq!(dropped, self.reference.shut_down());
            }
        }
        self.compare_figures()
    }

    fn add(&mut self, key: Key, priority: i8, cause: Option<Cause>, when: When) -> Result<(), TestCaseError> {
        let options = AddOptions::new().priority(Priority(priority));
        let options = cause.clone().map_or(options.clone(), |cause| options.cause(cause));
        let (options, wanted) = match when {
            When::Now => (options, Wanted::Now),
            When::Immediately => (options.immediately(), Wanted::Immediately),
            When::After(millis) => (options.after(Duration::from_millis(millis)), self.after(millis)),
            When::RateLimited => (options.rate_limited(), self.backoff(key)),
        };
        let ours = self.queue.add_with(key, options);
        prop_assert_eq!(ours, self.reference.add(key, wanted, priority, cause));
        Ok(())
    }

    fn get(&mut self) -> Result<(), TestCaseError> {
        match (self.queue.try_get().map(Item::into_owned), self.reference.get()) {
            (None, None) => Ok(()),
            (Some(item), Some((key, entry))) => {
                prop_assert_eq!(*item.key(), key);
                prop_assert_eq!(item.priority().0, entry.priority);
                prop_assert_eq!(item.failures(), entry.failures);
                let (causes, adds) = shown(&entry.causes);
                prop_assert_eq!(item.causes().iter().cloned().collect::<Vec<_>>(), causes);
                prop_assert_eq!(item.causes().adds(), adds);
                prop_assert!(
                    self.held.iter().all(|(other, _)| *other.key() != key),
                    "one key in two workers"
                );
                self.held.push((item, entry));
                Ok(())
            }
            (ours, reference) => {
                Err(TestCaseError::fail(format!("got {ours:?}, the reference {reference:?}")))
            }
        }
    }

    fn finish(&mut self, which: usize, say: Say) -> Result<(), TestCaseError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let (item, entry) = self.held.swap_remove(which % self.held.len());
        let key = *item.key();
        let outcome = match say {
            Say::Done => Outcome::Done,
            Say::Forget => Outcome::Forget,
            Say::Retry => Outcome::Retry(self.backoff(key)),
            Say::RequeueAfter(millis) => Outcome::Requeue(Wanted::At(self.reference.now + millis)),
            Say::PutBack(millis) => Outcome::PutBack(Wanted::At(self.reference.now + millis)),
        };
        let admission = match say {
            Say::Done => {
                item.done();
                None
            }
            Say::Forget => {
                item.forget();
                None
            }
            Say::Retry => Some(item.retry()),
            Say::RequeueAfter(millis) => Some(item.requeue_after(Duration::from_millis(millis))),
            Say::PutBack(millis) => Some(item.put_back(Duration::from_millis(millis))),
        };
        let expected = self.reference.finish(key, entry.causes, outcome);
        if let Some(admission) = admission {
            prop_assert_eq!(admission, expected.unwrap_or(Admission::Refused));
        }
        Ok(())
    }

    /// 10 ms, doubling with each failure, at most 80 ms.
    fn backoff(&self, key: Key) -> Wanted {
        Wanted::BackedOffUntil(self.reference.now + (10 << self.failures(key).min(3)))
    }

    fn after(&self, millis: u64) -> Wanted {
        if millis == 0 { Wanted::Now } else { Wanted::At(self.reference.now + millis) }
    }

    fn failures(&self, key: Key) -> u32 {
        self.reference.entries.get(&key).map_or(0, |entry| entry.failures)
    }

    fn compare_figures(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.queue.len(), self.reference.queued());
        prop_assert_eq!(figures(&self.queue), self.reference.figures());
        for key in 0..5 {
            prop_assert_eq!(self.queue.num_requeues(&key), self.failures(key));
        }
        Ok(())
    }

    /// Compares the text of a scrape with the figures of the reference.
    fn compare_scrape(&self) -> Result<(), TestCaseError> {
        let Figures { depth, adds, retries, queue_durations, work_durations, .. } = self.reference.figures();
        let text = scrape(&self.registry);
        let own = "controller=\"model\",name=\"model\"";
        let depths = depth
            .iter()
            .map(|(priority, keys)| format!("workqueue_depth{{{own},priority=\"{priority}\"}} {keys}\n"));
        let counts = [
            ("adds_total", adds),
            ("retries_total", retries),
            ("queue_duration_seconds_count", queue_durations.0),
            ("work_duration_seconds_count", work_durations.0),
        ];
        for line in counts
            .map(|(name, count)| format!("workqueue_{name}{{{own}}} {count}\n"))
            .into_iter()
            .chain(depths)
        {
            prop_assert!(text.contains(&line), "no {:?} in:\n{}", line, text);
        }
        Ok(())
    }
}

fn figures(queue: &WorkQueue<Key>) -> Figures {
    let stats = queue.stats();
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).expect("short");
    let durations = |histogram: &DurationHistogram| (histogram.count(), millis(histogram.sum()));
    Figures {
        depth: stats
            .depth
            .iter()
            .filter(|(_, keys)| *keys > 0)
            .map(|(priority, keys)| (priority.0, *keys))
            .collect(),
        waiting: stats.waiting,
        processing: stats.processing,
        unfinished: millis(stats.unfinished_work),
        longest: millis(stats.longest_running),
        adds: stats.adds,
        retries: stats.retries,
        queue_durations: durations(&stats.queue_duration),
        work_durations: durations(&stats.work_duration),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_result_and_figure_is_that_of_the_reference_queue(calls in calls()) {
        let mut pair = Pair::new();
        for call in calls {
            pair.run(call)?;
        }
        pair.compare_scrape()?;
    }
}
