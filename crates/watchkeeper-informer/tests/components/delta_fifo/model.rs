//! Random sequences of calls, each result compared with that of the reference queue.

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use watchkeeper_informer::{
    Cached,
    delta_fifo::{DeltaBatch, DeltaKind},
};

use super::{
    Cache, Fifo, fifo_before,
    fifo_fixture::object,
    reference::{Key, Kind, Reference, Version},
    try_pop,
};

#[derive(Debug, Clone)]
enum Call {
    Event(Kind, Key),
    Replace(Vec<Key>),
    Resync,
    Bookmark,
    Pop(usize),
    Done,
    Requeue,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let key = || 0..6_u8;
    let kind = prop_oneof![
        2 => Just(Kind::Added),
        3 => Just(Kind::Updated),
        3 => Just(Kind::Deleted),
        1 => Just(Kind::DeletedUnknown),
    ];
    let call = prop_oneof![
        12 => (kind, key()).prop_map(|(kind, key)| Call::Event(kind, key)),
        3 => prop::collection::vec(key(), 0..6).prop_map(Call::Replace),
        2 => Just(Call::Resync),
        2 => Just(Call::Bookmark),
        8 => (1..4_usize).prop_map(Call::Pop),
        7 => Just(Call::Done),
        2 => Just(Call::Requeue),
    ];
    (any::<bool>(), prop::collection::vec(key(), 0..6), prop::collection::vec(call, 1..120)).prop_map(
        |(starts_with_list, list, mut calls)| {
            if starts_with_list {
                calls.insert(0, Call::Replace(list));
            }
            calls
        },
    )
}

fn name(key: Key) -> String {
    format!("key-{key}")
}

fn kind(kind: DeltaKind) -> Kind {
    match kind {
        DeltaKind::Added => Kind::Added,
        DeltaKind::Updated => Kind::Updated,
        DeltaKind::Deleted { final_state_unknown: false } => Kind::Deleted,
        DeltaKind::Deleted { final_state_unknown: true } => Kind::DeletedUnknown,
        DeltaKind::Replaced => Kind::Replaced,
        DeltaKind::Sync => Kind::Sync,
    }
}

type Seen = (Vec<(String, Vec<(Kind, String, bool)>)>, Option<String>);

fn version_text(object: &Cached<ConfigMap>) -> String {
    object.metadata().resource_version().unwrap_or_default().to_owned()
}

fn seen(popped: &DeltaBatch<ConfigMap>) -> Seen {
    let keys = popped.keys().iter().map(|deltas| {
        let described =
            deltas.iter().map(|delta| (kind(delta.kind), version_text(&delta.object), delta.is_initial));
        (deltas.oldest().object.metadata().name().to_owned(), described.collect())
    });
    (keys.collect(), popped.watermark().map(str::to_owned))
}

/// The queue and the reference, driven together.
struct Pair {
    fifo: Fifo,
    cache: Cache,
    reference: Reference,
    in_hand: Option<DeltaBatch<ConfigMap>>,
    version: Version,
}

impl Pair {
    fn run(&mut self, call: Call) -> Result<(), TestCaseError> {
        self.version += 1;
        let version = self.version;
        match call {
            Call::Event(kind, key) => {
                self.reference.event(kind, key, version);
                let object = object(&name(key), version);
                let taken = match kind {
                    Kind::Added => self.fifo.add(object),
                    Kind::Updated => self.fifo.update(object),
                    Kind::Deleted => self.fifo.delete(object),
                    _ => self.fifo.delete_unread(&format!("space/{}", name(key)), Some(&version.to_string())),
                };
                prop_assert!(taken.is_ok());
            }
            Call::Replace(keys) => {
                let list: Vec<(Key, Version)> = keys.into_iter().map(|key| (key, version)).collect();
                self.reference.replace(&list, version);
                let list = list.iter().map(|&(key, version)| object(&name(key), version)).collect();
                prop_assert!(self.fifo.replace(list, Some(&version.to_string())).is_ok());
            }
            Call::Resync => {
                self.reference.resync();
                prop_assert!(self.fifo.resync().is_ok());
            }
            Call::Bookmark => {
                self.reference.reach(version);
                prop_assert!(self.fifo.bookmark(&version.to_string()).is_ok());
            }
            Call::Pop(max) => {
                let ours = try_pop(&self.fifo, max);
                let expected = self.reference.pop(max).map(|(keys, watermark)| {
                    let keys = keys.into_iter().map(|(key, deltas)| {
                        let deltas =
                            deltas.into_iter().map(|it| (it.kind, it.state.to_string(), it.is_initial));
                        (name(key), deltas.collect())
                    });
                    (keys.collect(), watermark.map(|version| version.to_string()))
                });
                prop_assert_eq!(ours.as_ref().map(seen), expected);
                self.in_hand = ours.or(self.in_hand.take());
            }
            Call::Done => {
                // Ours is applied only now; the reference applied it when it was popped.
                if let Some(popped) = self.in_hand.take() {
                    self.cache.apply(&popped);
                    popped.done();
                }
                self.reference.done();
            }
            Call::Requeue => {
                self.in_hand = None;
                self.reference.put_back();
            }
        }
        prop_assert_eq!(self.fifo.has_synced(), self.reference.has_synced());
        prop_assert_eq!((self.fifo.queued_keys(), self.fifo.queued_deltas()), self.reference.counts());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_queue_behaves_like_the_reference(calls in calls()) {
        let cache = Cache::default();
        let fifo = fifo_before(&cache);
        let mut pair = Pair { fifo, cache, reference: Reference::default(), in_hand: None, version: 0 };
        for call in calls {
            pair.run(call)?;
        }
        // Whatever happened: what is left comes out.
        pair.run(Call::Requeue)?;
        while pair.fifo.queued_keys() > 0 {
            pair.run(Call::Pop(3))?;
            pair.run(Call::Done)?;
        }
    }
}
