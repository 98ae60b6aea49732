//! Tests of the tracker with a manual clock and a manual cache.

use std::collections::BTreeMap;

use proptest::prelude::*;
use watchkeeper_workqueue::{AddOptions, Cause, ManualClock, WorkQueue};

use super::*;
use crate::{
    HotLoopLimits,
    writes::{CacheView, CachedState},
};

const TIMEOUT: Duration = Duration::from_secs(5);
const OPTIONS: TrackingOptions = TrackingOptions {
    freshness_timeout: Some(TIMEOUT),
    hot_loops: Some(HotLoopLimits { reconciles: 3, window: Duration::from_mins(1) }),
};

/// An event that a test delivers.
type Deliver = fn(&Scene);

/// A cache of config maps whose contents the test sets.
struct Cache {
    label: Arc<str>,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    objects: BTreeMap<ObjectKey, u64>,
    complete_to: u64,
    epoch: u64,
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&number.to_string()).unwrap()
}

impl CacheView for Cache {
    fn state_of(&self, object: &ObjectKey) -> Option<CachedState> {
        let number = *self.contents.lock().objects.get(object)?;
        Some(CachedState { version: Some(version(number)), ..CachedState::default() })
    }

    fn complete_to(&self) -> Option<ResourceVersion> {
        Some(version(self.contents.lock().complete_to.max(1)))
    }

    fn epoch(&self) -> u64 {
        self.contents.lock().epoch
    }
}

impl TrackedCache for Cache {
    fn informer(&self) -> &'static str {
        "v1/configmaps everywhere"
    }

    fn coverage(&self, _: &ObjectKey, labels: Option<&BTreeMap<String, String>>) -> Coverage {
        match labels {
            None => Coverage::Unknown,
            Some(labels) if labels.contains_key("outside") => Coverage::Outside,
            Some(_) => Coverage::Inside,
        }
    }

    fn resource(&self) -> &Arc<str> {
        &self.label
    }

    fn watches(&self, target: &Target<'_>) -> bool {
        target.plural == "configmaps"
    }
}

struct Scene {
    tracker: WriteTracker,
    cache: Arc<Cache>,
    clock: ManualClock,
}

impl Scene {
    fn new() -> Self {
        let cache = Arc::new(Cache { label: "configmaps".into(), contents: Mutex::default() });
        let clock = ManualClock::new();
        let tracker = WriteTracker::new(vec![Arc::clone(&cache) as _], Arc::new(clock.clone()), OPTIONS);
        tracker.expect_writes();
        Self { tracker, cache, clock }
    }

    fn prepare_write(&self, name: &str) -> PendingWrite {
        let (method, uri) = (http::Method::PUT, format!("/api/v1/namespaces/default/configmaps/{name}"));
        let uri = uri.parse().unwrap();
        self.tracker.prepare_write(&Target::of(&method, &uri).unwrap()).unwrap()
    }

    fn wrote(&self, key: &ObjectKey, pending: PendingWrite, number: u64) {
        self.wrote_with(key, pending, number, Some(BTreeMap::new()));
    }

    fn wrote_with(
        &self,
        key: &ObjectKey,
        pending: PendingWrite,
        number: u64,
        labels: Option<BTreeMap<String, String>>,
    ) {
        let response = WriteResponse { object: None, version: Some(version(number)), uid: None, labels };
        self.tracker.record_write(key, pending, response);
    }

    fn write(&self, key: &ObjectKey, name: &str, number: u64) {
        self.wrote(key, self.prepare_write(name), number);
    }

    fn show(&self, name: &str, number: u64) {
        let mut contents = self.cache.contents.lock();
        contents.objects.insert(object(name), number);
        contents.complete_to = number;
    }

    fn event(&self, key: &ObjectKey, name: &str, number: u64) {
        let event = TriggerEvent {
            cache: 0,
            object: object(name),
            version: Some(version(number)),
            uid: None,
            is_deletion: false,
        };
        self.tracker.record_event(key, event);
    }

    /// Begins and ends a reconcile in which `during` happens. Returns whether a hot loop was reported.
    fn reconcile(&self, key: &ObjectKey, causes: &Causes, during: impl FnOnce()) -> bool {
        assert!(matches!(self.tracker.begin(key, causes), Readiness::Ready(_)));
        during();
        self.tracker.end(key, causes, ReconcileEnd::Other).1.is_some()
    }

    fn records(&self) -> usize {
        self.tracker.records.lock().by_key.len()
    }
}

fn object(name: &str) -> ObjectKey {
    ObjectKey::new(Some("default"), name).unwrap()
}

/// Returns causes by way of a queue, the only source of them.
fn causes(all: &[Cause]) -> Causes {
    let queue = WorkQueue::new("causes");
    for cause in all {
        queue.add_with(0, AddOptions::new().cause(cause.clone()));
    }
    queue.try_get().map(|item| item.causes().clone()).unwrap_or_default()
}

fn event() -> Causes {
    causes(&[Cause::Event("ConfigMap default/a".into())])
}

fn key() -> ObjectKey {
    object("a")
}

#[test]
fn own_events_are_recognized_before_and_after_the_response_arrives() {
    for is_event_first in [true, false] {
        let scene = Scene::new();
        let mut reports = Vec::new();
        for number in 10..14 {
            let is_hot = scene.reconcile(&key(), &event(), || {
                let pending = scene.prepare_write("a");
                if is_event_first {
                    scene.show("a", number);
                    scene.event(&key(), "a", number);
                    scene.wrote(&key(), pending, number);
                } else {
                    scene.wrote(&key(), pending, number);
                    scene.show("a", number);
                    scene.event(&key(), "a", number);
                }
            });
            reports.push(is_hot);
        }
        assert_eq!(reports, [false, false, false, true], "the first had an external cause");
    }
}

#[test]
fn a_reconcile_with_an_external_cause_does_not_count() {
    let others: [(&str, Deliver, Causes); 4] = [
        ("another event", |scene| scene.event(&key(), "b", 7), event()),
        ("a trigger", |_| {}, causes(&[Cause::Event("a".into()), Cause::Other("webhook".into())])),
        ("a resync", |_| {}, causes(&[Cause::Event("a".into()), Cause::Resync])),
        ("more events than are kept", |scene| (0..20).for_each(|_| scene.event(&key(), "a", 9)), event()),
    ];
    for (what, cause, causes) in others {
        let scene = Scene::new();
        for number in 10..20 {
            let is_hot = scene.reconcile(&key(), &causes, || {
                scene.write(&key(), "a", number);
                scene.show("a", number);
                scene.event(&key(), "a", number);
                cause(&scene);
            });
            assert!(!is_hot, "{what}");
        }
    }
}

#[test]
fn a_write_that_changed_nothing_is_recognized_by_the_version_before_it() {
    let requeue = causes(&[Cause::Requeue]);
    let count = |write: fn(&Scene, u64)| {
        let scene = Scene::new();
        scene.show("a", 5);
        (10..20).filter(|number| scene.reconcile(&key(), &requeue, || write(&scene, *number))).count()
    };
    assert_eq!(count(|scene, _| scene.write(&key(), "a", 5)), 1, "the version in the cache");
    let event_overtakes = |scene: &Scene, number| {
        let pending = scene.prepare_write("a");
        scene.show("a", number);
        scene.wrote(&key(), pending, number);
    };
    assert_eq!(
        count(event_overtakes),
        0,
        "the version in the cache when the response arrives may be that of this write"
    );
    let second_is_none = |scene: &Scene, number| {
        scene.write(&key(), "a", number);
        scene.write(&key(), "a", number);
        scene.show("a", number);
    };
    assert_eq!(count(second_is_none), 0, "one of its writes changed the object");
}

#[test]
fn a_write_that_changed_nothing_is_recognized_by_the_last_own_write_when_the_cache_lags() {
    let requeue = causes(&[Cause::Requeue]);
    let scene = Scene::new();
    scene.show("a", 5);
    scene.write(&key(), "a", 10);
    // The cache is complete but does not show the object as written, as with a transform that drops the
    // change.
    scene.cache.contents.lock().complete_to = 10;
    let is_hot = |number| scene.reconcile(&key(), &requeue, || scene.write(&key(), "a", number));
    assert_eq!((0..4).filter(|_| is_hot(10)).count(), 1, "four writes that changed nothing");
}

/// Returns labels that the informer excludes.
fn outside() -> BTreeMap<String, String> {
    [("outside".to_owned(), String::new())].into()
}

impl Scene {
    /// Writes `a` with the given labels; `None` stands for unknown labels.
    fn write_with(&self, number: u64, labels: Option<BTreeMap<String, String>>) {
        self.wrote_with(&key(), self.prepare_write("a"), number, labels);
    }

    fn begin(&self) -> Readiness {
        let begin = self.tracker.begin(&key(), &event());
        if !matches!(begin, Readiness::Wait { .. }) {
            self.tracker.end(&key(), &event(), ReconcileEnd::Other);
        }
        begin
    }

    /// Begins after the timeout, and returns whether the informer selects the missed object.
    fn miss(&self) -> bool {
        assert!(matches!(self.begin(), Readiness::Wait { .. }));
        self.clock.advance(TIMEOUT);
        let Readiness::TimedOut { waited, missed } = self.begin() else { panic!("the timeout has elapsed") };
        assert_eq!(waited, TIMEOUT);
        let [MissedWrite { cache: 0, informer, object, is_selected }] = missed.as_slice() else {
            panic!("one write: {missed:?}")
        };
        assert_eq!((informer.as_str(), object), ("v1/configmaps everywhere", &key()));
        *is_selected
    }
}

#[test]
fn a_write_outside_the_selection_of_the_informer_is_not_waited_for() {
    let scene = Scene::new();
    for number in [10, 11] {
        scene.write_with(number, Some(outside()));
        assert_eq!(scene.begin(), Readiness::Ready(Freshness::Fresh));
    }
    let hidden = scene.tracker.begin(&object("b"), &event());
    assert_eq!(hidden, Readiness::Ready(Freshness::Fresh));
}

#[test]
fn a_write_that_removes_an_object_from_the_selection_is_waited_for_until_the_cache_drops_it() {
    let scene = Scene::new();
    scene.show("a", 5);
    scene.write_with(6, Some(outside()));
    assert!(matches!(scene.begin(), Readiness::Wait { .. }));
    scene.cache.contents.lock().objects.clear();
    assert!(matches!(scene.begin(), Readiness::Ready(Freshness::Waited(_))));
}

#[test]
fn an_object_created_inside_and_moved_outside_the_selection_is_waited_for_until_both_were_observed() {
    let scene = Scene::new();
    scene.write(&key(), "a", 5);
    scene.write_with(6, Some(outside()));
    assert!(matches!(scene.begin(), Readiness::Wait { .. }), "the creation is not observed yet");
    scene.show("a", 5);
    assert!(matches!(scene.begin(), Readiness::Wait { .. }), "the removal is not observed yet");
    scene.cache.contents.lock().objects.clear();
    assert!(matches!(scene.begin(), Readiness::Ready(Freshness::Waited(_))));
}

#[test]
fn an_object_that_may_be_outside_the_selection_costs_one_timeout() {
    let scene = Scene::new();
    scene.write_with(10, None);
    assert!(!scene.miss());
    for number in [11, 12] {
        scene.write_with(number, None);
        assert_eq!(scene.begin(), Readiness::Ready(Freshness::Fresh), "an earlier write was not observed");
    }
    scene.show("a", 12);
    scene.write_with(13, None);
    assert!(scene.miss(), "the cache has the object now, and is behind");
    scene.write_with(14, None);
    assert!(scene.miss());
    scene.cache.contents.lock().objects.clear();
    scene.write_with(15, None);
    assert!(!scene.miss(), "the object is unobservable again after the cache had it");
}

#[test]
fn an_object_that_the_informer_selects_is_waited_for_each_time() {
    let scene = Scene::new();
    for number in [10, 11] {
        scene.write(&key(), "a", number);
        assert!(scene.miss());
    }
}

#[test]
fn the_set_of_unobservable_objects_is_bounded() {
    let mut records = Scene::new().tracker.records.into_inner();
    let missed = |number: usize| MissedWrite {
        cache: 0,
        informer: String::new(),
        object: object(&format!("m{number}")),
        is_selected: false,
    };
    for number in 0..=UNOBSERVABLE_LIMIT {
        records.remember_unobservable(&[missed(number)]);
        assert!((1..=UNOBSERVABLE_LIMIT).contains(&records.unobservable.len()));
    }
    assert!(records.unobservable.contains(&(0, object(&format!("m{UNOBSERVABLE_LIMIT}")))));
}

#[test]
fn a_new_epoch_ends_the_wait() {
    let scene = Scene::new();
    scene.write(&key(), "a", 1_000);
    assert!(matches!(scene.tracker.begin(&key(), &event()), Readiness::Wait { is_first: true, .. }));
    assert!(matches!(scene.tracker.begin(&key(), &event()), Readiness::Wait { is_first: false, .. }));
    scene.cache.contents.lock().epoch = 1;
    assert!(matches!(scene.tracker.begin(&key(), &event()), Readiness::Ready(Freshness::Waited(_))));
}

#[test]
fn consecutive_conflicts_are_counted_until_another_outcome() {
    let scene = Scene::new();
    let end = |end| scene.tracker.end(&key(), &event(), end).0;
    assert_eq!(
        [end(ReconcileEnd::Conflict), end(ReconcileEnd::Conflict), end(ReconcileEnd::Conflict)],
        [0, 1, 2]
    );
    assert_eq!((end(ReconcileEnd::Other), end(ReconcileEnd::Conflict)), (3, 0));
    end(ReconcileEnd::Other);
    assert_eq!(scene.records(), 0, "no state is left");
}

#[test]
fn the_number_of_records_is_bounded_by_the_writes_within_a_window() {
    for is_reconciled_again in [true, false] {
        let scene = Scene::new();
        let mut most = 0;
        for number in 1..50_000_u64 {
            let key = object(&format!("m{number}"));
            scene.write(&key, "a", number);
            scene.show("a", number);
            if is_reconciled_again {
                scene.reconcile(&key, &event(), || {});
            }
            scene.clock.advance(Duration::from_millis(100));
            most = most.max(scene.records());
        }
        // 600 keys write within a window of one minute.
        assert!(most <= 1_200, "{most}");
    }
}

#[test]
fn a_write_that_no_cache_shows_is_not_swept() {
    let scene = Scene::new();
    scene.write(&key(), "a", 1_000_000);
    for number in 1..5_000_u64 {
        scene.write(&object(&format!("m{number}")), "b", number);
        scene.show("b", number);
        scene.clock.advance(Duration::from_secs(1));
    }
    assert!(matches!(scene.tracker.begin(&key(), &event()), Readiness::Wait { is_first: true, .. }));
}

/// A step in the history of one key and its two objects.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(bool),
    Show,
    Pass(u64),
    Dequeue,
}

proptest! {
    /// Compares with a list of all writes and whether the cache shows them.
    #[test]
    fn a_reconcile_begins_when_every_write_is_observed_or_the_timeout_has_elapsed(
        steps in prop::collection::vec(prop_oneof![
            2 => any::<bool>().prop_map(Step::Write),
            2 => Just(Step::Show),
            2 => (0..4_000_u64).prop_map(Step::Pass),
            3 => Just(Step::Dequeue),
        ], 1..60)
    ) {
        let scene = Scene::new();
        let (mut next, mut unobserved, mut waits_since) = (10, Vec::new(), None);
        for step in steps {
            match step {
                Step::Write(is_a) => {
                    next += 1;
                    let name = if is_a { "a" } else { "b" };
                    scene.write(&key(), name, next);
                    unobserved.push((name, next, true));
                }
                Step::Show if unobserved.is_empty() => {}
                Step::Show => {
                    let (name, number, _) = unobserved.remove(0);
                    scene.show(name, number);
                }
                Step::Pass(millis) => scene.clock.advance(Duration::from_millis(millis)),
                Step::Dequeue => {
                    let now = scene.clock.now();
                    let is_waited_for = unobserved.iter().any(|(.., is_waited_for)| *is_waited_for);
                    let began = scene.tracker.begin(&key(), &event());
                    let waited = now.saturating_sub(waits_since.unwrap_or(now));
                    if is_waited_for && waited < TIMEOUT {
                        let is_first = waits_since.is_none();
                        waits_since = Some(waits_since.unwrap_or(now));
                        let Readiness::Wait { recheck_after, is_first: reported_first } = began else {
                            return Err(TestCaseError::fail(format!("{began:?}")));
                        };
                        prop_assert_eq!(reported_first, is_first);
                        prop_assert!(!recheck_after.is_zero() && waited + recheck_after <= TIMEOUT);
                        continue;
                    }
                    match (waits_since, is_waited_for) {
                        (None, _) => prop_assert_eq!(began, Readiness::Ready(Freshness::Fresh)),
                        (Some(_), false) => prop_assert_eq!(began, Readiness::Ready(Freshness::Waited(waited))),
                        (Some(_), true) => {
                            let is_late = matches!(began, Readiness::TimedOut { waited: reported, .. } if reported == waited);
                            prop_assert!(is_late, "{:?}", began);
                        }
                    }
                    waits_since = None;
                    for (.., is_waited_for) in &mut unobserved {
                        *is_waited_for = false;
                    }
                    scene.tracker.end(&key(), &event(), ReconcileEnd::Other);
                }
            }
        }
    }
}
