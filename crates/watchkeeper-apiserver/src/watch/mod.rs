//! Watches: streams of the changes to the objects of a resource.

mod frame;
mod kind;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc, time::Duration, vec};

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::sync::watch;

pub(crate) use frame::{FrameType, Frames};
pub(crate) use kind::WatchedKind;

use crate::{
    Clock, Sleep,
    rest::errors,
    selector::Selector,
    status::ApiError,
    storage::{Event, EventType, Log, Object, Position, Storage},
};

/// The number of events taken from the log at a time, which amortizes the lock. The log returns fewer when events are large.
const BATCH: usize = 64;

/// The time before its end at which a watch sends a bookmark, so that the client can resume from there.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The start of a watch.
#[derive(Debug)]
pub(crate) struct Start {
    /// The initial objects in order, for watches that begin with the state.
    pub(crate) initial: Vec<Arc<Object>>,
    /// The version after which events follow.
    pub(crate) after: u64,
    /// Whether a bookmark marks the end of the initial objects.
    pub(crate) marks_initial_end: bool,
    /// Whether bookmarks are sent.
    pub(crate) sends_bookmarks: bool,
    /// The duration after which the watch ends.
    pub(crate) timeout: Duration,
    /// The time between bookmarks.
    pub(crate) bookmark_interval: Duration,
}

/// The scope of a watch.
#[derive(Debug)]
pub(crate) struct WatchScope {
    /// The prefix of the keys.
    pub(crate) prefix: String,
    /// The selector of the objects.
    pub(crate) selector: Selector,
}

/// A running watch.
///
/// A watch delivers every event of its scope exactly once and in order, or ends with an error frame. A client that falls
/// behind the history window receives such a frame and never misses an event silently.
#[derive(Debug)]
pub(crate) struct Watcher {
    scope: WatchScope,
    frames: Frames,
    source: Source,
    initial: vec::IntoIter<Arc<Object>>,
    after: u64,
    marks_initial_end: bool,
    sends_bookmarks: bool,
    pending: VecDeque<Arc<Event>>,
    has_ended: bool,
    timers: Timers,
    /// The shutdown signal of the server.
    shutdown: watch::Receiver<bool>,
    /// The custom kind of the watch; none for built-in kinds.
    kind: Option<WatchedKind>,
}

#[derive(Debug)]
struct Source {
    store: Arc<dyn Storage>,
    log: Arc<Log>,
    position: Position,
    newest_version: watch::Receiver<u64>,
}

struct Timers {
    timeout: Duration,
    clock: Arc<dyn Clock>,
    end: Sleep,
    bookmark: Sleep,
    bookmark_interval: Duration,
    last_bookmark: Duration,
}

impl Timers {
    fn new(clock: Arc<dyn Clock>, timeout: Duration, bookmark_interval: Duration) -> Self {
        let before_end = timeout.checked_sub(LAST_BOOKMARK).unwrap_or(timeout);
        Self {
            timeout,
            end: clock.sleep(timeout),
            bookmark: clock.sleep(bookmark_interval.min(before_end)),
            bookmark_interval,
            last_bookmark: clock.now() + before_end,
            clock,
        }
    }

    /// Schedules the next bookmark: after the interval, and once before the end.
    fn next_bookmark(&mut self) {
        let until_last = self.last_bookmark.saturating_sub(self.clock.now());
        let next = if until_last.is_zero() {
            self.bookmark_interval
        } else {
            until_last.min(self.bookmark_interval)
        };
        self.bookmark = self.clock.sleep(next);
    }
}

impl std::fmt::Debug for Timers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timers").field("bookmark_interval", &self.bookmark_interval).finish_non_exhaustive()
    }
}

enum WakeReason {
    Events,
    Bookmark,
    End,
}

impl Watcher {
    /// Creates a watch of `table`, or returns an error frame if the start is before the history window.
    pub(crate) fn new(
        store: Arc<dyn Storage>,
        table: &str,
        scope: WatchScope,
        frames: Frames,
        start: Start,
        clock: Arc<dyn Clock>,
        shutdown: watch::Receiver<bool>,
    ) -> Result<Self, Bytes> {
        let log = store.log(table);
        let position = log
            .position_after(start.after)
            .map_err(|lagged| frames.error(&too_old(start.after, lagged.oldest)))?;
        let newest_version = log.subscribe();
        let timers = Timers::new(clock, start.timeout, start.bookmark_interval);
        Ok(Self {
            scope,
            frames,
            source: Source { store, log, position, newest_version },
            initial: start.initial.into_iter(),
            after: start.after,
            marks_initial_end: start.marks_initial_end,
            sends_bookmarks: start.sends_bookmarks,
            pending: VecDeque::new(),
            has_ended: false,
            timers,
            shutdown,
            kind: None,
        })
    }

    /// Returns the duration after which the watch ends.
    pub(crate) fn timeout(&self) -> Duration {
        self.timers.timeout
    }

    /// Returns the same watch, ending when `kind` is no longer served, after the last event of its objects.
    #[must_use]
    pub(crate) fn while_served(mut self, kind: WatchedKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Returns the stream of frames, one line each.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(Box::new(self), |mut watcher| async move {
            let frame = watcher.next().await?;
            Some((frame, watcher))
        })
    }

    /// Waits for the next frame. Returns none when the watch is over.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready() {
                return Some(frame);
            }
            if self.has_ended {
                return None;
            }
            match self.wait().await {
                WakeReason::Events => {}
                WakeReason::End => return None,
                WakeReason::Bookmark => {
                    // Read before the log: if the log has no events left, everything up to this version has been sent.
                    let version = self.source.store.version();
                    let frame = self.ready();
                    if frame.is_some() {
                        return frame;
                    }
                    if !self.has_ended && version >= self.after {
                        return Some(self.frames.bookmark(version, false));
                    }
                }
            }
        }
    }

    /// Returns a frame that is available without waiting.
    fn ready(&mut self) -> Option<Bytes> {
        if let Some(object) = self.initial.next() {
            return Some(self.frames.object(FrameType::Added, &object, object.version));
        }
        if std::mem::take(&mut self.marks_initial_end) {
            return Some(self.frames.bookmark(self.after, true));
        }
        while !self.has_ended {
            while let Some(event) = self.pending.pop_front() {
                if let Some(frame) = self.frame(&event) {
                    return Some(frame);
                }
            }
            self.source.newest_version.mark_unchanged();
            let Source { log, position, .. } = &mut self.source;
            if let Err(lagged) = log.read(position, BATCH, &mut self.pending) {
                self.has_ended = true;
                return Some(self.frames.error(&too_old(self.after, lagged.oldest)));
            }
            if self.pending.is_empty() {
                break;
            }
        }
        None
    }

    /// Returns the frame of an event for this watch: none, the event itself, or an object that starts or ceases to match the
    /// selector.
    fn frame(&mut self, event: &Event) -> Option<Bytes> {
        if event.version <= self.after || !is_within(&event.object, &self.scope.prefix) {
            return None;
        }
        self.after = event.version;
        if self.scope.selector.is_empty() {
            return Some(self.frames.event(event));
        }
        let selector = &self.scope.selector;
        let is_selected = selector.matches(&event.object);
        let was_selected = match (&event.previous, event.change) {
            (Some(previous), _) => selector.matches(previous),
            (None, EventType::Deleted) => is_selected,
            (None, _) => false,
        };
        match (was_selected, is_selected, &event.previous) {
            (true, true, _) | (false, true, None) => Some(self.frames.event(event)),
            (false, true, Some(_)) => {
                Some(self.frames.object(FrameType::Added, &event.object, event.version))
            }
            (true, false, Some(previous)) => {
                Some(self.frames.object(FrameType::Deleted, previous, event.version))
            }
            _ => None,
        }
    }

    async fn wait(&mut self) -> WakeReason {
        let is_down = async |shutdown: &mut watch::Receiver<bool>| {
            // A dropped server counts as shut down.
            let _ = shutdown.wait_for(|is_down| *is_down).await;
        };
        let is_gone = async |kind: &mut Option<WatchedKind>| match kind {
            Some(kind) => kind.removed().await,
            None => std::future::pending().await,
        };
        tokio::select! {
            biased;
            () = is_down(&mut self.shutdown) => WakeReason::End,
            () = &mut self.timers.end => WakeReason::End,
            newest_version = self.source.newest_version.changed() => if newest_version.is_ok() { WakeReason::Events } else { WakeReason::End },
            () = &mut self.timers.bookmark, if self.sends_bookmarks => {
                self.timers.next_bookmark();
                WakeReason::Bookmark
            }
            // Last, so that all earlier events are sent first.
            () = is_gone(&mut self.kind) => WakeReason::End,
        }
    }
}

fn is_within(object: &Object, prefix: &str) -> bool {
    prefix.is_empty() || prefix.strip_suffix('/') == Some(&*object.content.namespace)
}

fn too_old(requested: u64, oldest: u64) -> ApiError {
    errors::expired(format!("too old resource version: {requested} ({oldest})"))
}
