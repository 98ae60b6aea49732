//! A small API server of one collection, with a history and with faults, and a sink that knows the correct
//! state.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::params::VersionMatch;
use parking_lot::Mutex;
use watchkeeper_client::{
    decode::Identity,
    error::TransportKind,
    list_watch::{
        ListRequest, ListStream, ListerWatcher, Opening, ScriptedSource, WatchHandle, WatchRequest,
        WatchStream,
    },
};
use watchkeeper_informer::reflector::{DeltaSink, Replacement, SinkClosed, WatchDelta};

use super::support::{List, Watch, expired, map, status, too_large, too_many};
use crate::encoded::Encoded;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Put,
    /// Puts what cannot be decoded.
    PutBroken,
    Delete,
}

/// A fault of every open watch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hurt {
    Close,
    Cut,
    Expire,
    Busy,
    Internal,
    Bookmark,
    /// The last event once more.
    Duplicate,
    /// An event from long ago.
    StepBack,
    /// Silence: the watch stays open and nothing more is sent.
    Stall,
}

/// A fault of the next request. A fault that does not apply to the request has no effect.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    Expired,
    TooLarge,
    Busy,
    Unavailable,
    Internal,
    Refused,
    Reset,
    /// Streams are not known here.
    Invalid,
    /// The response breaks off after this many objects.
    BreaksAfter(usize),
    /// A watch ends after so many objects, in good order.
    EndsAfter(usize),
    /// The end of the initial events is never marked.
    NeverEnds,
    /// The replica that responds is so many writes behind.
    Behind(usize),
    /// The same, and the replica ignores the requested version.
    BehindAnyway(usize),
}

/// A write to the collection.
#[derive(Debug, Clone)]
struct Entry {
    version: u64,
    key: String,
    uid: String,
    what: What,
    /// Whether there was no such object before.
    is_new: bool,
    /// Tells writes apart that have everything else in common.
    nonce: u64,
}

impl Entry {
    fn identity(&self) -> Identity {
        Identity::new("", &self.key, &self.uid, &self.version.to_string())
    }

    fn object(&self) -> ConfigMap {
        let mut object = map(&self.key, &self.version.to_string());
        object.metadata.uid = Some(self.uid.clone());
        object.data = Some(BTreeMap::from([("nonce".to_owned(), self.nonce.to_string())]));
        object
    }

    fn event(&self) -> Watch {
        match self.what {
            What::PutBroken => Watch::new().undecodable(self.identity()),
            What::Put if self.is_new => Watch::new().added(self.object()),
            What::Put => Watch::new().modified(self.object()),
            What::Delete => Watch::new().deleted(self.object()),
        }
    }
}

struct Open {
    handle: WatchHandle<ConfigMap>,
    is_stalled: bool,
}

/// The server and the sink, so that each request and each change can be held against the truth.
pub(crate) struct World {
    log: Vec<Entry>,
    version: u64,
    compacted: u64,
    /// The version at which the server was started. It can replay nothing from before.
    started: u64,
    incarnations: u64,
    writes: u64,
    plans: VecDeque<Plan>,
    watches: Vec<Open>,
    pub(crate) requests: usize,
    /// Whether the sink receives the changes, so that it can check the requests.
    has_sink: bool,
    /// The position of the sink in the history.
    position: Option<u64>,
    /// The version of the last list or event pushed to the sink. Bookmarks do not change it.
    changed: Option<u64>,
    /// The version of the last list that the sink received.
    listed: Option<u64>,
    held: BTreeMap<String, Identity>,
    /// The violations found.
    pub(crate) wrong: Vec<String>,
}

/// The world as both ends of a reflector see it.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<World>>);

impl Shared {
    /// Returns the server as a source of encoded objects.
    pub(crate) fn encoded(&self) -> Encoded<ConfigMap, Self> {
        Encoded::new(self.clone())
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            log: Vec::new(),
            version: 1,
            compacted: 0,
            started: 0,
            incarnations: 0,
            writes: 0,
            plans: VecDeque::new(),
            watches: Vec::new(),
            requests: 0,
            has_sink: true,
            position: None,
            changed: None,
            listed: None,
            held: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    /// The same, for a server whose changes go elsewhere.
    pub(crate) fn without_sink() -> Self {
        Self { has_sink: false, ..Self::new() }
    }

    /// Whether there ever was such a write.
    pub(crate) fn has_written(&self, identity: &Identity, is_delete: bool) -> bool {
        let is_it = |entry: &Entry| {
            entry.identity() == *identity
                && (entry.what == What::Delete) == is_delete
                && entry.what != What::PutBroken
        };
        self.log.iter().any(is_it)
    }

    /// Whether the object with this uid was ever deleted.
    pub(crate) fn has_deleted(&self, uid: Option<&str>) -> bool {
        self.log.iter().any(|entry| entry.what == What::Delete && Some(&*entry.uid) == uid)
    }

    /// How a cache differs from what the server had at a version.
    pub(crate) fn differences_at(&self, version: u64, held: &BTreeMap<String, Identity>) -> Vec<String> {
        let state = self.state_at(version);
        let mut wrong = Vec::new();
        for (key, entry) in &state {
            let held = held.get(*key);
            let is_true = match entry.what {
                // Its last good version, if there was one.
                What::PutBroken => held.is_none_or(|held| held.uid() == Some(&entry.uid)),
                _ => held == Some(&entry.identity()),
            };
            if !is_true {
                wrong.push(format!("at {version} the server had {entry:?}, the cache has {held:?}"));
            }
        }
        let gone = held.keys().filter(|key| !state.contains_key(&***key));
        wrong.extend(gone.map(|key| format!("at {version} there was no {key}")));
        wrong
    }

    /// The version and uid of the last change, if that was a deletion.
    pub(crate) fn last_deletion(&self) -> Option<(u64, String)> {
        let last = self.log.last().filter(|entry| entry.what == What::Delete)?;
        Some((last.version, last.uid.clone()))
    }

    /// Whether this deletion happened.
    pub(crate) fn has_deletion(&self, (version, uid): &(u64, String)) -> bool {
        let is_it =
            |entry: &Entry| entry.what == What::Delete && entry.version == *version && entry.uid == *uid;
        self.log.iter().any(is_it)
    }

    /// The objects there are now.
    pub(crate) fn objects(&self) -> BTreeMap<String, ConfigMap> {
        let state = self.state_at(self.version).into_iter();
        state.map(|(key, entry)| (key.to_owned(), entry.object())).collect()
    }

    /// The keys of what cannot be decoded.
    pub(crate) fn broken(&self) -> Vec<String> {
        let state = self.state_at(self.version).into_iter();
        state.filter(|(_, entry)| entry.what == What::PutBroken).map(|(key, _)| key.to_owned()).collect()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The last write of every key that is there, as of a version.
    fn state_at(&self, version: u64) -> BTreeMap<&str, &Entry> {
        let mut state = BTreeMap::new();
        for entry in self.log.iter().take_while(|entry| entry.version <= version) {
            match entry.what {
                What::Delete => state.remove(&*entry.key),
                What::Put | What::PutBroken => state.insert(&*entry.key, entry),
            };
        }
        state
    }

    /// The version so many writes ago.
    fn behind(&self, writes: usize) -> u64 {
        self.log.iter().rev().nth(writes).map_or(1, |entry| entry.version)
    }

    pub(crate) fn write(&mut self, key: u8, what: What, gap: u64) {
        let key = format!("key {key}");
        let before = self.state_at(self.version).get(&*key).map(|entry| entry.uid.clone());
        let is_new = before.is_none();
        if is_new && what == What::Delete {
            return;
        }
        let uid = before.unwrap_or_else(|| {
            self.incarnations += 1;
            format!("uid {}", self.incarnations)
        });
        // Versions are shared with other collections, so there are gaps.
        self.version += gap;
        self.writes += 1;
        let entry = Entry { version: self.version, key, uid, what, is_new, nonce: self.writes };
        for watch in self.watches.iter().filter(|watch| !watch.is_stalled) {
            watch.handle.send(entry.event());
        }
        self.log.push(entry);
    }

    /// So many writes to other collections.
    pub(crate) fn write_elsewhere(&mut self, writes: u64) {
        self.version += writes;
    }

    /// Restores the storage from a backup of so many writes ago, and starts a server on it, which knows of no history
    /// from before. Every connection is cut.
    pub(crate) fn restore(&mut self, writes_ago: usize, elsewhere: u64) {
        let version = self.behind(writes_ago).saturating_sub(elsewhere).max(1);
        self.log.retain(|entry| entry.version <= version);
        self.version = version;
        self.started = version;
        self.compacted = self.compacted.min(version);
        for watch in self.watches.drain(..) {
            watch.handle.send(Watch::new().broken(TransportKind::Reset));
        }
    }

    /// Compacts the history: a watch from an earlier version expires.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
    }

    pub(crate) fn plan(&mut self, plan: Plan) {
        self.plans.push_back(plan);
    }

    pub(crate) fn hurt(&mut self, hurt: Hurt) {
        let once_more = self.log.last().map(Entry::event);
        let long_ago = self.log.first().map(Entry::event);
        let (mut once_more, mut long_ago) = (once_more.into_iter(), long_ago.into_iter());
        let mut left = Vec::new();
        for mut watch in self.watches.drain(..).filter(|watch| watch.handle.is_open()) {
            if watch.is_stalled {
                left.push(watch);
                continue;
            }
            let (script, is_over) = match hurt {
                Hurt::Close => (Some(Watch::new()), true),
                Hurt::Cut => (Some(Watch::new().broken(TransportKind::Reset)), true),
                Hurt::Expire => (Some(Watch::new().error(expired())), true),
                Hurt::Busy => (Some(Watch::new().error(too_many(1))), true),
                Hurt::Internal => (Some(Watch::new().error(status(500, "InternalError"))), true),
                Hurt::Bookmark => (Some(Watch::new().bookmark(self.version.to_string())), false),
                Hurt::Duplicate => (once_more.next(), false),
                Hurt::StepBack => (long_ago.next(), false),
                Hurt::Stall => (None, false),
            };
            watch.is_stalled = matches!(hurt, Hurt::Stall);
            if let Some(script) = script {
                watch.handle.send(script);
            }
            // Dropping its handle is what ends a watch.
            if !is_over {
                left.push(watch);
            }
        }
        self.watches = left;
    }

    /// From here on the server does what it should. Connections that stand still are cut.
    pub(crate) fn behave(&mut self) {
        self.plans.clear();
        for watch in self.watches.extract_if(.., |watch| watch.is_stalled) {
            watch.handle.send(Watch::new().broken(TransportKind::Reset));
        }
    }

    /// Returns the version of the response to a request for at least `requested`.
    fn response_version(&self, requested: Option<u64>, plan: Option<Plan>) -> u64 {
        match (plan, requested) {
            (Some(Plan::Behind(writes)), Some(requested)) => self.behind(writes).max(requested),
            (Some(Plan::BehindAnyway(writes)), Some(_)) => self.behind(writes),
            _ => self.version,
        }
    }

    fn respond_to_list(&mut self, request: &ListRequest) -> List {
        self.requests += 1;
        let requested = request.resource_version.as_deref().and_then(|version| version.parse().ok());
        let is_exact = request.version_match == Some(VersionMatch::Exact);
        if requested.is_some_and(|requested| requested > 0) && !is_exact {
            self.record_check(requested);
        }
        let plan = self.plans.pop_front();
        match plan {
            Some(Plan::Expired) => return List::refused(expired()),
            Some(Plan::TooLarge) => return List::refused(too_large()),
            Some(Plan::Busy) => return List::refused(too_many(2)),
            Some(Plan::Unavailable) => return List::refused(status(503, "ServiceUnavailable")),
            Some(Plan::Internal) => return List::refused(status(500, "InternalError")),
            Some(Plan::Refused) => return List::unreachable(TransportKind::Refused),
            Some(Plan::Reset) => return List::unreachable(TransportKind::Reset),
            _ => {}
        }
        // A token is the version of its list and the key to go on behind.
        let token = request.continue_token.as_deref().and_then(|token| token.split_once(' '));
        let (version, behind) = match token {
            Some((version, key)) => (version.parse().unwrap_or_default(), Some(key)),
            None if is_exact => (requested.unwrap_or_default(), None),
            None => (self.response_version(requested, plan), None),
        };
        if is_exact && version < self.compacted {
            return List::refused(expired());
        }
        if is_exact && version > self.version {
            return List::refused(too_large());
        }
        if behind.is_some() && version < self.compacted {
            return List::refused(expired());
        }
        let rest = self.state_at(version).into_iter();
        let is_asked_for = |key: &str| {
            behind.is_none_or(|behind| key > behind)
                && request.object.as_ref().is_none_or(|object| object.name == key)
        };
        let rest: Vec<_> = rest.filter(|(key, _)| is_asked_for(key)).collect();
        let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
        let mut list = List::at(version.to_string());
        for (n, (_, entry)) in rest.iter().take(limit).enumerate() {
            if matches!(plan, Some(Plan::BreaksAfter(after)) if after == n) {
                return list.broken(TransportKind::UnexpectedEof);
            }
            list = match entry.what {
                What::PutBroken => list.undecodable(entry.identity()),
                _ => list.item(entry.object()),
            };
        }
        match rest.get(limit.wrapping_sub(1)) {
            Some((key, _)) if rest.len() > limit => list.continued(format!("{version} {key}"), None),
            _ => list,
        }
    }

    fn respond_to_watch(&mut self, request: &WatchRequest) -> ScriptedSource<ConfigMap> {
        self.requests += 1;
        let source = ScriptedSource::new();
        let is_stream = request.send_initial_events;
        let requested = request.resource_version.as_deref().and_then(|version| version.parse().ok());
        if requested.is_some() || !is_stream {
            self.record_check(requested);
        }
        let plan = self.plans.pop_front();
        let refusal = match plan {
            Some(Plan::Expired) => Some(Watch::refused(expired())),
            Some(Plan::TooLarge) => Some(Watch::refused(too_large())),
            Some(Plan::Busy) => Some(Watch::refused(too_many(2))),
            Some(Plan::Unavailable) => Some(Watch::refused(status(503, "ServiceUnavailable"))),
            Some(Plan::Internal) => Some(Watch::refused(status(500, "InternalError"))),
            Some(Plan::Invalid) if is_stream => Some(Watch::refused(status(422, "Invalid"))),
            Some(Plan::Refused) => Some(Watch::unreachable(TransportKind::Refused)),
            Some(Plan::Reset) => Some(Watch::unreachable(TransportKind::Reset)),
            // Some servers report it before the stream begins, and some in it.
            _ if !is_stream && requested < Some(self.compacted.max(self.started)) => {
                Some(match self.version % 2 {
                    0 => Watch::refused(expired()),
                    _ => Watch::new().error(expired()),
                })
            }
            _ => None,
        };
        if let Some(refusal) = refusal {
            source.on_watch(refusal);
            return source;
        }
        let mut left_to_send = match plan {
            Some(Plan::BreaksAfter(n) | Plan::EndsAfter(n)) => n,
            _ => usize::MAX,
        };
        let mut from = requested.unwrap_or_default();
        let handle = source.open_watch(Watch::new());
        let mut send = |script| {
            if left_to_send > 0 {
                left_to_send -= 1;
                handle.send(script);
            }
        };
        if is_stream {
            from = self.response_version(requested, plan);
            // In no order of versions.
            for entry in self.state_at(from).into_values().rev() {
                send(match entry.what {
                    What::PutBroken => Watch::new().undecodable(entry.identity()),
                    _ => Watch::new().added(entry.object()),
                });
            }
            if !matches!(plan, Some(Plan::NeverEnds)) {
                send(Watch::new().initial_events_end(from.to_string()));
            }
        }
        for entry in self.log.iter().filter(|entry| entry.version > from) {
            send(entry.event());
        }
        match plan {
            Some(Plan::BreaksAfter(_)) => handle.send(Watch::new().broken(TransportKind::Reset)),
            Some(Plan::EndsAfter(_)) => drop(handle),
            _ => self.watches.push(Open { handle, is_stalled: false }),
        }
        source
    }

    /// Checks that the requested version is the last one received: a later one would leave a gap, and an
    /// earlier one repeats events.
    fn record_check(&mut self, requested: Option<u64>) {
        if !self.has_sink {
            return;
        }
        if (requested != self.position && requested != self.changed) || requested < self.listed {
            let (position, listed) = (self.position, self.listed);
            self.wrong
                .push(format!("requested {requested:?}; the sink is at {position:?} from list {listed:?}"));
        }
    }

    fn check_event(&mut self, identity: &Identity, is_delete: bool) {
        let version = version_of(identity.resource_version());
        let next = self.log.iter().find(|entry| match self.position {
            Some(position) if version == position => entry.version == position,
            Some(position) => entry.version > position,
            None => false,
        });
        let is_true = next.is_some_and(|next| {
            next.identity() == *identity
                && (next.what == What::Delete) == is_delete
                && next.what != What::PutBroken
        });
        if !is_true {
            let position = self.position;
            self.wrong.push(format!("received {identity:?} after {position:?}, where {next:?} is next"));
        }
        if is_delete {
            self.held.remove(identity.key());
        } else {
            self.held.insert(identity.key().to_owned(), identity.clone());
        }
        self.changed = Some(version);
        self.position = Some(version);
    }

    fn check_bookmark(&mut self, version: &str) {
        let version = version_of(Some(version));
        let mut passed = self.log.iter().filter(|entry| {
            Some(entry.version) > self.position && entry.version <= version && entry.what != What::PutBroken
        });
        if Some(version) < self.position || passed.next().is_some() {
            self.wrong.push(format!("received bookmark {version} after {:?}", self.position));
        }
        self.position = Some(version);
    }

    fn check_replacement(&mut self, with: &Replacement<ConfigMap>) {
        let version = version_of(Some(&with.resource_version));
        if Some(version) < self.position || with.is_new_epoch {
            self.wrong.push(format!("went back from {:?} to list {version}", self.position));
        }
        let (mut good, mut broken) = (Vec::new(), Vec::new());
        for entry in self.state_at(version).into_values() {
            match entry.what {
                What::PutBroken => broken.push(entry.identity()),
                _ => good.push(entry.identity()),
            }
        }
        let sorted = |mut identities: Vec<Identity>| {
            identities.sort_by(|a, b| a.key().cmp(b.key()));
            identities
        };
        let received = sorted(with.objects.iter().map(|object| object.identity.clone()).collect());
        if received != good || sorted(with.kept.clone()) != broken {
            self.wrong.push(format!("received {with:?}, where {good:?} and broken {broken:?} are correct"));
        }
        let is_kept = |held: &Identity| {
            with.kept.iter().any(|kept| kept.key() == held.key() && kept.uid() == held.uid())
        };
        self.held.retain(|_, held| is_kept(held));
        self.held.extend(received.into_iter().map(|identity| (identity.key().to_owned(), identity)));
        (self.position, self.changed, self.listed) = (Some(version), Some(version), Some(version));
    }

    /// Returns the differences between the server and the sink, including the quarantined objects.
    pub(crate) fn differences(&self, set_aside: &[String]) -> Vec<String> {
        let mut wrong = self.differences_at(self.version, &self.held);
        let broken = self.broken();
        if broken != set_aside {
            wrong.push(format!("broken are {broken:?}, set aside {set_aside:?}"));
        }
        wrong
    }
}

fn version_of(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl ListerWatcher<ConfigMap> for Shared {
    fn list(&self, request: ListRequest) -> Opening<ListStream<ConfigMap>> {
        let source = ScriptedSource::new();
        source.on_list(self.0.lock().respond_to_list(&request));
        source.list(request)
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<ConfigMap>> {
        let source = self.0.lock().respond_to_watch(&request);
        source.watch(request)
    }
}

impl DeltaSink<ConfigMap> for Shared {
    async fn push(&mut self, change: WatchDelta<ConfigMap>) -> Result<(), SinkClosed> {
        let mut world = self.0.lock();
        match &change {
            WatchDelta::Added(object) | WatchDelta::Updated(object) => {
                world.check_event(&object.identity, false);
            }
            WatchDelta::Deleted { identity, .. } => world.check_event(identity, true),
            WatchDelta::Bookmark { resource_version } => world.check_bookmark(resource_version),
            WatchDelta::Replaced(with) => world.check_replacement(with),
            other => world.wrong.push(format!("received {other:?}")),
        }
        Ok(())
    }
}
