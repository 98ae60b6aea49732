//! Counters of reflectors.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use watchkeeper_client::list_watch::WatchEvent;

/// The counters behind [`ReflectorStats`].
#[derive(Debug, Default)]
pub(crate) struct ReflectorCounters {
    pub(super) lists: AtomicU64,
    pub(super) streaming_lists: AtomicU64,
    /// Behind a lock, because relists are rare. The set of labels is fixed.
    pub(super) relists: Labelled,
    pub(super) watches: AtomicU64,
    pub(super) watch_restarts: Labelled,
    pub(super) added: AtomicU64,
    pub(super) modified: AtomicU64,
    pub(super) deleted: AtomicU64,
    pub(super) bookmarks: AtomicU64,
    pub(super) listed: AtomicU64,
    pub(super) reused: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) older_versions: AtomicU64,
    pub(super) epochs: AtomicU64,
    pub(super) streaming_fallbacks: AtomicU64,
    pub(super) history_checks: AtomicU64,
    pub(super) resyncs: AtomicU64,
    /// The time since the reflector was created in nanoseconds, plus one. Zero for never.
    last_received: AtomicU64,
}

/// Counters by label.
#[derive(Debug, Default)]
pub(super) struct Labelled(Mutex<BTreeMap<&'static str, u64>>);

impl Labelled {
    pub(super) fn add(&self, label: &'static str) {
        *self.0.lock().entry(label).or_default() += 1;
    }
}

/// The counters of a reflector since it was created, at one moment.
///
/// Counting costs an atomic addition and is always on. The counters are read one after the other, so they may
/// differ slightly in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReflectorStats {
    /// The number of lists that were started, paginated or streaming, including relists.
    pub lists: u64,
    /// The number of streaming lists that were started.
    pub streaming_lists: u64,
    /// The number of relists, by cause.
    pub relists: BTreeMap<&'static str, u64>,
    /// The number of watches that the server accepted.
    pub watches: u64,
    /// The number of watches that were resumed, by the reason why the previous one ended.
    pub watch_restarts: BTreeMap<&'static str, u64>,
    /// The number of ADDED events, including the initial events of streaming lists.
    pub added: u64,
    /// The number of MODIFIED events.
    pub modified: u64,
    /// The number of DELETED events.
    pub deleted: u64,
    /// The number of BOOKMARK events.
    pub bookmarks: u64,
    /// The number of objects received in pages.
    pub listed: u64,
    /// The number of listed objects that were already cached in that version and not decoded again.
    pub reused: u64,
    /// The number of received objects that could not be decoded or transformed.
    pub rejected: u64,
    /// The number of objects that are quarantined now.
    pub quarantined: u64,
    /// The number of lists and watches that failed.
    pub failures: u64,
    /// The number of times that the server sent an older version than before. Each was rejected.
    pub older_versions: u64,
    /// The number of times that the server's history was found to have been replaced.
    pub epochs: u64,
    /// The number of times that the server was found not to support streaming lists.
    pub streaming_fallbacks: u64,
    /// The number of verifications of the server's history.
    pub history_checks: u64,
    /// The number of resyncs.
    pub resyncs: u64,
    /// The time since something was last received from the server, or `None` for never.
    pub last_event_age: Option<Duration>,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl ReflectorCounters {
    pub(crate) fn received(&self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.last_received.store(nanos.saturating_add(1), Relaxed);
    }

    pub(crate) fn event<K>(&self, event: &WatchEvent<K>) {
        count(match event {
            WatchEvent::Added(_) => &self.added,
            WatchEvent::Modified(_) => &self.modified,
            WatchEvent::Deleted(_) => &self.deleted,
            WatchEvent::Bookmark(_) => &self.bookmarks,
        });
    }

    pub(crate) fn listed(&self) {
        count(&self.listed);
    }

    pub(crate) fn reused(&self) {
        count(&self.reused);
    }

    pub(crate) fn rejected(&self) {
        count(&self.rejected);
    }

    pub(crate) fn resynced(&self) {
        count(&self.resyncs);
    }

    pub(super) fn snapshot(&self, now: Duration, quarantined: usize) -> ReflectorStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let received = read(&self.last_received).checked_sub(1).map(Duration::from_nanos);
        ReflectorStats {
            lists: read(&self.lists),
            streaming_lists: read(&self.streaming_lists),
            relists: self.relists.0.lock().clone(),
            watches: read(&self.watches),
            watch_restarts: self.watch_restarts.0.lock().clone(),
            added: read(&self.added),
            modified: read(&self.modified),
            deleted: read(&self.deleted),
            bookmarks: read(&self.bookmarks),
            listed: read(&self.listed),
            reused: read(&self.reused),
            rejected: read(&self.rejected),
            quarantined: quarantined as u64,
            failures: read(&self.failures),
            older_versions: read(&self.older_versions),
            epochs: read(&self.epochs),
            streaming_fallbacks: read(&self.streaming_fallbacks),
            history_checks: read(&self.history_checks),
            resyncs: read(&self.resyncs),
            last_event_age: received.map(|received| now.saturating_sub(received)),
        }
    }
}
