//! Watches over a store: replaying a watch yields the same objects as a list.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    TokioClock,
    kinds::Registry,
    protobuf::{self, Envelope, MAGIC},
    rest::{
        represent::{IncludeObject, ObjectForm, Representer},
        stored::ServedKind,
    },
    schema::TypeRef,
    selector::LabelSelector,
    storage::{Content, HistoryWindow, MemoryStore, Precondition, Query},
};

const TABLE: &str = "configmaps";

struct Fixture {
    store: Arc<MemoryStore>,
    served: ServedKind,
    clock: Arc<dyn Clock>,
    shutdown: watch::Sender<bool>,
}

impl Fixture {
    fn new(events: usize) -> Self {
        let window = HistoryWindow { events, age: Duration::from_hours(1), bytes: usize::MAX };
        let kinds = Registry::new().kinds();
        Self {
            store: Arc::new(MemoryStore::new(window)),
            served: ServedKind::new(kinds.by_path("", "v1", "configmaps").unwrap(), &kinds),
            clock: Arc::new(TokioClock::starting_at(SystemTime::UNIX_EPOCH)),
            shutdown: watch::Sender::new(false),
        }
    }

    fn put(&self, name: &str, label: &str) -> u64 {
        self.put_in_namespace("ns", name, label)
    }

    fn put_in_namespace(&self, namespace: &str, name: &str, label: &str) -> u64 {
        let object = json!({"metadata": {"name": name, "namespace": namespace, "labels": {"l": label}}});
        let content = Content::new(&object, Box::default()).unwrap();
        let current = self.store.get(TABLE, &content.key());
        let expected = current.map_or(Precondition::Absent, |current| Precondition::Version(current.version));
        self.store.put(TABLE, content, expected, SystemTime::UNIX_EPOCH).unwrap().version
    }

    fn delete(&self, name: &str) {
        let key = format!("ns/{name}");
        if let Some(current) = self.store.get(TABLE, &key) {
            self.store.delete(TABLE, &key, current.version, SystemTime::UNIX_EPOCH).unwrap();
        }
    }

    fn selector(text: &str) -> Selector {
        Selector { labels: LabelSelector::parse(text).unwrap(), ..Selector::default() }
    }

    fn start(after: u64) -> Start {
        Start {
            initial: Vec::new(),
            after,
            marks_initial_end: false,
            sends_bookmarks: true,
            timeout: Duration::from_mins(5),
            bookmark_interval: Duration::from_mins(1),
        }
    }

    fn watch(&self, selector: &str, start: Start) -> Result<Watcher, Bytes> {
        self.watch_within("ns/", selector, self.frames(ObjectForm::Plain, false), start)
    }

    fn watch_within(
        &self,
        prefix: &str,
        selector: &str,
        frames: Frames,
        start: Start,
    ) -> Result<Watcher, Bytes> {
        let scope = WatchScope { prefix: prefix.into(), selector: Self::selector(selector) };
        let store: Arc<dyn Storage> = Arc::clone(&self.store) as Arc<dyn Storage>;
        let clock = Arc::clone(&self.clock);
        Watcher::new(store, TABLE, scope, frames, start, clock, self.shutdown.subscribe())
    }

    fn frames(&self, form: ObjectForm, is_protobuf: bool) -> Frames {
        let representer = Representer::new(self.served.clone(), form, SystemTime::UNIX_EPOCH);
        Frames::new(representer, is_protobuf)
    }

    /// Returns the versions of the objects that a selector matches now, by name.
    fn listed(&self, selector: &str) -> BTreeMap<String, u64> {
        let selector = Self::selector(selector);
        let is_match = |object: &Object| selector.matches(object);
        let query = Query { prefix: "ns/", start: "ns/", at: None, limit: None, filter: Some(&is_match) };
        let page = self.store.list(TABLE, query, SystemTime::UNIX_EPOCH).unwrap();
        page.objects.iter().map(|object| (object.content.name.to_string(), object.version)).collect()
    }
}

fn read(frame: &[u8]) -> (String, Value) {
    assert_eq!(frame.last(), Some(&b'\n'), "a frame is a line");
    let mut frame: Value = serde_json::from_slice(frame).unwrap();
    (frame["type"].as_str().unwrap().to_owned(), frame["object"].take())
}

/// Parses a frame in protobuf: four bytes of length, then the type of the event, then the object in its envelope.
fn read_protobuf(frame: &[u8], ty: &TypeRef) -> (String, Value) {
    let (length, message) = frame.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
    let at = message.windows(MAGIC.len()).position(|bytes| bytes == MAGIC).expect("an envelope");
    let [1_u8..=15, length, event @ ..] = message else { panic!("no type of event: {message:?}") };
    let event = std::str::from_utf8(&event[..usize::from(*length)]).unwrap().to_owned();
    let envelope = Envelope::open(&message[at + MAGIC.len()..]).unwrap();
    let mut object = protobuf::read(envelope.raw, ty).unwrap();
    object["kind"] = envelope.kind.into();
    (event, object)
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn drain(watcher: &mut Watcher) -> Vec<(String, Value)> {
    std::iter::from_fn(|| watcher.ready()).map(|frame| read(&frame)).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    /// The watcher reads all pending frames.
    Read,
    /// The watcher is disconnected and resumes from the last version it received.
    Resume,
    /// The watcher receives a bookmark.
    Bookmark,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..4_u8, 0..2_u8).prop_map(|(name, label)| Step::Put(name, label)),
        3 => (0..4_u8).prop_map(Step::Delete),
        2 => Just(Step::Read),
        1 => Just(Step::Resume),
        1 => Just(Step::Bookmark),
    ];
    prop::collection::vec(step, 0..50)
}

/// The state of a client: objects by name, and the last received version.
#[derive(Default)]
struct Client {
    objects: BTreeMap<String, u64>,
    last: u64,
}

impl Client {
    fn read(&mut self, watcher: &mut Watcher) {
        for (frame, object) in drain(watcher) {
            self.take(&frame, &object);
        }
    }

    fn take(&mut self, frame: &str, object: &Value) {
        let version = version(object);
        assert!(
            version > self.last || frame == "BOOKMARK" && version >= self.last,
            "versions increase strictly"
        );
        self.last = version;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match frame {
            "ADDED" => assert!(self.objects.insert(name, version).is_none(), "added once"),
            "MODIFIED" => {
                assert!(self.objects.insert(name, version).is_some(), "modified after it was added");
            }
            "DELETED" => assert!(self.objects.remove(&name).is_some(), "deleted after it was added"),
            "BOOKMARK" => {}
            other => panic!("a frame of type {other}"),
        }
    }
}

proptest! {
    #[test]
    fn replaying_a_watch_produces_the_listed_state(steps in steps(), selector in prop::sample::select(vec!["", "l=0"])) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let _guard = runtime.enter();
        let fixture = Fixture::new(1000);
        let mut client = Client { last: fixture.store.version(), ..Client::default() };
        let mut watcher = fixture.watch(selector, Fixture::start(client.last)).unwrap();
        for step in steps {
            match step {
                Step::Put(name, label) => {
                    fixture.put(&format!("n{name}"), &label.to_string());
                }
                Step::Delete(name) => fixture.delete(&format!("n{name}")),
                Step::Read => client.read(&mut watcher),
                Step::Resume => {
                    watcher = fixture.watch(selector, Fixture::start(client.last)).unwrap();
                }
                Step::Bookmark => {
                    let received = runtime.block_on(async {
                        loop {
                            let (frame, object) = read(&watcher.next().await.unwrap());
                            client.take(&frame, &object);
                            if frame == "BOOKMARK" {
                                return version(&object);
                            }
                        }
                    });
                    prop_assert_eq!(received, fixture.store.version());
                    prop_assert_eq!(&client.objects, &fixture.listed(selector), "nothing is missing up to a bookmark");
                    watcher = fixture.watch(selector, Fixture::start(client.last)).unwrap();
                }
            }
        }
        client.read(&mut watcher);
        prop_assert_eq!(client.objects, fixture.listed(selector));
    }
}

#[tokio::test(start_paused = true)]
async fn entering_and_leaving_a_selector_is_sent_as_added_and_deleted() {
    let fixture = Fixture::new(100);
    let mut watcher = fixture.watch("l=0", Fixture::start(fixture.store.version())).unwrap();
    fixture.put("a", "1");
    let added = fixture.put("a", "0");
    let modified = fixture.put("a", "0");
    let deleted = fixture.put("a", "1");
    fixture.delete("a");
    let frames = drain(&mut watcher);
    let received: Vec<(&str, u64, &str)> = frames
        .iter()
        .map(|(frame, object)| {
            (&**frame, version(object), object["metadata"]["labels"]["l"].as_str().unwrap())
        })
        .collect();
    // An object that ceases to match is sent as it last matched, with the version of the change.
    assert_eq!(received, [("ADDED", added, "0"), ("MODIFIED", modified, "0"), ("DELETED", deleted, "0")]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_behind_the_history_window_receives_an_expired_error() {
    let fixture = Fixture::new(5);
    let start = fixture.store.version();
    let mut watcher = fixture.watch("", Fixture::start(start)).unwrap();
    for step in 0..6 {
        fixture.put("a", &step.to_string());
    }
    let frames = drain(&mut watcher);
    let [(frame, status)] = frames.as_slice() else { panic!("{frames:?}") };
    assert_eq!(
        (frame.as_str(), &status["code"], &status["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert_eq!(watcher.next().await, None, "and that is the end");
    let (frame, status) = read(&fixture.watch("", Fixture::start(start)).unwrap_err());
    assert_eq!((frame.as_str(), &status["code"]), ("ERROR", &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_sends_bookmarks_and_ends_at_its_timeout() {
    let fixture = Fixture::new(100);
    let start = Start { timeout: Duration::from_secs(150), ..Fixture::start(fixture.store.version()) };
    let began = fixture.clock.now();
    let mut watcher = fixture.watch("l=none", start).unwrap();
    let newest = fixture.put("a", "0");
    let mut received = Vec::new();
    while let Some(frame) = watcher.next().await {
        let (frame, object) = read(&frame);
        let after = fixture.clock.now().saturating_sub(began).as_secs();
        received.push((frame, version(&object), after));
    }
    let bookmark = |after| ("BOOKMARK".to_owned(), newest, after);
    assert_eq!(
        received,
        [bookmark(60), bookmark(120), bookmark(148)],
        "every minute, and shortly before the end"
    );
    assert_eq!(fixture.clock.now().saturating_sub(began).as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn the_initial_events_end_with_a_bookmark_and_shutdown_ends_the_watch() {
    let fixture = Fixture::new(100);
    let newest = fixture.put("a", "0");
    let initial = vec![fixture.store.get(TABLE, "ns/a").unwrap()];
    let start = Start { initial, marks_initial_end: true, ..Fixture::start(newest) };
    let mut watcher = fixture.watch("", start).unwrap();
    let frames = drain(&mut watcher);
    assert_eq!(frames[0].0, "ADDED");
    assert_eq!(frames[1].0, "BOOKMARK");
    assert_eq!(frames[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(version(&frames[1].1), newest);
    fixture.shutdown.send_replace(true);
    assert_eq!(watcher.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_frame_is_encoded_once_for_all_watchers() {
    let fixture = Fixture::new(100);
    let start = fixture.store.version();
    let mut one = fixture.watch("", Fixture::start(start)).unwrap();
    let mut other = fixture.watch("", Fixture::start(start)).unwrap();
    fixture.put("a", "0");
    let (one, other) = (one.ready().unwrap(), other.ready().unwrap());
    assert_eq!(one.as_ptr(), other.as_ptr(), "the same bytes, not equal ones");
}

#[tokio::test(start_paused = true)]
async fn a_namespaced_watch_delivers_no_events_of_other_namespaces() {
    let fixture = Fixture::new(100);
    let start = || Fixture::start(1);
    let mut namespaced = fixture.watch("", start()).unwrap();
    let mut selected = fixture.watch("l=0", start()).unwrap();
    let mut everywhere =
        fixture.watch_within("", "", fixture.frames(ObjectForm::Plain, false), start()).unwrap();
    for namespace in ["n", "ns", "ns-2", "other"] {
        fixture.put_in_namespace(namespace, "a", "0");
    }
    let namespaces = |watcher: &mut Watcher| -> Vec<String> {
        let frames = drain(watcher);
        frames
            .iter()
            .map(|(_, object)| object["metadata"]["namespace"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(namespaces(&mut namespaced), ["ns"]);
    assert_eq!(namespaces(&mut selected), ["ns"]);
    assert_eq!(namespaces(&mut everywhere), ["n", "ns", "ns-2", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_wakes_a_waiting_watch() {
    let fixture = Fixture::new(100);
    let start = Start { sends_bookmarks: false, ..Fixture::start(fixture.store.version()) };
    let mut watcher = fixture.watch("", start).unwrap();
    let (frame, written) = tokio::join!(watcher.next(), async { fixture.put("a", "0") });
    let (frame, object) = read(&frame.expect("the event, before the watch times out"));
    assert_eq!((frame.as_str(), version(&object)), ("ADDED", written));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_later_version_sends_no_earlier_event_or_bookmark() {
    let fixture = Fixture::new(100);
    let start = Fixture::start(fixture.store.version() + 2);
    let mut watcher = fixture.watch("", start).unwrap();
    fixture.put("a", "0");
    assert_eq!(watcher.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn every_frame_of_a_protobuf_watch_is_protobuf() {
    let fixture = Fixture::new(5);
    let first = fixture.put("a", "0");
    let initial = vec![fixture.store.get(TABLE, "ns/a").unwrap()];
    let start = Start { initial, marks_initial_end: true, ..Fixture::start(first) };
    let mut watcher =
        fixture.watch_within("ns/", "", fixture.frames(ObjectForm::Plain, true), start).unwrap();
    let second = fixture.put("a", "1");
    let received: Vec<(String, u64, Value)> = std::iter::from_fn(|| watcher.ready())
        .map(|frame| {
            let (event, object) = read_protobuf(&frame, &fixture.served.kind.ty);
            (event, version(&object), object["kind"].clone())
        })
        .collect();
    let frame = |event: &str, version| (event.to_owned(), version, json!("ConfigMap"));
    assert_eq!(received, [frame("ADDED", first), frame("BOOKMARK", first), frame("MODIFIED", second)]);

    for step in 0..6 {
        fixture.put("a", &step.to_string());
    }
    let ty = TypeRef::builtin_named("io.k8s.apimachinery.pkg.apis.meta.v1.Status");
    let (event, status) = read_protobuf(&watcher.ready().unwrap(), &ty);
    assert_eq!((event.as_str(), &status["kind"], &status["code"]), ("ERROR", &json!("Status"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn a_watch_delivers_objects_in_the_requested_representation() {
    let fixture = Fixture::new(100);
    let first = fixture.put("a", "0");
    let v1 = || "v1".to_owned();
    let forms = [
        (ObjectForm::Plain, "ConfigMap"),
        (ObjectForm::Metadata { version: v1(), is_list: false }, "PartialObjectMetadata"),
        (ObjectForm::Table { version: v1(), include: IncludeObject::None }, "Table"),
    ];
    let mut watches = forms.map(|(form, kind)| {
        let initial = vec![fixture.store.get(TABLE, "ns/a").unwrap()];
        let start = Start { initial, ..Fixture::start(first) };
        (fixture.watch_within("ns/", "", fixture.frames(form, false), start).unwrap(), kind)
    });
    let second = fixture.put("a", "1");
    for (watcher, kind) in &mut watches {
        let frames = drain(watcher);
        let received: Vec<(&str, u64, &Value)> =
            frames.iter().map(|(frame, object)| (&**frame, version(object), &object["kind"])).collect();
        assert_eq!(received, [("ADDED", first, &json!(kind)), ("MODIFIED", second, &json!(kind))]);
        if *kind == "Table" {
            let has_columns: Vec<bool> =
                frames.iter().map(|(_, table)| table["columnDefinitions"].is_array()).collect();
            assert_eq!(has_columns, [true, false], "the first frame names the columns");
        }
    }
}
