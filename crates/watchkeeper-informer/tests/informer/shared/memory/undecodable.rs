//! Objects that are JSON and no `ConfigMap`: their `data` is a number.

use kube_core::{DynamicObject, Selector, discovery::ApiResource};
use serde_json::json;
use watchkeeper_client::list_watch::{ListScript, ScriptedSource, WatchScript};
use watchkeeper_informer::{
    GetError,
    event::Event,
    handler::{FilteringHandler, HandlerOptions},
    reflector::QuarantineCause,
};

use super::*;

/// An object on the server.
fn sent(key: &str, version: u64, data: &serde_json::Value) -> DynamicObject {
    let kind = ApiResource::erase::<ConfigMap>(&());
    let mut object = DynamicObject::new(key, &kind).data(json!({ "data": data }));
    object.metadata = map(key, version).metadata;
    object.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    object
}

fn good(key: &str, version: u64) -> DynamicObject {
    sent(key, version, &json!({ "version": version.to_string() }))
}

fn broken(key: &str, version: u64) -> DynamicObject {
    sent(key, version, &json!(5))
}

fn events() -> WatchScript<DynamicObject> {
    WatchScript::new()
}

struct Broken {
    informer: Informer,
    source: ScriptedSource<DynamicObject>,
    server: WatchHandle<DynamicObject>,
}

impl Broken {
    /// An informer of good objects `a` and `c`, and a broken one `b`.
    async fn synced(policy: MemoryPolicy) -> Self {
        let source = ScriptedSource::new();
        source.on_list(ListScript::at("10").item(good("a", 3)).item(broken("b", 4)).item(good("c", 5)));
        let server = source.open_watch(WatchScript::new());
        let encoded = Encoded::<DynamicObject, _>::new(source.clone());
        let informer =
            SharedIndexInformer::new(plain_of::<ConfigMap>(encoded).memory(policy).measured_objects(0));
        informer.start();
        within(informer.wait_for_sync(None)).await.expect("a list that is there is synced");
        Self { informer, source, server }
    }

    async fn send(&self, events: WatchScript<DynamicObject>, version: u64) {
        self.server.send(events);
        reached(&self.informer, version).await;
    }

    fn quarantined(&self) -> Vec<String> {
        let quarantined = self.informer.quarantined();
        assert!(quarantined.iter().all(|object| object.cause == QuarantineCause::Decode));
        let in_short = |object: &watchkeeper_informer::reflector::Quarantined| {
            format!("{}@{}", object.key, object.resource_version.as_deref().unwrap_or("none"))
        };
        quarantined.iter().map(in_short).collect()
    }

    fn read(&self, key: &str) -> Result<Arc<ConfigMap>, GetError> {
        self.informer.lister().get(key)
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_decoded_on_receipt_is_quarantined_on_receipt() {
    for policy in [MemoryPolicy::Decoded, MemoryPolicy::Auto] {
        let site = Broken::synced(policy).await;
        assert_eq!(held(&site.informer), ["a@3", "c@5"], "{policy:?}");
        assert_eq!(site.quarantined(), ["b@4"], "{policy:?}");
        assert!(site.read("b").unwrap_err().is_not_found());
        site.send(events().modified(broken("a", 11)), 11).await;
        assert_eq!(held(&site.informer), ["a@3", "c@5"], "the last good version stays");
        assert_eq!(site.quarantined(), ["a@11", "b@4"], "{policy:?}");
        site.send(events().modified(good("a", 12)).deleted(broken("b", 13)), 13).await;
        assert_eq!((held(&site.informer).join(" "), site.quarantined().len()), ("a@12 c@5".to_owned(), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_packed_object_is_in_the_cache_with_its_metadata_and_reads_of_it_name_it() {
    let site = Broken::synced(MemoryPolicy::Packed).await;
    assert_eq!(held(&site.informer), ["a@3", "b@4", "c@5"]);
    assert_eq!(site.quarantined(), Vec::<String>::new(), "nothing was decoded");
    let cached = site.informer.reader().cached("b").unwrap();
    assert_eq!(cached.metadata().label("app"), Some("web"));

    let error = cached.get().unwrap_err();
    assert_eq!((&*error.key, error.resource_version.as_deref()), ("b", Some("4")));
    assert_eq!(error.cause, QuarantineCause::Decode);
    let text = error.to_string();
    assert!(text.starts_with("object \"b\" at resourceVersion 4 cannot be decoded: "), "{text}");
    assert!(text.contains("invalid type: integer, expected a map"), "{text}");
    assert!(text.ends_with("; correct the object, or the type"), "{text}");

    let read = site.read("b").unwrap_err();
    assert_eq!(read, GetError::Undecodable(error.clone()));
    assert!(!read.is_not_found());
    assert_eq!(read.status().code, 500);
    assert_eq!(site.informer.lister().view().get("b").unwrap_err(), GetError::Undecodable(error));
    assert!(site.informer.reader().get("b").is_none() && site.informer.reader().contains("b"));
    assert_eq!(site.quarantined(), ["b@4"], "reported once for all reads");
    assert!(cached.decoded().is_none());
}

#[tokio::test(start_paused = true)]
async fn lists_and_indexes_skip_an_undecodable_object_and_no_other() {
    let site = Broken::synced(MemoryPolicy::Packed).await;
    let by_version = site
        .informer
        .add_index("version", |object: &ConfigMap| object.data.as_ref()?.get("version").cloned())
        .unwrap();
    assert_eq!(site.quarantined(), ["b@4"]);
    assert_eq!(*by_version.values(), ["3".into(), "5".into()]);
    assert_eq!(by_version.health().failures, 1);
    let failure = by_version.health().last_failure.unwrap();
    assert!(failure.key == "b" && failure.reason.contains("cannot be decoded"), "{failure}");
    let names = |objects: Vec<Arc<ConfigMap>>| {
        let mut names: Vec<_> = objects.iter().filter_map(|object| object.metadata.name.clone()).collect();
        names.sort();
        names
    };
    let snapshot = site.informer.snapshot();
    assert_eq!(names(site.informer.lister().list(&Selector::default())), ["a", "c"]);
    assert_eq!(names(site.informer.reader().list()), ["a", "c"]);
    assert_eq!(names(snapshot.list()), ["a", "c"]);
    assert_eq!(names(snapshot.filter(|_| true)), ["a", "c"]);
    assert_eq!((snapshot.len(), snapshot.iter_cached().count()), (3, 3));
    assert_eq!(site.quarantined(), ["b@4"]);

    site.send(events().modified(good("b", 11)), 11).await;
    assert_eq!(by_version.keys("11"), ["b".parse().unwrap()]);
    assert_eq!(names(site.informer.reader().list()), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn the_next_good_version_or_the_deletion_releases_an_undecodable_object() {
    let mut site = Broken::synced(MemoryPolicy::Packed).await;
    let (delivered, _) = listen(&site.informer, HandlerOptions::new("keys"));
    delivered.first(3).await;
    assert!(site.read("b").is_err());
    site.send(events().modified(good("b", 11)), 11).await;
    assert!(site.read("b").is_ok());
    delivered.first(4).await;
    until(|| site.quarantined().is_empty()).await;

    site.send(events().modified(broken("b", 12)), 12).await;
    assert!(site.read("b").is_err());
    site.send(events().modified(broken("b", 13)), 13).await;
    assert!(site.read("b").is_err());
    delivered.first(6).await;
    assert_eq!(site.quarantined(), ["b@13"], "the newer version of two");

    let list = || ListScript::at("20").item(good("a", 3)).item(broken("b", 13)).item(good("c", 5));
    site.source.on_list(list());
    let again = site.source.open_watch(WatchScript::new());
    site.server.send(events().error(status(410, "Expired")));
    reached(&site.informer, 20).await;
    assert_eq!(site.quarantined(), ["b@13"], "a relist of the same version changes nothing");
    site.server = again;

    site.send(events().deleted(broken("b", 21)), 21).await;
    let all = delivered.first(7).await;
    assert_eq!(all[3..], ["update b@4 to b@11", "update b@11 to b@12", "update b@12 to b@13", "delete b@21"]);
    until(|| site.quarantined().is_empty()).await;
    assert!(site.read("b").unwrap_err().is_not_found());
    assert_eq!(held(&site.informer), ["a@3", "c@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_of_an_old_undecodable_version_does_not_hide_the_current_one() {
    let site = Broken::synced(MemoryPolicy::Packed).await;
    let old = site.informer.reader().cached("b").unwrap();
    site.send(events().modified(broken("b", 11)), 11).await;
    assert!(site.read("b").is_err());
    assert!(old.get().is_err());
    drop(old);
    assert_eq!(site.quarantined(), ["b@11"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_received_twice_does_not_release_an_undecodable_object() {
    let site = Broken::synced(MemoryPolicy::Packed).await;
    site.send(events().modified(broken("b", 11)), 11).await;
    assert!(site.read("b").is_err());
    site.send(events().modified(broken("b", 11)).modified(good("a", 12)), 12).await;
    assert_eq!(site.quarantined(), ["b@11"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_filter_admits_an_undecodable_object_and_a_metadata_filter_decodes_nothing() {
    let site = Broken::synced(MemoryPolicy::Packed).await;
    let [by_object, by_metadata] = [Deliveries::new(), Deliveries::new()];
    let received = by_object.clone();
    let is_nine = FilteringHandler::new(
        |object: &ConfigMap| {
            object.data.as_ref().is_some_and(|data| data.get("version").is_some_and(|it| it == "11"))
        },
        move |event: &Event<ConfigMap>| received.take_unchecked(event),
    );
    let received = by_metadata.clone();
    let is_b = FilteringHandler::by_metadata(
        |object| object.name() == "b",
        move |event: &Event<ConfigMap>| received.take_unchecked(event),
    );
    let _registrations = [
        site.informer.add_handler_with(is_nine, HandlerOptions::new("by object")).unwrap(),
        site.informer.add_handler_with(is_b, HandlerOptions::new("by metadata")).unwrap(),
    ];
    by_metadata.first(1).await;
    by_object.first(1).await;
    for script in [
        events().modified(good("b", 11)),
        events().modified(broken("b", 12)),
        events().modified(good("b", 13)),
        events().deleted(good("b", 14)),
    ] {
        site.server.send(script);
    }
    let all = by_metadata.first(5).await;
    assert_eq!(all.last().map(String::as_str), Some("delete b@14"));
    // An undecodable object matches, and a good one of another version than 11 does not.
    assert_eq!(
        by_object.first(4).await,
        ["initial b@4", "update b@4 to b@11", "update b@11 to b@12", "delete b@12"]
    );
    assert_eq!(by_object.all().len(), 4);
}
