//! The factory: one informer for the same objects, owned until a release, a shutdown or the end of the factory.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_core::DynamicObject;
use watchkeeper_client::{
    Client,
    dynamic::GroupVersionResource,
    list_watch::{ListScript, ScriptedSource, WatchHandle, WatchScript},
};
use watchkeeper_informer::{
    SharedInformerFactory,
    event::Event,
    factory::{FactoryBuilder, Scope},
    reflector::ReflectorOptions,
    status::SyncError,
};
use watchkeeper_test_support::{Reply, ScriptedServer};

use super::support::*;

fn plain_options() -> ReflectorOptions {
    let mut options = ReflectorOptions::default();
    options.streaming.is_enabled = false;
    options.history_check.on_reconnect = false;
    options.history_check.every = None;
    options
}

pub(super) fn scripted(source: &Source) -> FactoryBuilder {
    FactoryBuilder::without_client().reflector(plain_options()).source::<ConfigMap>(source.clone())
}

#[tokio::test(start_paused = true)]
async fn requests_for_the_same_objects_return_the_same_informer_which_lists_once() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    let factory = scripted(&source).build();
    let [one, two] = [factory.informer::<ConfigMap>(), factory.clone().informer::<ConfigMap>()];
    let other = factory.informer_in::<ConfigMap>(Scope::all().labels("app=web"));
    one.add_index("name", |object: &ConfigMap| object.metadata.name.clone()).unwrap();
    assert!(two.reader().index("name").is_ok() && other.reader().index("name").is_err());
    assert!(factory.release(&other));
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert_eq!(held(&two), ["a@3"]);
    assert_eq!(source.requests().len(), 2);
}

/// A factory whose one informer has synced, with its watch.
async fn synced_factory(source: &Source) -> (SharedInformerFactory, WatchHandle<ConfigMap>) {
    source.on_list(List::at("10").item(map("a", 3)));
    let server = source.open_watch(Watch::new());
    let factory = scripted(source).build();
    drop(factory.informer::<ConfigMap>());
    factory.start();
    within(factory.wait_for_sync()).await.expect("a list that is there is synced");
    (factory, server)
}

#[tokio::test(start_paused = true)]
async fn a_released_informer_stops_with_its_last_handle_and_the_next_request_makes_a_new_one() {
    let source = Source::new();
    let (factory, server) = synced_factory(&source).await;
    let informer = factory.informer::<ConfigMap>();
    let (lister, (_, registration)) = (informer.lister(), listen(&informer, options()));
    assert!(factory.release(&informer));
    assert!(!factory.release(&informer), "the factory does not own it any more");
    assert!(server.is_open() && !informer.is_stopped(), "it is held here");
    drop(informer);
    within(server.closed()).await;
    within(registration.remove()).await;
    assert_eq!(lister.keys().len(), 1, "the last state remains");
    within(factory.wait_for_sync()).await.unwrap();

    source.on_list(List::at("20").item(map("b", 15)));
    let _again = source.open_watch(Watch::new());
    let informer = factory.informer::<ConfigMap>();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert_eq!(held(&informer), ["b@15"]);
}

#[tokio::test(start_paused = true)]
async fn a_released_informer_that_is_held_is_shared_on_request_and_owned_by_the_factory_again() {
    let source = Source::new();
    let (factory, server) = synced_factory(&source).await;
    let informer = factory.informer::<ConfigMap>();
    assert!(factory.release(&informer));
    let again = factory.informer::<ConfigMap>();
    assert_eq!((held(&again), source.requests().len()), (vec!["a@3".to_owned()], 2), "it is the same one");
    let reader = informer.reader();
    drop((informer, again));
    server.send(Watch::new().added(map("b", 11)));
    until(|| reader.len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_released_informer_is_neither_started_nor_waited_for_by_the_factory() {
    let source = Source::new();
    let factory = scripted(&source).build();
    let informer = factory.informer::<ConfigMap>();
    assert!(factory.release(&informer));
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert!(!informer.is_started());
    assert!(!scripted(&source).build().release(&informer), "another factory has nothing to do with it");
}

#[tokio::test(start_paused = true)]
async fn a_release_ends_the_wait_for_the_informer_whether_or_not_it_is_held() {
    for is_held in [true, false] {
        // Without a script for its list, the informer does not sync.
        let factory = scripted(&Source::new()).build();
        let informer = factory.informer::<ConfigMap>();
        factory.start();
        let releasing = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(factory.release(&informer));
            is_held.then_some(informer)
        };
        let (waited, _held) = within(async { tokio::join!(factory.wait_for_sync(), releasing) }).await;
        waited.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_shut_down_is_replaced_on_request() {
    let source = Source::new();
    let (factory, server) = synced_factory(&source).await;
    let informer = factory.informer::<ConfigMap>();
    within(informer.shutdown()).await;
    assert!(!server.is_open());
    let new = factory.informer::<ConfigMap>();
    assert!(!new.is_stopped() && !factory.release(&informer) && factory.release(&new));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_factory_handle_stops_its_informers_except_those_that_are_held() {
    let (source, secrets) = (Source::new(), ScriptedSource::<Secret>::new());
    source.on_list(List::at("10").item(map("a", 3)));
    secrets.on_list(ListScript::at("11"));
    let (map_watch, secret_watch) = (source.open_watch(Watch::new()), secrets.open_watch(WatchScript::new()));
    let factory = scripted(&source).source::<Secret>(secrets).build();
    let maps = factory.informer::<ConfigMap>();
    let lister = factory.informer::<Secret>().lister();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    let clone = factory.clone();
    drop(factory);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(secret_watch.is_open(), "a clone is the same factory");
    drop(clone);
    within(secret_watch.closed()).await;
    assert!(lister.keys().is_empty() && map_watch.is_open());
    map_watch.send(Watch::new().added(map("b", 12)));
    reached(&maps, 12).await;
    drop(maps);
    within(map_watch.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_called_although_the_informer_it_was_added_to_is_not_kept() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let server = source.open_watch(Watch::new());
    let factory = scripted(&source).build();
    let delivered = Deliveries::new();
    let received = delivered.clone();
    factory.informer().add_handler(move |event: &Event<ConfigMap>| received.take_unchecked(event)).unwrap();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    server.send(Watch::new().added(map("b", 11)));
    assert_eq!(delivered.first(2).await, ["initial a@3", "add b@11"]);
}

#[tokio::test(start_paused = true)]
async fn a_lister_a_reader_and_an_index_follow_the_server_although_their_informer_is_not_kept() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let server = source.open_watch(Watch::new());
    let factory = scripted(&source).build();
    let lister = factory.informer::<ConfigMap>().lister();
    let reader = factory.informer::<ConfigMap>().reader();
    let name = |object: &ConfigMap| object.metadata.name.clone();
    let index = factory.informer::<ConfigMap>().add_index("name", name).unwrap();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert_eq!((lister.keys().len(), reader.len(), index.count("a")), (1, 1, 1));
    server.send(Watch::new().added(map("b", 11)));
    until(|| index.count("b") == 1).await;
    assert_eq!((lister.keys().len(), reader.len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn waiting_on_a_factory_that_was_not_started_is_an_error_that_names_the_informer_and_the_remedy() {
    let source = Source::new();
    let factory = scripted(&source).build();
    within(factory.wait_for_sync()).await.expect("without informers, the factory is synced");
    let _maps = factory.informer::<ConfigMap>();
    for waited in
        [within(factory.wait_for_sync()).await, factory.wait_for_sync_within(Duration::from_secs(5)).await]
    {
        let error = waited.unwrap_err();
        assert_eq!((&*error.informer, &error.source), ("v1/configmaps everywhere", &SyncError::NotStarted));
        let error = error.to_string();
        assert!(error.contains("v1/configmaps everywhere") && error.contains("call `start()`"), "{error}");
    }
    assert!(source.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_informer_requested_after_start_fails_the_wait_until_the_next_start() {
    let (source, secrets) = (Source::new(), ScriptedSource::<Secret>::new());
    source.on_list(List::at("10").item(map("a", 3)));
    secrets.on_list(ListScript::at("11"));
    let _watches = (source.open_watch(Watch::new()), secrets.open_watch(WatchScript::new()));
    let factory = scripted(&source).source::<Secret>(secrets.clone()).build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();

    let late = factory.informer::<Secret>();
    let error = within(factory.wait_for_sync()).await.unwrap_err();
    assert_eq!(error.informer, "v1/secrets everywhere");
    assert!(error.to_string().contains("has not been started"), "{error}");
    assert!(!late.has_synced() && maps.has_synced());
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    assert!(late.has_synced());
}

#[tokio::test(start_paused = true)]
async fn waiting_fails_with_the_informer_that_will_not_sync_and_why_and_goes_on_when_it_does() {
    let source = Source::new();
    let secrets = ScriptedSource::<Secret>::new();
    source.on_list(List::at("10"));
    let _server = source.open_watch(Watch::new());
    secrets.on_list(ListScript::refused(status(403, "Forbidden")));
    let factory = scripted(&source).source::<Secret>(secrets.clone()).build();
    let (_maps, informer) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    factory.start();
    let refused = within(factory.wait_for_sync()).await.unwrap_err();
    assert_eq!(refused.informer, "v1/secrets everywhere");
    assert!(matches!(refused.source, SyncError::Refused { .. }), "{refused}");

    secrets.on_list(ListScript::at("11"));
    let _watch = secrets.open_watch(WatchScript::new());
    at_last(|| factory.wait_for_sync()).await;
    assert!(informer.has_synced());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_its_deadline_and_a_type_without_a_source_fails_with_the_remedy() {
    let source = Source::new();
    let factory = scripted(&source).build();
    let _maps = factory.informer::<ConfigMap>();
    factory.start();
    let late = factory.wait_for_sync_within(Duration::from_secs(5)).await.unwrap_err();
    assert!(matches!(late.source, SyncError::Deadline { .. }), "{late}");
    let _secrets = factory.informer::<Secret>();
    factory.start();
    let missing = within(factory.wait_for_sync()).await.unwrap_err();
    assert!(missing.to_string().contains("neither a client nor a source"), "{missing}");
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_that_is_not_installed_yet_parks_and_resumes() {
    let source = ScriptedSource::<DynamicObject>::new();
    source.on_list(ListScript::refused(status(404, "NotFound")));
    let widgets: GroupVersionResource = "example.com/v1/widgets".parse().unwrap();
    let factory = FactoryBuilder::without_client()
        .reflector(plain_options())
        .source_of_resource(widgets.clone(), source.clone())
        .build();
    let informer = factory.for_resource(&widgets);
    factory.start();
    let missing = within(factory.wait_for_sync()).await.unwrap_err();
    assert!(matches!(missing.source, SyncError::NotServed { .. }), "{missing}");
    source.on_list(ListScript::at("10"));
    let _watch = source.open_watch(WatchScript::new());
    at_last(|| factory.wait_for_sync()).await;
    assert!(informer.status().is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_joins_every_task_and_later_requests_return_stopped_informers() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let server = source.open_watch(Watch::new());
    let factory = scripted(&source).build();
    let informer = factory.informer::<ConfigMap>();
    let (_, registration) = listen(&informer, options());
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    within(factory.shutdown()).await;
    assert!(!server.is_open() && informer.is_stopped() && registration.status().is_none());
    let late = factory.informer::<ConfigMap>();
    factory.start();
    assert!(late.is_stopped());
    assert!(late.add_handler(|_: &Event<ConfigMap>| {}).is_err());
    assert_eq!(within(late.wait_for_sync(None)).await, Err(SyncError::Stopped));
    within(factory.shutdown()).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_stops_a_released_informer_that_is_held() {
    let source = Source::new();
    let (factory, server) = synced_factory(&source).await;
    let informer = factory.informer::<ConfigMap>();
    assert!(factory.release(&informer));
    within(factory.shutdown()).await;
    assert!(!server.is_open() && informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_fails_a_wait_on_informers_that_have_not_synced_and_every_later_one() {
    let factory = scripted(&Source::new()).build();
    drop(factory.informer::<ConfigMap>());
    factory.start();
    let shutting_down = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        factory.shutdown().await;
    };
    let (waited, ()) = within(async { tokio::join!(factory.wait_for_sync(), shutting_down) }).await;
    for waited in [waited, within(factory.wait_for_sync()).await] {
        let error = waited.unwrap_err();
        assert_eq!((&*error.informer, error.source), ("v1/configmaps everywhere", SyncError::Stopped));
    }
}

#[tokio::test(start_paused = true)]
async fn each_type_has_its_own_resync_period_and_transform() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    let factory = scripted(&source)
        .resync_period(Duration::from_hours(10))
        .resync_period_of::<ConfigMap>(Duration::from_secs(30))
        .transform::<ConfigMap>(|mut object| {
            object.immutable = Some(true);
            Ok(object)
        })
        .configure::<ConfigMap>(|config| config.batch_keys(1))
        .build();
    let informer = factory.informer::<ConfigMap>();
    let (delivered, _) = listen(&informer, options());
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(delivered.all(), ["initial a@3", "sync a@3", "sync a@3"]);
    assert_eq!(informer.reader().get("a").unwrap().immutable, Some(true));
}

/// A server with an object in each of two namespaces, and a namespace object.
async fn server() -> ScriptedServer {
    let list = |kind: &str, items: &str| {
        let body = format!(
            r#"{{"kind":"{kind}List","apiVersion":"v1","metadata":{{"resourceVersion":"10"}},"items":[{items}]}}"#
        );
        Reply::json(200, body)
    };
    ScriptedServer::handler(move |request| {
        let target = request.target();
        if target.contains("watch=true") {
            let gate = watchkeeper_test_support::Gate::new();
            return Reply::chunked(200, &[("content-type", "application/json")]).wait_for(&gate);
        }
        match target.split('?').next().unwrap_or_default() {
            "/api/v1/namespaces/shop/configmaps" => {
                list("ConfigMap", r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":"1","resourceVersion":"3"}}"#)
            }
            "/api/v1/namespaces/mail/configmaps" => {
                list("ConfigMap", r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"mail","uid":"2","resourceVersion":"4"}}"#)
            }
            "/api/v1/namespaces" => {
                list("Namespace", r#"{"metadata":{"name":"shop","uid":"3","resourceVersion":"2"}}"#)
            }
            _ => Reply::json(
                403,
                r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}"#,
            ),
        }
    })
    .await
}

#[tokio::test]
async fn namespaces_and_selectors_reach_the_server_and_cluster_wide_kinds_are_in_no_namespace() {
    let server = server().await;
    let factory = SharedInformerFactory::builder(Client::from(server.client()))
        .reflector(plain_options())
        .scope(Scope::namespaces(["shop", "mail"]).labels("app=web").fields("metadata.name=a"))
        .build();
    let maps = factory.informer::<ConfigMap>();
    let namespaces = factory.informer::<Namespace>();
    let dynamic = factory.for_resource(&GroupVersionResource::new("", "v1", "configmaps"));
    let everywhere = factory.informer_in::<ConfigMap>(Scope::all());
    factory.start();
    let refused = factory.wait_for_sync().await.unwrap_err();
    assert_eq!(refused.informer, "v1/configmaps everywhere");
    assert!(refused.to_string().contains("list configmaps"), "{refused}");
    assert!(factory.release(&everywhere));
    factory.wait_for_sync().await.unwrap();
    assert_eq!(held(&maps), ["mail/a@4", "shop/a@3"]);
    assert_eq!(dynamic.lister().get("shop/a").unwrap().metadata.uid.as_deref(), Some("1"));
    assert_eq!(namespaces.reader().keys().len(), 1);
    let lists: Vec<String> = server.lines().into_iter().filter(|line| !line.contains("watch=")).collect();
    let selectors = "fieldSelector=metadata.name%3Da&labelSelector=app%3Dweb";
    for path in ["namespaces/shop/configmaps", "namespaces/mail/configmaps", "namespaces"] {
        assert!(
            lists.iter().any(|line| line.starts_with(&format!("GET /api/v1/{path}?"))
                && selectors.split('&').all(|selector| line.contains(selector))),
            "{path} in {lists:#?}"
        );
    }
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn factories_are_used_by_many_threads_concurrently() {
    let source = Source::new();
    let factory = scripted(&source).build();
    let kept = factory.informer::<ConfigMap>();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let informer = factory.informer::<ConfigMap>();
                    informer.add_index(format!("{:?}", std::thread::current().id()), |_: &ConfigMap| {
                        None::<String>
                    })
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
    });
    assert_eq!(kept.reader().index_names().len(), 9, "one for each thread, and the one by namespace");
}
