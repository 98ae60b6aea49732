//! A deduplicating work queue with delays.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    hash::Hash,
    time::Duration,
};

/// The delay after the first failure. Doubles with each further failure.
const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest delay.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A first-in, first-out queue in which a key is queued at most once. Keys can be added with a due time, and are retried
/// with backoff after failures.
///
/// Times are durations since a moment of the caller's choice.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    ready: VecDeque<K>,
    is_ready: HashSet<K>,
    /// The due time of each delayed key; the inverse of the set ordered by due time.
    due_of: HashMap<K, Duration>,
    later: BTreeSet<(Duration, K)>,
    failures: BTreeMap<K, u32>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            is_ready: HashSet::new(),
            due_of: HashMap::new(),
            later: BTreeSet::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// Enqueues `key`, unless it is already queued. A delayed key becomes ready at once.
    pub(crate) fn add(&mut self, key: K) {
        if let Some(due) = self.due_of.remove(&key) {
            self.later.remove(&(due, key.clone()));
        }
        if self.is_ready.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Enqueues `key` at `due`, unless it is already queued or due earlier.
    pub(crate) fn add_at(&mut self, key: K, due: Duration) {
        if self.is_ready.contains(&key) {
            return;
        }
        match self.due_of.get(&key) {
            Some(&known) if known <= due => return,
            Some(&known) => {
                self.later.remove(&(known, key.clone()));
            }
            None => {}
        }
        self.due_of.insert(key.clone(), due);
        self.later.insert((due, key));
    }

    /// Requeues `key` after a delay that grows with its failures.
    pub(crate) fn retry(&mut self, key: K, now: Duration) {
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = FIRST_WAIT.saturating_mul(1 << (*failures).min(20)).min(LONGEST_WAIT);
        *failures += 1;
        self.add_at(key, now + wait);
    }

    /// Resets the failure count of `key`.
    pub(crate) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Resets the failure count of `key` if its work `is_done`; otherwise requeues it with backoff.
    pub(crate) fn finish(&mut self, key: K, is_done: bool, now: Duration) {
        if is_done {
            self.forget(&key);
        } else {
            self.retry(key, now);
        }
    }

    /// Dequeues the next key that is ready or due at `now`.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<K> {
        while let Some((due, _)) = self.later.first() {
            if *due > now {
                break;
            }
            if let Some((_, key)) = self.later.pop_first() {
                self.due_of.remove(&key);
                self.add(key);
            }
        }
        let key = self.ready.pop_front()?;
        self.is_ready.remove(&key);
        Some(key)
    }

    /// Returns when [`Queue::pop`] will return a key: zero for now, a time, or none until a key is added.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        if self.ready.is_empty() { self.later.first().map(|(due, _)| *due) } else { Some(Duration::ZERO) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    #[test]
    fn a_key_is_queued_once_and_in_order() {
        let mut queue = Queue::default();
        for key in ["b", "a", "b"] {
            queue.add(key);
        }
        assert_eq!([queue.pop(START), queue.pop(START), queue.pop(START)], [Some("b"), Some("a"), None]);
    }

    #[test]
    fn the_backoff_of_a_failing_key_grows_until_it_is_forgotten() {
        let mut queue = Queue::default();
        let mut waits = Vec::new();
        let mut now = START;
        for _ in 0..16 {
            queue.retry("a", now);
            let due = queue.next_due().unwrap();
            assert_eq!(queue.pop(due.saturating_sub(Duration::from_millis(1))), None);
            assert_eq!(queue.pop(due), Some("a"));
            waits.push(due.saturating_sub(now));
            now = due;
        }
        assert_eq!(waits[..3], [5, 10, 20].map(Duration::from_millis));
        assert_eq!(waits[15], Duration::from_mins(1));
        queue.forget(&"a");
        queue.retry("a", now);
        assert_eq!(queue.next_due(), Some(now + Duration::from_millis(5)));
    }

    #[test]
    fn adding_a_key_cancels_its_delayed_requeue() {
        let mut queue = Queue::default();
        queue.add_at("a", Duration::from_secs(3));
        queue.add_at("a", Duration::from_secs(2));
        queue.add_at("a", Duration::from_secs(4));
        assert_eq!(queue.next_due(), Some(Duration::from_secs(2)));
        queue.add("a");
        queue.add_at("a", Duration::from_secs(1));
        assert_eq!(queue.pop(START), Some("a"));
        assert_eq!((queue.pop(Duration::from_secs(9)), queue.next_due()), (None, None));
    }
}
