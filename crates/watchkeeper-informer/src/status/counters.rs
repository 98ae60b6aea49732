//! What has been counted.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use watchkeeper_client::list_watch::WatchEvent;

/// The numbers behind [`CountersSnapshot`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(super) lists: AtomicU64,
    pub(super) streaming_lists: AtomicU64,
    /// Rare, and of a closed set of labels: a lock costs nothing here.
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
    pub(super) steps_back: AtomicU64,
    pub(super) epochs: AtomicU64,
    pub(super) streaming_given_up: AtomicU64,
    pub(super) probes: AtomicU64,
    pub(super) resyncs: AtomicU64,
    /// Nanoseconds since the reflector was made, plus one; zero for never.
    last_heard: AtomicU64,
}

/// Numbers by label.
#[derive(Debug, Default)]
pub(super) struct Labelled(Mutex<BTreeMap<&'static str, u64>>);

impl Labelled {
    pub(super) fn add(&self, label: &'static str) {
        *self.0.lock().entry(label).or_default() += 1;
    }
}

/// What a reflector has done since its start, as it was when asked. Counting costs an addition to an atomic number, so it is
/// always on; the numbers are read one after the other, so they may be a moment apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CountersSnapshot {
    /// Lists begun, as pages or as streams, the repeated ones included.
    pub lists: u64,
    /// Those of them begun as streams.
    pub streaming_lists: u64,
    /// Lists begun after the first, by why.
    pub relists: BTreeMap<&'static str, u64>,
    /// Watches the server agreed to.
    pub watches: u64,
    /// Watches resumed, by why the one before ended.
    pub watch_restarts: BTreeMap<&'static str, u64>,
    /// ADDED events, those that begin a stream included.
    pub added: u64,
    /// MODIFIED events.
    pub modified: u64,
    /// DELETED events.
    pub deleted: u64,
    /// BOOKMARK events.
    pub bookmarks: u64,
    /// Objects received in pages.
    pub listed: u64,
    /// Objects of lists that were held already in that version, and so were not decoded again.
    pub reused: u64,
    /// Objects received that could not be decoded or transformed.
    pub rejected: u64,
    /// Objects set aside now.
    pub quarantined: u64,
    /// Lists and watches that failed.
    pub failures: u64,
    /// Times the server sent something older than before. Each was refused.
    pub steps_back: u64,
    /// Times the server's versions began anew.
    pub epochs: u64,
    /// Times the server was found not to do lists as streams.
    pub streaming_given_up: u64,
    /// Times the server was asked which version it is at.
    pub probes: u64,
    /// Resyncs.
    pub resyncs: u64,
    /// How long ago the server was last heard of; none for never.
    pub last_event_age: Option<Duration>,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Counters {
    pub(crate) fn heard(&self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.last_heard.store(nanos.saturating_add(1), Relaxed);
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

    pub(super) fn snapshot(&self, now: Duration, quarantined: usize) -> CountersSnapshot {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let heard = read(&self.last_heard).checked_sub(1).map(Duration::from_nanos);
        CountersSnapshot {
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
            steps_back: read(&self.steps_back),
            epochs: read(&self.epochs),
            streaming_given_up: read(&self.streaming_given_up),
            probes: read(&self.probes),
            resyncs: read(&self.resyncs),
            last_event_age: heard.map(|heard| now.saturating_sub(heard)),
        }
    }
}
