//! Where adds wait while the queue is busy.

#![expect(
    clippy::inline_always,
    reason = "the path of every posted add: a tenth fewer instructions than with calls"
)]

use std::{array, collections::VecDeque, mem};

use crate::{
    Cause,
    core::{Add, Pending, Wish},
    fill::fill,
    sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering},
};

/// Adds of normal priority that found the queue locked or its line long, in order of arrival, until somebody who has the
/// lock takes them in.
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
///   them. And it may let a key go without that, unless it forgets failures of which one may be in here.
/// - A worker that is going to wait says so **before** it finds the inbox empty; a producer asks **after** it has
///   posted whether anyone waits, and then goes to the queue itself. Both hold the inbox's lock in between, so one
///   of them sees the other.
/// - It is bounded: a producer that finds enough in it takes it in if the queue is free, and one that finds it full waits
///   for that.
/// - While a worker waits for the queue's lock, producers post and leave the lock to it.
#[derive(Debug)]
pub(crate) struct Inbox<K> {
    /// Read by everyone at every step, written seldom: on a line of its own, it stays in everyone's cache.
    signs: OwnLine<Signs>,
    failed: OwnLine<Failed>,
    mail: OwnLine<Mutex<Mail<K>>>,
}

#[derive(Debug)]
struct Signs {
    /// Whether adds come through here. If not, they go to the queue, unless that is locked.
    is_open: AtomicBool,
    /// Whether a worker waits for a key.
    has_waiters: AtomicBool,
    /// Whether keys wait for their time.
    has_delays: AtomicBool,
    /// How many workers wait for the queue's lock.
    at_the_door: AtomicU64,
    /// How many workers there are.
    workers: AtomicU64,
}

/// Of which keys a failure may be posted: a bit of their hash says. Without this, whoever forgets failures would have to
/// take in everything just to find none.
#[derive(Debug)]
struct Failed([AtomicU64; FAILED_WORDS]);

/// With so many bits, few of the keys that are forgotten beside a full inbox share theirs with one that is in it.
const FAILED_WORDS: usize = 64;

impl Failed {
    /// Where the bit of a hash is.
    fn place(hash: u32) -> (usize, u64) {
        (hash as usize % FAILED_WORDS, 1 << (hash / 64 % 64))
    }

    /// The caller has the inbox's lock, so nobody else writes. Relaxed is enough: what matters is a failure that the same
    /// worker, or one it knows of, posted before.
    fn note(&self, hash: u32) {
        let (word, bit) = Self::place(hash);
        let noted = self.0[word].load(Ordering::Relaxed);
        self.0[word].store(noted | bit, Ordering::Relaxed);
    }

    fn may_contain(&self, hash: u32) -> bool {
        let (word, bit) = Self::place(hash);
        self.0[word].load(Ordering::Relaxed) & bit != 0
    }

    fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

#[derive(Debug)]
pub(crate) struct Mail<K> {
    posted: Vec<Posted<K>>,
    /// Why those that have one were added, in the same order.
    causes: VecDeque<Cause>,
    /// Whether one of them is a failure.
    has_failed: bool,
    /// Whether one of them asks for more than to be handed out now.
    has_timed: bool,
    is_closed: bool,
}

/// An add that waits to be taken in.
#[derive(Debug)]
pub(crate) struct Posted<K> {
    /// There until the queue takes it; it never does when it knows the key.
    pub(crate) key: Option<K>,
    /// As much of it as the queue keeps.
    pub(crate) hash: u32,
    /// Whether a cause was posted with it: beside the adds and not in them, so that those without one are no larger for it.
    has_cause: bool,
    pub(crate) wish: Wish,
}

impl<K> Posted<K> {
    const EMPTY: Self = Self { key: None, hash: 0, has_cause: false, wish: Add::PLAIN.wish };
}

/// What was swapped out of the inbox and is being taken in.
#[derive(Debug)]
pub(crate) struct Arrived<K> {
    posted: Vec<Posted<K>>,
    causes: VecDeque<Cause>,
    /// Whether one of them asks for more than to be handed out now. If not, nobody needs to look.
    pub(crate) has_timed: bool,
    /// So many of them were taken in. All, between steps, unless a key's `Eq` panicked.
    taken_in: usize,
}

impl<K> Arrived<K> {
    pub(crate) const fn new() -> Self {
        Self { posted: Vec::new(), causes: VecDeque::new(), has_timed: false, taken_in: 0 }
    }

    /// Those that are still to be taken in.
    pub(crate) fn rest(&self) -> &[Posted<K>] {
        &self.posted[self.taken_in..]
    }

    /// The next to be taken in, and its cause.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(&mut Posted<K>, Option<Cause>)> {
        let next = self.posted.get_mut(self.taken_in)?;
        // Counted first: a key that panics is given up, not tried for ever.
        self.taken_in += 1;
        let cause = if next.has_cause { self.causes.pop_front() } else { None };
        Some((next, cause))
    }

    /// After the last: the keys that were not wanted, to be dropped where no lock is held.
    pub(crate) fn finish(&mut self) -> Vec<Posted<K>> {
        debug_assert!(self.rest().is_empty(), "all are taken in");
        self.taken_in = 0;
        if self.posted.iter().any(|posted| posted.key.is_some()) {
            return mem::take(&mut self.posted);
        }
        // Nothing to drop, and its room serves the next ones.
        self.posted.clear();
        Vec::new()
    }
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
pub(crate) struct Room<'a, K> {
    mail: MutexGuard<'a, Mail<K>>,
    failed: &'a Failed,
}

impl<K> Room<'_, K> {
    /// Leaves an add for whoever has the queue's lock next. True when there are enough to be taken in now: each time there
    /// are that many more, for a producer that asked every time would have the lock before any worker.
    #[inline(always)]
    pub(crate) fn post(mut self, key: Option<K>, hash: u32, wish: Wish, cause: Option<Cause>) -> bool {
        if matches!(wish, Wish::Retry(_)) {
            self.failed.note(hash);
            self.mail.has_failed = true;
        }
        if wish != Add::PLAIN.wish {
            self.mail.has_timed = true;
        }
        let Mail { posted, causes, .. } = &mut *self.mail;
        // Written where it stays: see `fill`.
        posted.push(Posted::EMPTY);
        if let Some(place) = posted.last_mut() {
            (place.hash, place.has_cause, place.wish) = (hash, cause.is_some(), wish);
            if let Some(key) = key {
                fill(&mut place.key, key);
            }
        }
        if let Some(cause) = cause {
            causes.push_back(cause);
        }
        posted.len().is_multiple_of(Bounds::of(wish).enough)
    }
}

/// How many adds the inbox holds.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// So many are taken in by the producer that can: many, so that the queue's lock is taken seldom, and few enough to be
    /// done in some ten microseconds.
    enough: usize,
    /// So many wait while the queue is busy.
    room: usize,
}

impl Bounds {
    /// A producer that waited for the queue sooner would be put to sleep too often.
    const PLAIN: Self = Self { enough: 256, room: 2048 };
    /// A delayed add costs as much as several of the others, and workers wait while they are taken in. There is room for some
    /// while producers leave the lock to workers that are behind.
    const DELAYED: Self = Self { enough: 64, room: 512 };
    /// Exploring interleavings needs both bounds within reach.
    const EXPLORED: Self = Self { enough: 2, room: 3 };

    /// For one who posts such an add.
    #[inline]
    fn of(wish: Wish) -> Self {
        match wish {
            _ if cfg!(shuttle) => Self::EXPLORED,
            Wish::Pending(Pending::Scheduled(_)) => Self::DELAYED,
            Wish::Pending(_) | Wish::Retry(_) => Self::PLAIN,
        }
    }
}

impl<K> Inbox<K> {
    pub(crate) fn new() -> Self {
        let signs = Signs {
            is_open: AtomicBool::new(false),
            has_waiters: AtomicBool::new(false),
            has_delays: AtomicBool::new(false),
            at_the_door: AtomicU64::new(0),
            workers: AtomicU64::new(0),
        };
        let failed = Failed(array::from_fn(|_| AtomicU64::new(0)));
        let mail = Mail {
            posted: Vec::new(),
            causes: VecDeque::new(),
            has_failed: false,
            has_timed: false,
            is_closed: false,
        };
        Self { signs: OwnLine(signs), failed: OwnLine(failed), mail: OwnLine(Mutex::new(mail)) }
    }

    /// Whether adds come through here: if not, nothing is posted.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.signs.0.is_open.load(Ordering::Acquire)
    }

    /// Whether an add may go straight to the queue, if that is free. Not while adds are posted: it would overtake them.
    #[inline]
    pub(crate) fn may_be_passed(&self) -> bool {
        !self.is_open() && !self.is_worker_at_the_door()
    }

    /// Whether a worker waits for the queue's lock. A producer goes there only if it has to, then: one that takes the lock
    /// again and again has it back each time before a worker, which has to be woken, and no key is handed out.
    #[inline]
    pub(crate) fn is_worker_at_the_door(&self) -> bool {
        self.signs.0.at_the_door.load(Ordering::Relaxed) > 0
    }

    /// Says that a worker waits for the queue's lock.
    pub(crate) fn wait_at_the_door(&self) {
        self.signs.0.at_the_door.fetch_add(1, Ordering::Relaxed);
    }

    /// Says that a worker that waited for the queue's lock has it.
    pub(crate) fn leave_the_door(&self) {
        self.signs.0.at_the_door.fetch_sub(1, Ordering::Relaxed);
    }

    /// Looks for room for an add.
    #[inline(always)]
    pub(crate) fn enter(&self, wish: Wish) -> Entry<'_, K> {
        if self.has_waiters() {
            return Entry::Queue;
        }
        let mut mail = self.mail.0.lock();
        if mail.is_closed {
            return Entry::Closed;
        }
        if mail.posted.len() >= Bounds::of(wish).room {
            return Entry::Queue;
        }
        if mail.posted.capacity() == 0 {
            mail.posted.reserve_exact(Bounds::PLAIN.enough);
        }
        self.set_open(true);
        Entry::Room(Room { mail, failed: &self.failed.0 })
    }

    /// Has adds come through the inbox from now on.
    #[cold]
    pub(crate) fn open(&self) {
        let _mail = self.mail.0.lock();
        self.set_open(true);
    }

    /// Swaps what has been posted for an empty list. The caller has the queue's lock.
    ///
    /// Adds that come one at a time gain nothing from coming through here, unless the line `is_long`.
    pub(crate) fn take(&self, arrived: &mut Arrived<K>, is_long: bool) {
        debug_assert!(arrived.posted.is_empty(), "what was taken before has been taken in");
        let mut mail = self.mail.0.lock();
        mem::swap(&mut mail.posted, &mut arrived.posted);
        mem::swap(&mut mail.causes, &mut arrived.causes);
        arrived.has_timed = mem::take(&mut mail.has_timed);
        if mem::take(&mut mail.has_failed) {
            self.failed.0.clear();
        }
        if arrived.posted.len() <= 1 && !is_long {
            self.set_open(false);
        }
    }

    /// Whether a failure of the key with this hash may be posted. The caller has the queue's lock.
    #[inline]
    pub(crate) fn may_hold_failure(&self, hash: u32) -> bool {
        self.is_open() && self.failed.0.may_contain(hash)
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

    /// Says whether keys wait for their time. The caller has the queue's lock.
    #[inline]
    pub(crate) fn set_has_delays(&self, has_delays: bool) {
        if self.signs.0.has_delays.load(Ordering::Relaxed) != has_delays {
            self.signs.0.has_delays.store(has_delays, Ordering::Relaxed);
        }
    }

    /// Whether a worker that finds the queue locked has probably met another worker: they have the lock for a moment each,
    /// and again at once. Producers have it for longer, above all where keys wait for their time.
    pub(crate) fn is_worker_among_many(&self) -> bool {
        let Signs { workers, has_delays, .. } = &self.signs.0;
        workers.load(Ordering::Relaxed) > 1 && !has_delays.load(Ordering::Relaxed)
    }

    /// Says that there is one more worker.
    pub(crate) fn add_worker(&self) {
        self.signs.0.workers.fetch_add(1, Ordering::Relaxed);
    }

    /// Says that there is one worker less.
    pub(crate) fn remove_worker(&self) {
        self.signs.0.workers.fetch_sub(1, Ordering::Relaxed);
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
