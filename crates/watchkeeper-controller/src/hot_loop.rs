//! Detection of keys that trigger their own reconciles endlessly.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use watchkeeper_informer::ObjectKey;

/// The limits above which a key that triggers itself is reported.
///
/// A reconcile counts if only the controller itself caused it, and it wrote again:
///
/// - its only causes were events of this controller's own writes for the same key, and it wrote something; or
/// - its only cause was a requeue that it had requested, and none of its writes changed anything.
///
/// A controller whose writes converge has a few such reconciles for each external change, and then none. A
/// controller that writes a new timestamp each time, or that overwrites its own fields, repeats them endlessly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotLoopLimits {
    /// The number of such reconciles of one key, within the window, that is reported. Defaults to 10; the
    /// minimum is 1.
    pub reconciles: u32,
    /// The window. Defaults to one minute.
    pub window: Duration,
}

impl HotLoopLimits {
    /// Creates limits from a number of reconciles and a window.
    pub fn new(reconciles: u32, window: Duration) -> Self {
        Self { reconciles: reconciles.max(1), window }
    }
}

impl Default for HotLoopLimits {
    fn default() -> Self {
        Self::new(10, Duration::from_mins(1))
    }
}

/// A key that triggers itself, with the evidence. Reported once, until the key has been quiet for a whole
/// window.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotLoop {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// The key of the object.
    pub key: ObjectKey,
    /// The number of reconciles that the key caused itself.
    pub reconciles: u32,
    /// The number of these reconciles whose only causes were events of own writes.
    pub from_own_events: u32,
    /// The time in which they happened.
    pub within: Duration,
    /// The writes of these reconciles, by resource.
    pub writes: BTreeMap<Arc<str>, WriteCount>,
}

/// The number of writes to one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriteCount {
    /// The number of all writes.
    pub total: u32,
    /// The number of writes that changed nothing: the resourceVersion was the same before and after.
    pub no_ops: u32,
}

impl fmt::Display for HotLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, key, reconciles, from_own_events, within, writes } = self;
        write!(
            f,
            "{controller} reconciled {key} {reconciles} times in {within:?} without an external cause, {from_own_events} of them \
             because of its own writes"
        )?;
        for (resource, WriteCount { total, no_ops }) in writes {
            write!(f, "; {total} writes of {resource}, of which {no_ops} changed nothing")?;
        }
        Ok(())
    }
}

/// The origin of a reconcile, for hot-loop detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An external or unknown cause.
    External,
    /// Only events of the controller's own writes.
    OwnEvent,
    /// Only a requeue that the reconciler requested.
    Requeue,
}

/// A write made by a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedWrite {
    pub(crate) resource: Arc<str>,
    pub(crate) is_no_op: bool,
}

/// The hot-loop history of one key. Pure: time and events in, possibly a report out.
#[derive(Debug, Default)]
pub(crate) struct HotLoopDetector {
    /// The reconciles that count, oldest first: those within the window, at most the last
    /// `limits.reconciles`.
    counted: VecDeque<CountedReconcile>,
    is_reported: bool,
}

#[derive(Debug)]
struct CountedReconcile {
    at: Duration,
    is_own_event: bool,
    writes: Vec<CountedWrite>,
}

/// The evidence of a report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HotLoopEvidence {
    pub(crate) reconciles: u32,
    pub(crate) from_own_events: u32,
    pub(crate) within: Duration,
    pub(crate) writes: BTreeMap<Arc<str>, WriteCount>,
}

impl HotLoopDetector {
    /// Records the end of a reconcile. Returns the evidence when the limit is reached, once per episode.
    pub(crate) fn reconciled(
        &mut self,
        now: Duration,
        origin: Origin,
        writes: Vec<CountedWrite>,
        limits: HotLoopLimits,
    ) -> Option<HotLoopEvidence> {
        self.expire(now, limits);
        let counts = match origin {
            Origin::External => false,
            Origin::OwnEvent => !writes.is_empty(),
            Origin::Requeue => !writes.is_empty() && writes.iter().all(|write| write.is_no_op),
        };
        if !counts {
            return None;
        }
        self.counted.push_back(CountedReconcile {
            at: now,
            is_own_event: origin == Origin::OwnEvent,
            writes,
        });
        if self.counted.len() > limits.reconciles as usize {
            self.counted.pop_front();
        }
        if self.is_reported || self.counted.len() < limits.reconciles as usize {
            return None;
        }
        self.is_reported = true;
        Some(self.evidence(now))
    }

    /// Returns whether the history is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Removes reconciles before the window. When none is left, the episode is over.
    pub(crate) fn expire(&mut self, now: Duration, limits: HotLoopLimits) {
        while self.counted.front().is_some_and(|counted| now.saturating_sub(counted.at) >= limits.window) {
            self.counted.pop_front();
        }
        self.is_reported &= !self.counted.is_empty();
    }

    fn evidence(&self, now: Duration) -> HotLoopEvidence {
        let mut writes: BTreeMap<Arc<str>, WriteCount> = BTreeMap::new();
        for write in self.counted.iter().flat_map(|counted| &counted.writes) {
            let sum = writes.entry(Arc::clone(&write.resource)).or_default();
            sum.total += 1;
            sum.no_ops += u32::from(write.is_no_op);
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        HotLoopEvidence {
            reconciles: count(self.counted.len()),
            from_own_events: count(self.counted.iter().filter(|counted| counted.is_own_event).count()),
            within: self.counted.front().map_or(Duration::ZERO, |first| now.saturating_sub(first.at)),
            writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: HotLoopLimits = HotLoopLimits { reconciles: 3, window: Duration::from_mins(1) };

    fn write(resource: &str, is_no_op: bool) -> CountedWrite {
        CountedWrite { resource: resource.into(), is_no_op }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_reconcile_counts_when_the_key_caused_it_and_it_wrote() {
        let (real, no_op) = (write("foos", false), write("foos", true));
        let cases = [
            (Origin::External, vec![real.clone()], false),
            (Origin::OwnEvent, vec![], false),
            (Origin::OwnEvent, vec![real.clone()], true),
            (Origin::OwnEvent, vec![no_op.clone()], true),
            (Origin::Requeue, vec![], false),
            (Origin::Requeue, vec![real.clone()], false),
            (Origin::Requeue, vec![real, no_op.clone()], false),
            (Origin::Requeue, vec![no_op], true),
        ];
        for (origin, writes, counts) in cases {
            let mut track = HotLoopDetector::default();
            track.reconciled(seconds(1), origin, writes.clone(), LIMITS);
            assert_eq!(!track.is_empty(), counts, "{origin:?} {writes:?}");
        }
    }

    #[test]
    fn a_report_contains_the_writes_and_is_made_once_per_episode() {
        let mut track = HotLoopDetector::default();
        let mut own_event = |at, writes| track.reconciled(seconds(at), Origin::OwnEvent, writes, LIMITS);
        assert_eq!(own_event(1, vec![write("foos", false)]), None);
        assert_eq!(own_event(2, vec![write("foos", true), write("pods", false)]), None);
        let evidence = own_event(4, vec![write("foos", false)]).unwrap();
        let foos = WriteCount { total: 3, no_ops: 1 };
        let pods = WriteCount { total: 1, no_ops: 0 };
        assert_eq!(evidence.writes, BTreeMap::from([("foos".into(), foos), ("pods".into(), pods)]));
        assert_eq!((evidence.reconciles, evidence.from_own_events, evidence.within), (3, 3, seconds(3)));
        for at in 5..100 {
            assert_eq!(own_event(at, vec![write("foos", false)]), None, "already reported");
        }
        assert_eq!(own_event(160, vec![write("foos", false)]), None, "a new episode begins");
        assert_eq!(own_event(161, vec![write("foos", false)]), None);
        assert!(own_event(162, vec![write("foos", false)]).is_some());
    }

    proptest! {
        /// Compares with a list of all events.
        #[test]
        fn a_report_is_made_when_the_limit_is_reached_for_the_first_time_in_an_episode(
            steps in prop::collection::vec((0..40_u64, prop_oneof![
                Just(Origin::External), Just(Origin::OwnEvent), Just(Origin::Requeue),
            ], any::<bool>()), 0..80)
        ) {
            let mut track = HotLoopDetector::default();
            let (mut now, mut all, mut is_reported) = (0, Vec::new(), false);
            for (pause, origin, is_no_op) in steps {
                now += pause;
                all.retain(|at| now - at < 60);
                is_reported &= !all.is_empty();
                let counts = origin == Origin::OwnEvent || (origin == Origin::Requeue && is_no_op);
                if counts {
                    all.push(now);
                }
                let expected = counts && all.len() >= 3 && !is_reported;
                is_reported |= expected;
                let report = track.reconciled(seconds(now), origin, vec![write("foos", is_no_op)], LIMITS);
                prop_assert_eq!(report.is_some(), expected);
            }
        }
    }
}
