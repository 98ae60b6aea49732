//! Tests of the memory with a manual clock and a manual cache.

use std::collections::BTreeMap;

use proptest::prelude::*;
use watchkeeper_workqueue::{AddOptions, ManualClock, WorkQueue};

use super::*;
use crate::writes::Held;

const TIMEOUT: Duration = Duration::from_secs(5);
const OPTIONS: MemoryOptions = MemoryOptions {
    freshness_timeout: Some(TIMEOUT),
    hot_loops: Some(HotLoopLimits { reconciles: 3, window: Duration::from_mins(1) }),
};

type Happens = fn(&Scene);

/// A cache of config maps whose contents the test sets.
struct Cache {
    label: Arc<str>,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    objects: BTreeMap<ObjectKey, u64>,
    complete_to: u64,
    epoch: u64,
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&number.to_string()).unwrap()
}

impl CacheView for Cache {
    fn held(&self, object: &ObjectKey) -> Option<Held> {
        let number = *self.shown.lock().objects.get(object)?;
        Some(Held { version: Some(version(number)), ..Held::default() })
    }

    fn complete_to(&self) -> Option<ResourceVersion> {
        Some(version(self.shown.lock().complete_to.max(1)))
    }

    fn epoch(&self) -> u64 {
        self.shown.lock().epoch
    }
}

impl FollowedCache for Cache {
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

    fn follows(&self, target: &Target<'_>) -> bool {
        target.plural == "configmaps"
    }
}

struct Scene {
    memory: Memory,
    cache: Arc<Cache>,
    clock: ManualClock,
}

impl Scene {
    fn new() -> Self {
        let cache = Arc::new(Cache { label: "configmaps".into(), shown: Mutex::default() });
        let clock = ManualClock::new();
        let memory = Memory::new(vec![Arc::clone(&cache) as _], Arc::new(clock.clone()), OPTIONS);
        memory.expect_writes();
        Self { memory, cache, clock }
    }

    fn about_to_write(&self, name: &str) -> Pending {
        let (method, uri) = (http::Method::PUT, format!("/api/v1/namespaces/default/configmaps/{name}"));
        let uri = uri.parse().unwrap();
        self.memory.about_to_write(&Target::of(&method, &uri).unwrap()).unwrap()
    }

    fn wrote(&self, key: &ObjectKey, pending: Pending, number: u64) {
        self.wrote_with(key, pending, number, Some(BTreeMap::new()));
    }

    fn wrote_with(
        &self,
        key: &ObjectKey,
        pending: Pending,
        number: u64,
        labels: Option<BTreeMap<String, String>>,
    ) {
        let answer = Answer { object: None, version: Some(version(number)), uid: None, labels };
        self.memory.wrote(key, pending, answer);
    }

    fn write(&self, key: &ObjectKey, name: &str, number: u64) {
        self.wrote(key, self.about_to_write(name), number);
    }

    fn show(&self, name: &str, number: u64) {
        let mut shown = self.cache.shown.lock();
        shown.objects.insert(object(name), number);
        shown.complete_to = number;
    }

    fn event(&self, key: &ObjectKey, name: &str, number: u64) {
        let trigger = Trigger {
            cache: 0,
            object: object(name),
            version: Some(version(number)),
            uid: None,
            is_deletion: false,
        };
        self.memory.triggered(key, trigger);
    }

    /// Begins and ends a reconcile in which `during` happens. Returns whether a hot loop was reported.
    fn reconcile(&self, key: &ObjectKey, causes: &Causes, during: impl FnOnce()) -> bool {
        assert!(matches!(self.memory.begin(key, causes), Begin::Now(_)));
        during();
        self.memory.end(key, causes, End::Other).1.is_some()
    }

    fn notes(&self) -> usize {
        self.memory.keys.lock().notes.len()
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
fn own_events_are_known_whether_they_come_before_the_answer_or_after_it() {
    for is_event_first in [true, false] {
        let scene = Scene::new();
        let mut told = Vec::new();
        for number in 10..14 {
            let is_hot = scene.reconcile(&key(), &event(), || {
                let pending = scene.about_to_write("a");
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
            told.push(is_hot);
        }
        assert_eq!(told, [false, false, false, true], "the first had an external cause");
    }
}

#[test]
fn a_cause_from_elsewhere_makes_it_no_echo() {
    let others: [(&str, Happens, Causes); 4] = [
        ("another event", |scene| scene.event(&key(), "b", 7), event()),
        ("a trigger", |_| {}, causes(&[Cause::Event("a".into()), Cause::Other("webhook".into())])),
        ("a resync", |_| {}, causes(&[Cause::Event("a".into()), Cause::Resync])),
        ("more than are kept", |scene| (0..20).for_each(|_| scene.event(&key(), "a", 9)), event()),
    ];
    for (what, elsewhere, causes) in others {
        let scene = Scene::new();
        for number in 10..20 {
            let is_hot = scene.reconcile(&key(), &causes, || {
                scene.write(&key(), "a", number);
                scene.show("a", number);
                scene.event(&key(), "a", number);
                elsewhere(&scene);
            });
            assert!(!is_hot, "{what}");
        }
    }
}

#[test]
fn a_write_that_changed_nothing_is_known_by_the_version_from_before_it() {
    let requeue = causes(&[Cause::Requeue]);
    let count = |write: fn(&Scene, u64)| {
        let scene = Scene::new();
        scene.show("a", 5);
        (10..20).filter(|number| scene.reconcile(&key(), &requeue, || write(&scene, *number))).count()
    };
    assert_eq!(count(|scene, _| scene.write(&key(), "a", 5)), 1, "as the cache had it");
    let event_overtakes = |scene: &Scene, number| {
        let pending = scene.about_to_write("a");
        scene.show("a", number);
        scene.wrote(&key(), pending, number);
    };
    assert_eq!(
        count(event_overtakes),
        0,
        "what the cache shows by the time of the answer may be this very write"
    );
    let second_is_none = |scene: &Scene, number| {
        scene.write(&key(), "a", number);
        scene.write(&key(), "a", number);
        scene.show("a", number);
    };
    assert_eq!(count(second_is_none), 0, "not all of its writes changed nothing");
}

#[test]
fn a_write_that_changed_nothing_is_known_by_the_last_own_write_when_the_cache_lags() {
    let requeue = causes(&[Cause::Requeue]);
    let scene = Scene::new();
    scene.show("a", 5);
    scene.write(&key(), "a", 10);
    // The cache is complete but does not show the object as written, as with a transform that drops the
    // change.
    scene.cache.shown.lock().complete_to = 10;
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
        self.wrote_with(&key(), self.about_to_write("a"), number, labels);
    }

    fn begin(&self) -> Begin {
        let begin = self.memory.begin(&key(), &event());
        if !matches!(begin, Begin::Wait { .. }) {
            self.memory.end(&key(), &event(), End::Other);
        }
        begin
    }

    /// Begins after the timeout, and returns whether the informer selects the missed object.
    fn miss(&self) -> bool {
        assert!(matches!(self.begin(), Begin::Wait { .. }));
        self.clock.advance(TIMEOUT);
        let Begin::Late { waited, missed } = self.begin() else { panic!("the time is over") };
        assert_eq!(waited, TIMEOUT);
        let [Missed { cache: 0, informer, object, is_selected }] = missed.as_slice() else {
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
        assert_eq!(scene.begin(), Begin::Now(Freshness::Fresh));
    }
    let hidden = scene.memory.begin(&object("b"), &event());
    assert_eq!(hidden, Begin::Now(Freshness::Fresh));
}

#[test]
fn a_write_that_removes_an_object_from_the_selection_is_waited_for_until_the_cache_drops_it() {
    let scene = Scene::new();
    scene.show("a", 5);
    scene.write_with(6, Some(outside()));
    assert!(matches!(scene.begin(), Begin::Wait { .. }));
    scene.cache.shown.lock().objects.clear();
    assert!(matches!(scene.begin(), Begin::Now(Freshness::Waited(_))));
}

#[test]
fn an_object_created_inside_and_moved_outside_the_selection_is_waited_for_until_both_were_observed() {
    let scene = Scene::new();
    scene.write(&key(), "a", 5);
    scene.write_with(6, Some(outside()));
    assert!(matches!(scene.begin(), Begin::Wait { .. }), "the creation is on its way");
    scene.show("a", 5);
    assert!(matches!(scene.begin(), Begin::Wait { .. }), "the end is on its way");
    scene.cache.shown.lock().objects.clear();
    assert!(matches!(scene.begin(), Begin::Now(Freshness::Waited(_))));
}

#[test]
fn an_object_that_may_be_outside_the_selection_costs_one_timeout_until_the_cache_has_it() {
    let scene = Scene::new();
    scene.write_with(10, None);
    assert!(!scene.miss());
    for number in [11, 12] {
        scene.write_with(number, None);
        assert_eq!(scene.begin(), Begin::Now(Freshness::Fresh), "it was not observed before");
    }
    scene.show("a", 12);
    scene.write_with(13, None);
    assert!(scene.miss(), "the cache has it now, and is behind");
    scene.write_with(14, None);
    assert!(scene.miss());
    scene.cache.shown.lock().objects.clear();
    scene.write_with(15, None);
    assert!(!scene.miss(), "what was remembered is forgotten once the cache had the object");
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
fn the_objects_that_are_not_observable_are_bounded() {
    let mut keys = Scene::new().memory.keys.into_inner();
    let missed = |number: usize| Missed {
        cache: 0,
        informer: String::new(),
        object: object(&format!("m{number}")),
        is_selected: false,
    };
    for number in 0..=UNOBSERVABLE_LIMIT {
        keys.remember_unobservable(&[missed(number)]);
        assert!((1..=UNOBSERVABLE_LIMIT).contains(&keys.unobservable.len()));
    }
    assert!(keys.unobservable.contains(&(0, object(&format!("m{UNOBSERVABLE_LIMIT}")))));
}

#[test]
fn a_history_that_began_anew_ends_the_wait() {
    let scene = Scene::new();
    scene.write(&key(), "a", 1_000);
    assert!(matches!(scene.memory.begin(&key(), &event()), Begin::Wait { is_first: true, .. }));
    assert!(matches!(scene.memory.begin(&key(), &event()), Begin::Wait { is_first: false, .. }));
    scene.cache.shown.lock().epoch = 1;
    assert!(matches!(scene.memory.begin(&key(), &event()), Begin::Now(Freshness::Waited(_))));
}

#[test]
fn conflicts_in_a_row_are_counted_until_something_else_happens() {
    let scene = Scene::new();
    let end = |end| scene.memory.end(&key(), &event(), end).0;
    assert_eq!([end(End::Conflict), end(End::Conflict), end(End::Conflict)], [0, 1, 2]);
    assert_eq!((end(End::Other), end(End::Conflict)), (3, 0));
    end(End::Other);
    assert_eq!(scene.notes(), 0, "and then there is nothing to remember");
}

#[test]
fn what_is_remembered_is_bounded_by_what_is_written_within_a_window() {
    for is_looked_at_again in [true, false] {
        let scene = Scene::new();
        let mut most = 0;
        for number in 1..50_000_u64 {
            let key = object(&format!("m{number}"));
            scene.write(&key, "a", number);
            scene.show("a", number);
            if is_looked_at_again {
                scene.reconcile(&key, &event(), || {});
            }
            scene.clock.advance(Duration::from_millis(100));
            most = most.max(scene.notes());
        }
        // 600 keys write within a window of one minute.
        assert!(most <= 1_200, "{most}");
    }
}

#[test]
fn a_write_that_no_cache_shows_is_remembered_however_long_that_takes() {
    let scene = Scene::new();
    scene.write(&key(), "a", 1_000_000);
    for number in 1..5_000_u64 {
        scene.write(&object(&format!("m{number}")), "b", number);
        scene.show("b", number);
        scene.clock.advance(Duration::from_secs(1));
    }
    assert!(matches!(scene.memory.begin(&key(), &event()), Begin::Wait { is_first: true, .. }));
}

/// A step in the history of one key and its two objects.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(bool),
    Show,
    Pass(u64),
    Look,
}

proptest! {
    /// Compares with a list of all writes and the times at which they were shown.
    #[test]
    fn a_look_begins_when_every_write_is_shown_or_the_time_is_over(
        steps in prop::collection::vec(prop_oneof![
            2 => any::<bool>().prop_map(Step::Write),
            2 => Just(Step::Show),
            2 => (0..4_000_u64).prop_map(Step::Pass),
            3 => Just(Step::Look),
        ], 1..60)
    ) {
        let scene = Scene::new();
        let (mut next, mut unshown, mut waits_since) = (10, Vec::new(), None);
        for step in steps {
            match step {
                Step::Write(is_a) => {
                    next += 1;
                    let name = if is_a { "a" } else { "b" };
                    scene.write(&key(), name, next);
                    unshown.push((name, next, true));
                }
                Step::Show if unshown.is_empty() => {}
                Step::Show => {
                    let (name, number, _) = unshown.remove(0);
                    scene.show(name, number);
                }
                Step::Pass(millis) => scene.clock.advance(Duration::from_millis(millis)),
                Step::Look => {
                    let now = scene.clock.now();
                    let is_waited_for = unshown.iter().any(|(.., is_waited_for)| *is_waited_for);
                    let began = scene.memory.begin(&key(), &event());
                    let waited = now.saturating_sub(waits_since.unwrap_or(now));
                    if is_waited_for && waited < TIMEOUT {
                        let is_first = waits_since.is_none();
                        waits_since = Some(waits_since.unwrap_or(now));
                        let Begin::Wait { look_after, is_first: told_first } = began else {
                            return Err(TestCaseError::fail(format!("{began:?}")));
                        };
                        prop_assert_eq!(told_first, is_first);
                        prop_assert!(!look_after.is_zero() && waited + look_after <= TIMEOUT);
                        continue;
                    }
                    match (waits_since, is_waited_for) {
                        (None, _) => prop_assert_eq!(began, Begin::Now(Freshness::Fresh)),
                        (Some(_), false) => prop_assert_eq!(began, Begin::Now(Freshness::Waited(waited))),
                        (Some(_), true) => {
                            let is_late = matches!(began, Begin::Late { waited: told, .. } if told == waited);
                            prop_assert!(is_late, "{:?}", began);
                        }
                    }
                    waits_since = None;
                    for (.., is_waited_for) in &mut unshown {
                        *is_waited_for = false;
                    }
                    scene.memory.end(&key(), &event(), End::Other);
                }
            }
        }
    }
}
