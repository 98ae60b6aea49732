//! The queue as one would explain it on a board: vectors, searched from the front, and no batch in hand: what
//! is popped is applied to the cache there and then.

use std::collections::BTreeMap;

pub(crate) type Key = u8;
pub(crate) type Version = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Added,
    Updated,
    Deleted,
    DeletedUnknown,
    Replaced,
    Sync,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) kind: Kind,
    /// The version of the object it carries.
    pub(crate) state: Version,
    pub(crate) is_initial: bool,
    /// The time of arrival.
    arrived: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    key: Key,
    deltas: Vec<Delta>,
    is_of_first_list: bool,
}

/// The batch in flight, the cache before it, and the watermark.
type InHand = (Vec<Entry>, BTreeMap<Key, Version>, Option<Version>);

/// A pop: keys with their changes, and the watermark.
pub(crate) type Pop = (Vec<(Key, Vec<Delta>)>, Option<Version>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Reference {
    line: Vec<Entry>,
    cache: BTreeMap<Key, Version>,
    /// Each version that was reached, and when.
    reached: Vec<(u64, Version)>,
    time: u64,
    /// Keys of the first list that are not finished; `None` before it.
    unfinished: Option<usize>,
    received: Option<Version>,
    in_hand: Option<InHand>,
}

impl Reference {
    pub(crate) fn event(&mut self, kind: Kind, key: Key, version: Version) {
        self.unfinished.get_or_insert(0);
        match kind {
            Kind::Deleted if !self.is_in_line(key) && !self.cache.contains_key(&key) => {}
            Kind::DeletedUnknown => {
                if let Some(state) = self.last_state(key) {
                    self.push(key, kind, state, false);
                }
            }
            _ => self.push(key, kind, version, false),
        }
        self.reach(version);
    }

    pub(crate) fn replace(&mut self, list: &[(Key, Version)], version: Version) {
        let is_initial = self.unfinished.is_none();
        let is_listed = |key: &Key| list.iter().any(|(listed, _)| listed == key);
        let in_line = self.line.iter().map(|entry| entry.key);
        // What has been popped is deleted before what the cache has had for longer.
        let popped = self.in_hand.iter().flat_map(|(batch, ..)| batch).map(|entry| entry.key);
        let mut keys: Vec<Key> = Vec::new();
        for key in in_line.chain(popped).chain(self.cache.keys().copied()) {
            if !is_listed(&key) && !keys.contains(&key) {
                keys.push(key);
            }
        }
        let gone: Vec<(Key, Version)> =
            keys.iter().filter_map(|&key| Some((key, self.last_state(key)?))).collect();
        for (key, state) in gone {
            self.push(key, Kind::DeletedUnknown, state, is_initial);
        }
        for &(key, state) in list {
            self.push(key, Kind::Replaced, state, is_initial);
        }
        if is_initial {
            self.unfinished = Some(self.line.len());
            self.line.iter_mut().for_each(|entry| entry.is_of_first_list = true);
        }
        self.reach(version);
    }

    pub(crate) fn resync(&mut self) {
        let popped: Vec<Key> = self.in_hand.iter().flat_map(|it| &it.0).map(|entry| entry.key).collect();
        let early: Vec<Key> = self.cache.keys().copied().filter(|key| !popped.contains(key)).collect();
        for key in early.into_iter().chain(popped) {
            if let (Some(&state), false) = (self.cache.get(&key), self.is_in_line(key)) {
                self.push(key, Kind::Sync, state, false);
            }
        }
    }

    pub(crate) fn pop(&mut self, max: usize) -> Option<Pop> {
        if self.in_hand.is_some() {
            return None;
        }
        let before = self.cache.clone();
        let first = self.line.first().map(|entry| entry.is_of_first_list);
        let same = self.line.iter().take_while(|entry| Some(entry.is_of_first_list) == first).count();
        let batch: Vec<Entry> = self.line.drain(..same.min(max)).collect();
        let earliest = self.line.iter().flat_map(|entry| &entry.deltas).map(|delta| delta.arrived).min();
        let reached = |&&(time, _): &&(u64, Version)| earliest.is_none_or(|earliest| time < earliest);
        let watermark = self.reached.iter().rev().find(reached).map(|&(_, version)| version);
        if batch.is_empty() && watermark == self.received {
            return None;
        }
        for entry in &batch {
            match entry.deltas.last() {
                Some(Delta { kind: Kind::Deleted | Kind::DeletedUnknown, .. }) => {
                    self.cache.remove(&entry.key);
                }
                Some(delta) => _ = self.cache.insert(entry.key, delta.state),
                None => {}
            }
        }
        let keys = batch.iter().map(|entry| (entry.key, entry.deltas.clone())).collect();
        self.in_hand = Some((batch, before, watermark));
        Some((keys, watermark))
    }

    pub(crate) fn done(&mut self) {
        if let Some((batch, _, watermark)) = self.in_hand.take() {
            self.received = watermark;
            let finished = batch.iter().filter(|entry| entry.is_of_first_list).count();
            self.unfinished = self.unfinished.map(|unfinished| unfinished - finished);
        }
    }

    pub(crate) fn put_back(&mut self) {
        if let Some((mut batch, before, _)) = self.in_hand.take() {
            self.cache = before;
            for entry in &mut batch {
                if let Some(place) = self.line.iter().position(|other| other.key == entry.key) {
                    let later = self.line.remove(place);
                    entry.deltas.extend(later.deltas);
                    entry.is_of_first_list |= later.is_of_first_list;
                }
            }
            self.line.splice(0..0, batch);
        }
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.unfinished == Some(0)
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.line.len(), self.line.iter().map(|entry| entry.deltas.len()).sum())
    }

    fn is_in_line(&self, key: Key) -> bool {
        self.line.iter().any(|entry| entry.key == key)
    }

    /// The newest state, unless it is gone.
    fn last_state(&self, key: Key) -> Option<Version> {
        match self.line.iter().find(|entry| entry.key == key).and_then(|entry| entry.deltas.last()) {
            Some(Delta { kind: Kind::Deleted | Kind::DeletedUnknown, .. }) => None,
            Some(delta) => Some(delta.state),
            None => self.cache.get(&key).copied(),
        }
    }

    fn push(&mut self, key: Key, kind: Kind, state: Version, is_initial: bool) {
        self.time += 1;
        let delta = Delta { kind, state, is_initial, arrived: self.time };
        let Some(entry) = self.line.iter_mut().find(|entry| entry.key == key) else {
            self.line.push(Entry { key, deltas: vec![delta], is_of_first_list: false });
            return;
        };
        match (entry.deltas.last_mut(), kind) {
            (Some(Delta { kind: Kind::Deleted | Kind::DeletedUnknown, .. }), Kind::DeletedUnknown) => {}
            (Some(last @ Delta { kind: Kind::Deleted | Kind::DeletedUnknown, .. }), Kind::Deleted) => {
                *last = Delta { arrived: last.arrived, ..delta };
            }
            _ => entry.deltas.push(delta),
        }
    }

    /// A bookmark, and what any other news ends in.
    pub(crate) fn reach(&mut self, version: Version) {
        self.time += 1;
        self.reached.push((self.time, version));
    }
}
