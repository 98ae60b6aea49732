//! Where adds wait while the queue is busy.

use std::{collections::VecDeque, mem};

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// Plain adds (now, at normal priority, nobody says why) that found the queue locked or its line long, in order of
/// arrival, until somebody who has the lock takes them in.
///
/// A producer and a worker that take turns at one lock pass each other every cache line the queue is made of, for
/// every key. Through the inbox they pass a few, for many keys at a time: the producer only posts, and a worker that
/// runs out of keys takes in what has come.
///
/// What holds, and why nothing is lost or overtaken:
///
/// - It is locked after the queue, or alone; never before it.
/// - Whoever changes or reads anything that a posted add could change takes it in first.
///   A worker may go on with the line without that while keys of normal priority are in it: what was posted comes after
///   them.
/// - A worker that is going to wait says so **before** it finds the inbox empty; a producer asks **after** it has
///   posted whether anyone waits, and then goes to the queue itself. Both hold the inbox's lock in between, so one
///   of them sees the other.
/// - It is bounded: a producer that finds it full takes it in itself, under the queue's lock.
#[derive(Debug)]
pub(crate) struct Inbox<K> {
    /// Read by everyone at every step, written seldom: on a line of its own, it stays in everyone's cache.
    signs: OwnLine<Signs>,
    mail: OwnLine<Mutex<Mail<K>>>,
}

#[derive(Debug)]
struct Signs {
    /// Whether adds come through here. If not, they go to the queue, unless that is locked.
    is_open: AtomicBool,
    /// Whether a worker waits for a key.
    has_waiters: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Mail<K> {
    posted: VecDeque<Posted<K>>,
    is_closed: bool,
}

/// An add that waits to be taken in.
#[derive(Debug)]
pub(crate) struct Posted<K> {
    pub(crate) key: K,
    pub(crate) hash: u64,
}

/// Where an add may go.
#[derive(Debug)]
pub(crate) enum Entry<'a, K> {
    /// In here: there is room.
    Room(Room<'a, K>),
    /// To the queue: there is no room, or somebody waits.
    Queue,
    /// Nowhere: the queue is shut down.
    Closed,
}

/// Room for an add.
#[derive(Debug)]
pub(crate) struct Room<'a, K>(MutexGuard<'a, Mail<K>>);

impl<K> Room<'_, K> {
    /// Leaves an add for whoever has the queue's lock next.
    #[inline]
    pub(crate) fn post(mut self, add: Posted<K>) {
        self.0.posted.push_back(add);
    }
}

/// Enough for the queue's lock to be taken seldom, and few enough to be taken in within some ten microseconds.
/// (Exploring interleavings needs a full one within reach.)
const ROOM: usize = if cfg!(shuttle) { 2 } else { 256 };

impl<K> Inbox<K> {
    pub(crate) fn new() -> Self {
        let signs = Signs { is_open: AtomicBool::new(false), has_waiters: AtomicBool::new(false) };
        let mail = Mail { posted: VecDeque::new(), is_closed: false };
        Self { signs: OwnLine(signs), mail: OwnLine(Mutex::new(mail)) }
    }

    /// Whether adds come through here: if not, nothing is posted.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.signs.0.is_open.load(Ordering::Acquire)
    }

    /// Looks for room for an add.
    #[inline]
    pub(crate) fn enter(&self) -> Entry<'_, K> {
        if self.has_waiters() {
            return Entry::Queue;
        }
        let mut mail = self.mail.0.lock();
        if mail.is_closed {
            return Entry::Closed;
        }
        if mail.posted.len() >= ROOM {
            return Entry::Queue;
        }
        if mail.posted.capacity() == 0 {
            mail.posted.reserve_exact(ROOM);
        }
        self.set_open(true);
        Entry::Room(Room(mail))
    }

    /// Has adds come through the inbox from now on. The caller has the queue's lock.
    #[cold]
    pub(crate) fn open(&self) {
        let _mail = self.mail.0.lock();
        self.set_open(true);
    }

    /// Swaps what has been posted for an empty list. The caller has the queue's lock.
    ///
    /// Adds that come one at a time gain nothing from coming through here, unless the line `is_long`.
    pub(crate) fn take(&self, empty: &mut VecDeque<Posted<K>>, is_long: bool) {
        debug_assert!(empty.is_empty(), "what was taken before has been taken in");
        let mut mail = self.mail.0.lock();
        mem::swap(&mut mail.posted, empty);
        if empty.len() <= 1 && !is_long {
            self.set_open(false);
        }
    }

    /// Nothing is posted from now on. The caller has the queue's lock.
    pub(crate) fn close(&self) {
        self.mail.0.lock().is_closed = true;
    }

    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.signs.0.has_waiters.load(Ordering::Relaxed)
    }

    /// Says whether a worker waits. The caller has the queue's lock.
    #[inline]
    pub(crate) fn set_has_waiters(&self, has_waiters: bool) {
        if self.has_waiters() != has_waiters {
            // Relaxed is enough: the lock that `is_empty` takes next is what orders it.
            self.signs.0.has_waiters.store(has_waiters, Ordering::Relaxed);
        }
    }

    /// Whether there is nothing to take in; asked, with the queue's lock, after `set_has_waiters(true)`.
    pub(crate) fn is_empty(&self) -> bool {
        self.mail.0.lock().posted.is_empty()
    }

    /// The caller has the inbox's lock.
    #[inline]
    fn set_open(&self, is_open: bool) {
        if self.signs.0.is_open.load(Ordering::Relaxed) != is_open {
            self.signs.0.is_open.store(is_open, Ordering::Release);
        }
    }
}

/// Keeps a value away from its neighbours, so that writing to them does not take it out of a reader's cache. Two
/// lines, because processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);
