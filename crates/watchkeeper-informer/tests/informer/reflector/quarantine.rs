//! Objects that cannot be had, transforms, and objects that are held already.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use watchkeeper_client::{decode::Identity, error::TransportKind};
use watchkeeper_informer::{
    Cached,
    reflector::{OnUndecodable, QuarantineCause, Reflector, TransformError, WatchDelta},
};

use super::support::{List, Rig, Watch, expired, identity, map, plain, streaming, too_large};

type Source = watchkeeper_client::list_watch::ScriptedSource<ConfigMap>;

fn quarantined(rig: &Rig) -> Vec<String> {
    rig.monitor
        .quarantined()
        .iter()
        .map(|object| format!("{}@{}", object.key, object.resource_version.as_deref().unwrap_or_default()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_event_is_reported_and_the_watch_continues() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "5")));
    let _server = rig.source.open_watch(Watch::new().undecodable(identity("a", "11")).added(map("b", "12")));
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@5", "bookmark 11", "add b@12"]);
    assert_eq!(quarantined(&rig), ["a@11"]);
    assert_eq!(rig.monitor.quarantined()[0].cause, QuarantineCause::Decode);
    assert!(rig.failures.all().is_empty());
    assert_eq!(rig.monitor.counters().rejected, 1);
}

#[tokio::test(start_paused = true)]
async fn a_good_version_ends_the_quarantine_and_so_does_a_deletion() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10"));
    let broken = Watch::new().undecodable(identity("a", "11")).undecodable(identity("b", "12"));
    let server = rig.source.open_watch(broken);
    rig.deliveries(3).await;
    assert_eq!(quarantined(&rig), ["a@11", "b@12"]);
    server.send(Watch::new().modified(map("a", "13")));
    rig.deliveries(4).await;
    assert_eq!(quarantined(&rig), ["b@12"]);
    server.send(Watch::new().deleted(map("b", "14")));
    assert_eq!(rig.deliveries(5).await[3..], ["update a@13", "delete b@14"]);
    assert_eq!(quarantined(&rig), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_in_a_list_is_kept_and_not_taken_for_deleted() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").item(map("a", "5")).item(map("b", "6")));
    rig.source.on_watch(Watch::new().error(expired()));
    rig.source.on_list(List::at("20").undecodable(identity("a", "15")).item(map("b", "6")));
    assert_eq!(rig.deliveries(2).await[1], "replace 20: b@6 keep a@15");
    assert_eq!(quarantined(&rig), ["a@15"]);
    rig.source.on_watch(Watch::new().bookmark("21").error(expired()));
    rig.source.on_list(List::at("30").item(map("b", "6")));
    assert_eq!(rig.deliveries(4).await[3], "replace 30: b@6", "gone is gone");
    assert_eq!(quarantined(&rig), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_first_list_with_one_bad_object_brings_all_the_others() {
    let rig = Rig::start(plain());
    rig.source.on_list(List::at("10").undecodable(identity("a", "5")).item(map("b", "6")));
    assert_eq!(rig.deliveries(1).await, ["replace 10: b@6 keep a@5"]);
    assert!(rig.monitor.wait_for_sync(None).await.is_ok());
    assert_eq!(rig.requests(2).await.len(), 2, "it is watched, and not listed again");
}

#[tokio::test(start_paused = true)]
async fn strict_an_undecodable_object_fails_the_list() {
    let mut options = plain();
    options.undecodable = OnUndecodable::Fail;
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10").undecodable(identity("a", "5")).item(map("b", "6")));
    rig.source.on_list(List::at("11").item(map("a", "7")).item(map("b", "6")));
    assert_eq!(rig.deliveries(1).await, ["replace 11: a@7 b@6"]);
    let failure = rig.failures.all()[0].to_string();
    assert!(failure.contains("\"a\"") && failure.contains("resourceVersion 5"), "{failure}");
    assert_eq!(quarantined(&rig), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn strict_an_undecodable_event_is_requested_again_and_then_relisted() {
    let mut options = plain();
    options.undecodable = OnUndecodable::Fail;
    let rig = Rig::start(options);
    rig.source.on_list(List::at("10").item(map("a", "5")));
    rig.source.on_watch(Watch::new().modified(map("b", "11")).undecodable(identity("a", "12")));
    rig.source.on_watch(Watch::new().undecodable(identity("a", "12")));
    rig.source.on_list(List::at("13").item(map("a", "13")));
    assert_eq!(rig.requests(5).await[2..], ["watch 11", "list 11", "watch 13"], "never from behind it");
    assert_eq!(rig.deliveries(3).await, ["replace 10: a@5", "update b@11", "replace 13: a@13"]);
}

/// A transform that counts its calls and rejects objects named "bad".
fn counted(runs: &Arc<AtomicU32>) -> impl Fn(ConfigMap) -> Result<ConfigMap, TransformError> + use<> {
    let runs = Arc::clone(runs);
    move |mut object| {
        runs.fetch_add(1, Ordering::Relaxed);
        if object.metadata.name.as_deref() == Some("bad") {
            return Err(TransformError::new("it is bad"));
        }
        assert!(object.metadata.name.as_deref() != Some("worse"), "it is worse");
        object.data = Some(BTreeMap::from([("transformed".to_owned(), "yes".to_owned())]));
        Ok(object)
    }
}

fn objects(change: &WatchDelta<ConfigMap>) -> Vec<Arc<ConfigMap>> {
    match change {
        WatchDelta::Added(one) | WatchDelta::Updated(one) => vec![one.object.get().expect("decodes")],
        WatchDelta::Deleted { object, .. } => {
            object.iter().map(|object| object.get().expect("decodes")).collect()
        }
        WatchDelta::Replaced(all) => {
            all.objects.iter().map(|one| one.object.get().expect("decodes")).collect()
        }
        _ => Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_received_is_transformed_once_in_lists_in_streams_and_in_events() {
    let by_list = |source: &Source| {
        source.on_list(List::at("10").item(map("a", "5")).item(map("b", "6")));
        source.on_watch(Watch::new().added(map("c", "11")).deleted(map("c", "12")));
    };
    let by_stream = |source: &Source| {
        let initial = Watch::new().added(map("a", "5")).added(map("b", "6")).initial_events_end("10");
        source.on_watch(initial.added(map("c", "11")).deleted(map("c", "12")));
    };
    for (options, script) in [(plain(), &by_list as &dyn Fn(&Source)), (streaming(), &by_stream)] {
        let runs = Arc::new(AtomicU32::new(0));
        let transform = counted(&runs);
        let rig = Rig::start_with(options, script, |reflector| reflector.transform(transform));
        assert_eq!(rig.deliveries(3).await, ["replace 10: a@5 b@6", "add c@11", "delete c@12"]);
        assert_eq!(runs.load(Ordering::Relaxed), 4, "client-go runs it five times for a stream of three");
        for change in rig.changes.all() {
            assert!(objects(&change).iter().all(|object| object.data.is_some()), "{change:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_the_transform_refuses_or_panics_over_is_set_aside_and_not_lost() {
    let runs = Arc::default();
    let transform = counted(&runs);
    let script = |source: &Source| {
        source.on_list(List::at("10").item(map("bad", "5")).item(map("worse", "6")).item(map("good", "7")));
        source.on_watch(Watch::new().modified(map("bad", "11")).deleted(map("bad", "12")));
    };
    let rig = Rig::start_with(plain(), script, |reflector| reflector.transform(transform));
    assert_eq!(rig.deliveries(1).await, ["replace 10: good@7 keep bad@5 worse@6"]);
    assert_eq!(rig.deliveries(3).await[1..], ["bookmark 11", "delete bad@12 (last state unknown)"]);
    assert_eq!(quarantined(&rig), ["worse@6"]);
    let worse = &rig.monitor.quarantined()[0];
    assert_eq!((worse.cause, &*worse.error), (QuarantineCause::Transform, "the transform panicked"));
}

type Objects = BTreeMap<String, (Identity, Cached<ConfigMap>)>;

/// A cache of the received objects, like a store.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Objects>>);

impl Held {
    fn hold(&self, change: &WatchDelta<ConfigMap>) {
        if let WatchDelta::Replaced(with) = change {
            for object in &with.objects {
                let held = (object.identity.clone(), object.object.clone());
                self.0.lock().insert(object.identity.key().to_owned(), held);
            }
        }
    }

    fn set_up(&self) -> impl FnOnce(Reflector<ConfigMap>) -> Reflector<ConfigMap> + use<> {
        let held = self.clone();
        move |reflector| {
            reflector.reuse(move |identity: &Identity| {
                let held = held.0.lock();
                let (version, object) = held.get(identity.key())?;
                (version == identity).then(|| object.clone())
            })
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_reuses_cached_objects_of_the_same_version_without_decoding() {
    let held = Held::default();
    let runs = Arc::default();
    let transform = counted(&runs);
    let set_up = held.set_up();
    let script = |source: &Source| source.on_list(List::at("10").item(map("a", "5")).item(map("b", "6")));
    let rig = Rig::start_with(plain(), script, |reflector| set_up(reflector).transform(transform));
    rig.deliveries(1).await;
    held.hold(&rig.changes.all()[0]);
    rig.source.on_watch(Watch::new().error(expired()));
    // A cached object is not decoded again, so decoding cannot fail.
    rig.source.on_list(List::at("20").undecodable(identity("a", "5")).item(map("b", "15")));
    assert_eq!(rig.deliveries(2).await[1], "replace 20: a@5 b@15");
    let [before, after] = [0, 1].map(|n| objects(&rig.changes.all()[n]));
    assert!(Arc::ptr_eq(&before[0], &after[0]), "the same object");
    assert!(!Arc::ptr_eq(&before[1], &after[1]), "another version is another object");
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    assert_eq!(rig.monitor.counters().reused, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reused_in_a_list_that_may_be_of_a_new_epoch() {
    let held = Held::default();
    let script = |source: &Source| source.on_list(List::at("1200").item(map("a", "1050")));
    let rig = Rig::start_with(plain(), script, held.set_up());
    rig.deliveries(1).await;
    held.hold(&rig.changes.all()[0]);
    rig.source.on_watch(Watch::new().error(too_large()));
    // Restored to version 1000 and written to since: the same name, uid and version, and another object.
    let mut another = map("a", "1050");
    another.immutable = Some(true);
    rig.source.on_list(List::at("1100").item(another));
    assert_eq!(rig.deliveries(2).await[1], "replace 1100: a@1050 (new epoch)");
    assert_eq!(objects(&rig.changes.all()[1])[0].immutable, Some(true));
    assert_eq!(rig.monitor.counters().reused, 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_same_name_and_version_but_another_uid_is_not_the_one_held() {
    let held = Held::default();
    let script = |source: &Source| source.on_list(List::at("10").item(map("a", "5")));
    let rig = Rig::start_with(plain(), script, held.set_up());
    rig.deliveries(1).await;
    held.hold(&rig.changes.all()[0]);
    rig.source.on_watch(Watch::new().error(expired()));
    let mut reborn = map("a", "5");
    reborn.metadata.uid = Some("another".into());
    rig.source.on_list(List::at("20").item(reborn));
    rig.deliveries(2).await;
    assert_eq!(objects(&rig.changes.all()[1])[0].metadata.uid.as_deref(), Some("another"));
    assert_eq!(rig.monitor.counters().reused, 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_broke_off_is_not_decoded_twice() {
    let runs = Arc::default();
    let transform = counted(&runs);
    let script = |source: &Source| {
        let half = List::at("10").item(map("a", "5")).item(map("b", "6"));
        source.on_list(half.broken(TransportKind::Reset));
        source.on_list(List::at("11").item(map("a", "5")).item(map("b", "11")).item(map("c", "7")));
    };
    let rig = Rig::start_with(plain(), script, |reflector| reflector.transform(transform));
    assert_eq!(rig.deliveries(1).await, ["replace 11: a@5 b@11 c@7"]);
    assert_eq!(runs.load(Ordering::Relaxed), 4, "a and b, then the new b, and c");
}
