//! The history of one table: what happened, in order, for as long as the window reaches back.

use std::{collections::VecDeque, sync::Arc, time::SystemTime};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use super::object::Object;

/// So many of the newest events keep their frames: beyond that a frame costs as much memory as the object it is of, for
/// watchers that are hardly ever there.
const FRAMES: usize = 1024;

/// What an [`Event`] says about its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was not there before.
    Added,
    /// It was there before.
    Modified,
    /// It is gone; the event carries what it was.
    Deleted,
}

/// Something that happened to an object. Shared by every watcher that has not read it yet.
#[derive(Debug)]
pub(crate) struct Event {
    /// The version of the write; for a deletion, that of the deletion.
    pub(crate) version: u64,
    /// When.
    pub(crate) at: SystemTime,
    /// What.
    pub(crate) change: Change,
    /// What the object is now, or was when it was deleted.
    pub(crate) object: Arc<Object>,
    /// What it was before, for watchers whose selector it no longer fits.
    pub(crate) previous: Option<Arc<Object>>,
    /// The frame most watchers are sent.
    pub(crate) frame: SharedFrame,
}

/// A frame made by the first watcher that sends it, kept for the others for as long as the event is one of the newest.
#[derive(Debug, Default)]
pub(crate) struct SharedFrame(Mutex<FrameState>);

#[derive(Debug, Default)]
enum FrameState {
    #[default]
    NotMade,
    Kept(Bytes),
    /// Watchers that are this far behind make it for themselves.
    LetGo,
}

impl SharedFrame {
    /// The frame, by `make` if nobody has made it.
    pub(crate) fn get(&self, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut state = self.0.lock();
        match &*state {
            FrameState::Kept(frame) => frame.clone(),
            FrameState::LetGo => {
                drop(state);
                make()
            }
            // Made under the lock, so that those who come at the same time wait for it instead of making it too.
            FrameState::NotMade => {
                let frame = make();
                *state = FrameState::Kept(frame.clone());
                frame
            }
        }
    }

    fn let_go(&self) {
        // What was kept is dropped after the lock is released.
        let _kept = std::mem::replace(&mut *self.0.lock(), FrameState::LetGo);
    }
}

/// A place in a [`Log`]: everything before it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position(u64);

/// A reader is so far behind that what it needs next is no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lagged {
    /// The oldest version that can be read from.
    pub(crate) oldest: u64,
}

/// The history of one table, appended to by writes and read by watchers, each at its own position.
///
/// One lock for a short moment on either side; readers are woken through a watch channel, so a thousand of them cost a
/// write a thousand wake-ups and no more.
#[derive(Debug)]
pub(crate) struct Log {
    ring: RwLock<Ring>,
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// How many events were dropped before the first one kept.
    dropped: u64,
    /// Everything after this version is kept.
    oldest: u64,
}

impl Log {
    /// An empty log of a table whose history begins at `oldest`.
    pub(crate) fn new(oldest: u64) -> Self {
        Self {
            ring: RwLock::new(Ring { events: VecDeque::new(), dropped: 0, oldest }),
            newest: watch::Sender::new(oldest),
        }
    }

    /// Adds an event; readers are told by [`Log::wake`] once the store has published its version.
    pub(crate) fn push(&self, event: Event) {
        let mut ring = self.ring.write();
        debug_assert!(
            ring.events.back().is_none_or(|last| last.version < event.version),
            "events are in order"
        );
        ring.events.push_back(Arc::new(event));
        if let Some(older) =
            ring.events.len().checked_sub(FRAMES + 1).and_then(|place| ring.events.get(place))
        {
            older.frame.let_go();
        }
    }

    /// Tells readers that there is something up to `version`.
    pub(crate) fn wake(&self, version: u64) {
        self.newest.send_replace(version);
    }

    /// Tells a reader when there is something new.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// The oldest version that can be read from.
    pub(crate) fn oldest(&self) -> u64 {
        self.ring.read().oldest
    }

    /// How many events are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ring.read().events.len()
    }

    /// The position after everything up to and including `version`.
    pub(crate) fn position_after(&self, version: u64) -> Result<Position, Lagged> {
        let ring = self.ring.read();
        if version < ring.oldest {
            return Err(Lagged { oldest: ring.oldest });
        }
        let read = ring.events.partition_point(|event| event.version <= version);
        Ok(Position(ring.dropped + read as u64))
    }

    /// Appends up to `limit` events from `position` on to `events`, and moves the position behind them.
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
        events.extend(ring.events.range(start..end).cloned());
        position.0 = ring.dropped + end as u64;
        Ok(())
    }

    /// Drops the oldest events while `is_over` says so of the oldest and of how many there are; answers those dropped.
    pub(crate) fn drop_while(&self, is_over: impl Fn(&Event, usize) -> bool) -> Vec<Arc<Event>> {
        let mut gone = Vec::new();
        let mut ring = self.ring.write();
        while let Some(first) = ring.events.front()
            && is_over(first, ring.events.len())
        {
            ring.oldest = first.version;
            ring.dropped += 1;
            gone.extend(ring.events.pop_front());
        }
        gone
    }

    /// Returns the time of the oldest event that is kept.
    pub(crate) fn oldest_at(&self) -> Option<SystemTime> {
        self.ring.read().events.front().map(|first| first.at)
    }

    /// Forgets that versions before `version` could be read from, when there is nothing left to drop.
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

    #[test]
    fn frames_are_kept_for_the_newest_events_only() {
        let log = Log::new(1);
        let object = Arc::new(Object { version: 1, content: content("ns", "x", 0) });
        let frame = Bytes::from(vec![0]);
        let (after, too_many) = (log.position_after(1).unwrap(), 3);
        for version in (2..).take(FRAMES + too_many) {
            let event = Event {
                version,
                at: SystemTime::UNIX_EPOCH,
                change: Change::Modified,
                object: Arc::clone(&object),
                previous: None,
                frame: SharedFrame::default(),
            };
            event.frame.get(|| frame.clone());
            log.push(event);
        }
        let mut events = VecDeque::new();
        log.read(&mut after.clone(), usize::MAX, &mut events).unwrap();
        let is_kept: Vec<bool> =
            events.iter().map(|event| event.frame.get(Bytes::new).as_ptr() == frame.as_ptr()).collect();
        let kept = is_kept.iter().filter(|is_kept| **is_kept).count();
        assert_eq!((kept, is_kept.iter().position(|is_kept| *is_kept)), (FRAMES, Some(too_many)));
    }
}
