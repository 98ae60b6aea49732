//! The history of one table: events in order, within the history window.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::object::Object;

/// The number of newest events that keep their encoded frames. Older frames would cost as much memory as their objects, and
/// few watchers are that far behind.
const FRAMES: usize = 1024;

/// The approximate limit of the memory of the kept frames, in bytes. The newest event keeps its frame whatever its size.
const FRAME_BYTES: usize = 4 * 1024 * 1024;

/// The bytes of events that a reader takes from the log at a time. Events that a slow reader has taken stay in memory after
/// they have left the window.
const BATCH_BYTES: usize = 256 * 1024;

/// The type of an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted. The event carries the last state.
    Deleted,
}

/// A change of an object. Shared by all watchers that have not read it yet.
#[derive(Debug)]
pub(crate) struct Event {
    /// The resourceVersion of the write; for a deletion, that of the deletion.
    pub(crate) version: u64,
    /// The time of the write.
    pub(crate) at: SystemTime,
    /// The type of the change.
    pub(crate) change: EventType,
    /// The object after the write or, for a deletion, the last state.
    pub(crate) object: Arc<Object>,
    /// The object before the write, for watchers whose selector no longer matches.
    pub(crate) previous: Option<Arc<Object>>,
    /// The frame in the form that most watchers request.
    pub(crate) frame: SharedFrame,
}

impl Event {
    /// Returns the approximate memory of the event, in bytes. The previous state is counted by the previous event.
    pub(crate) fn bytes(&self) -> usize {
        EVENT_BYTES + self.object.content.held_bytes()
    }
}

/// The memory of an event beside its object: the event, its entry in the log and the row of the object.
const EVENT_BYTES: usize = 256;

/// A frame that the first watcher encodes. Later watchers share it for as long as the event is one of the newest.
#[derive(Debug, Default)]
pub(crate) struct SharedFrame(Mutex<FrameState>);

#[derive(Debug, Default)]
enum FrameState {
    #[default]
    NotEncoded,
    Encoded(Bytes),
    /// The frame was dropped. Watchers that are this far behind encode the frame themselves.
    Dropped,
}

impl SharedFrame {
    /// Returns the frame, encoding it with `make` if it is not encoded yet.
    pub(crate) fn get(&self, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut state = self.0.lock();
        match &*state {
            FrameState::Encoded(frame) => frame.clone(),
            FrameState::Dropped => {
                drop(state);
                make()
            }
            // Encoded under the lock, so that concurrent watchers wait for the frame instead of encoding it too.
            FrameState::NotEncoded => {
                let frame = make();
                *state = FrameState::Encoded(frame.clone());
                frame
            }
        }
    }

    fn drop_frame(&self) {
        // The frame is dropped after the lock is released.
        let _kept = std::mem::replace(&mut *self.0.lock(), FrameState::Dropped);
    }
}

/// A position in a [`Log`]: all events before it have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position(u64);

/// The error for a reader whose next event has left the history window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lagged {
    /// The oldest version from which events can be read.
    pub(crate) oldest: u64,
}

/// The history of one table. Writes append to it; watchers read from it, each at its own position.
///
/// Writers and readers hold one lock for a short time. Readers are woken through a watch channel, so that a write with a
/// thousand readers costs a thousand wake-ups and no copies.
#[derive(Debug)]
pub(crate) struct Log {
    ring: RwLock<Ring>,
    newest: watch::Sender<u64>,
}

/// A number of bytes, shared by all logs of a store.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldBytes(Arc<AtomicUsize>);

impl HeldBytes {
    /// Returns the number.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The number of events dropped before the first retained one.
    dropped: u64,
    /// The version after which all events are retained.
    oldest: u64,
    /// The memory of the events, in bytes.
    bytes: usize,
    /// The memory of the events of all tables, in bytes.
    total: HeldBytes,
    /// The index of the first event that keeps its frame, counted like `dropped`, and the bytes of the objects from there
    /// on.
    first_frame: u64,
    frame_bytes: usize,
}

impl Ring {
    /// Drops the frame of the oldest event that has one.
    fn drop_oldest_frame(&mut self) {
        let index = usize::try_from(self.first_frame - self.dropped).unwrap_or(usize::MAX);
        if let Some(event) = self.events.get(index) {
            event.frame.drop_frame();
            self.frame_bytes -= event.bytes();
        }
        self.first_frame += 1;
    }
}

impl Log {
    /// Creates an empty log of a table whose history starts at `oldest`.
    pub(crate) fn new(oldest: u64, total: HeldBytes) -> Self {
        Self {
            ring: RwLock::new(Ring {
                events: VecDeque::new(),
                dropped: 0,
                oldest,
                bytes: 0,
                total,
                first_frame: 0,
                frame_bytes: 0,
            }),
            newest: watch::Sender::new(oldest),
        }
    }

    /// Appends an event. [`Log::wake`] notifies readers once the store has published the version.
    pub(crate) fn push(&self, event: Event) {
        let mut ring = self.ring.write();
        debug_assert!(
            ring.events.back().is_none_or(|last| last.version < event.version),
            "events are in order"
        );
        let bytes = event.bytes();
        ring.bytes += bytes;
        ring.total.add(bytes);
        ring.frame_bytes += bytes;
        ring.events.push_back(Arc::new(event));
        let end = ring.dropped + ring.events.len() as u64;
        while ring.first_frame + 1 < end
            && (end - ring.first_frame > FRAMES as u64 || ring.frame_bytes > FRAME_BYTES)
        {
            ring.drop_oldest_frame();
        }
    }

    /// Notifies readers of events up to `version`.
    pub(crate) fn wake(&self, version: u64) {
        self.newest.send_replace(version);
    }

    /// Returns a receiver of the newest version of the log.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Returns the oldest version from which events can be read.
    pub(crate) fn oldest(&self) -> u64 {
        self.ring.read().oldest
    }

    /// Returns the approximate memory of the events, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.ring.read().bytes
    }

    /// Returns the number of retained events.
    pub(crate) fn len(&self) -> usize {
        self.ring.read().events.len()
    }

    /// Returns the position after all events up to and including `version`.
    pub(crate) fn position_after(&self, version: u64) -> Result<Position, Lagged> {
        let ring = self.ring.read();
        if version < ring.oldest {
            return Err(Lagged { oldest: ring.oldest });
        }
        let read = ring.events.partition_point(|event| event.version <= version);
        Ok(Position(ring.dropped + read as u64))
    }

    /// Appends up to `limit` events from `position` on to `events`, and advances the position. Stops after the event with
    /// which the batch exceeds [`BATCH_BYTES`].
    pub(crate) fn read(
        &self,
        position: &mut Position,
        limit: usize,
        events: &mut VecDeque<Arc<Event>>,
    ) -> Result<(), Lagged> {
        let ring = self.ring.read();
        let Some(start) = position.0.checked_sub(ring.dropped) else {
            return Err(Lagged { oldest: ring.oldest });
        };
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(ring.events.len());
        let end = start.saturating_add(limit).min(ring.events.len());
        let mut bytes = 0;
        let before = events.len();
        for event in ring.events.range(start..end) {
            events.push_back(Arc::clone(event));
            bytes += event.bytes();
            if bytes > BATCH_BYTES {
                break;
            }
        }
        position.0 = ring.dropped + (start + events.len() - before) as u64;
        Ok(())
    }

    /// Drops the oldest events while `is_over` returns true for the oldest event and the number of events. Returns the
    /// dropped events.
    pub(crate) fn drop_while(&self, mut is_over: impl FnMut(&Event, usize) -> bool) -> Vec<Arc<Event>> {
        let mut removed = Vec::new();
        let mut ring = self.ring.write();
        while let Some(first) = ring.events.front()
            && is_over(first, ring.events.len())
        {
            let (version, bytes) = (first.version, first.bytes());
            if ring.first_frame == ring.dropped {
                ring.drop_oldest_frame();
            }
            ring.oldest = version;
            ring.bytes -= bytes;
            ring.total.subtract(bytes);
            ring.dropped += 1;
            removed.extend(ring.events.pop_front());
        }
        removed
    }

    /// Returns the time of the oldest retained event.
    pub(crate) fn oldest_at(&self) -> Option<SystemTime> {
        self.ring.read().events.front().map(|first| first.at)
    }

    /// Raises the oldest readable version to `version` when no events are left to drop.
    pub(crate) fn raise_oldest(&self, version: u64) {
        let mut ring = self.ring.write();
        debug_assert!(
            ring.events.front().is_none_or(|first| first.version > version),
            "nothing kept is forgotten"
        );
        ring.oldest = ring.oldest.max(version);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::content, *};

    fn large(version: u64, bytes: usize) -> Event {
        let metadata = serde_json::json!({"name": "x", "annotations": {"a": "x".repeat(bytes)}});
        let content =
            super::super::Content::new(&serde_json::json!({"metadata": metadata}), Box::default()).unwrap();
        Event {
            version,
            at: SystemTime::UNIX_EPOCH,
            change: EventType::Modified,
            object: Arc::new(Object { version, content }),
            previous: None,
            frame: SharedFrame::default(),
        }
    }

    #[test]
    fn frames_of_large_objects_are_kept_within_a_number_of_bytes() {
        let log = Log::new(1, HeldBytes::default());
        let start = log.position_after(1).unwrap();
        for version in 2..20 {
            let event = large(version, FRAME_BYTES / 3);
            event.frame.get(|| Bytes::from(vec![1]));
            log.push(event);
        }
        let (mut events, mut position) = (VecDeque::new(), start);
        while events.len() < 18 {
            log.read(&mut position, usize::MAX, &mut events).unwrap();
        }
        let kept = events.iter().filter(|event| !event.frame.get(Bytes::new).is_empty()).count();
        assert_eq!(kept, 2, "so many fit");
    }

    #[test]
    fn a_batch_of_large_events_is_limited_by_bytes() {
        let log = Log::new(1, HeldBytes::default());
        let mut position = log.position_after(1).unwrap();
        for version in 2..20 {
            log.push(large(version, BATCH_BYTES / 2));
        }
        let mut events = VecDeque::new();
        log.read(&mut position, 64, &mut events).unwrap();
        assert_eq!(events.iter().map(|event| event.version).collect::<Vec<_>>(), [2, 3]);
        log.read(&mut position, 64, &mut events).unwrap();
        assert_eq!(events.len(), 4, "reading continues at the position");
    }

    #[test]
    fn frames_are_kept_for_the_newest_events_only() {
        let log = Log::new(1, HeldBytes::default());
        let object = Arc::new(Object { version: 1, content: content("ns", "x", 0) });
        let frame = Bytes::from(vec![0]);
        let (after, too_many) = (log.position_after(1).unwrap(), 3);
        for version in (2..).take(FRAMES + too_many) {
            let event = Event {
                version,
                at: SystemTime::UNIX_EPOCH,
                change: EventType::Modified,
                object: Arc::clone(&object),
                previous: None,
                frame: SharedFrame::default(),
            };
            event.frame.get(|| frame.clone());
            log.push(event);
        }
        let mut events = VecDeque::new();
        let mut position = after;
        while events.len() < FRAMES + too_many {
            log.read(&mut position, usize::MAX, &mut events).unwrap();
        }
        let is_kept: Vec<bool> =
            events.iter().map(|event| event.frame.get(Bytes::new).as_ptr() == frame.as_ptr()).collect();
        let kept = is_kept.iter().filter(|is_kept| **is_kept).count();
        assert_eq!((kept, is_kept.iter().position(|is_kept| *is_kept)), (FRAMES, Some(too_many)));
    }
}
