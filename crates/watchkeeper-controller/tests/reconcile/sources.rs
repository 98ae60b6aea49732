//! Sources that are available, unavailable, or become available late.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Secret},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper_controller::{
    Controller, Priority, Watch,
    manager::{RunError, Runnable as _},
    rbac::{Access, Verb},
};
use watchkeeper_informer::{SharedInformerFactory, factory::Scope, status::Status};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn the_initial_list_has_lower_priority_than_changes() {
    let server = server();
    let client = server.client();
    for number in 0..20 {
        create(&maps(&client), &map(&format!("old-{number:02}"))).await;
    }
    let log = Log::new();
    let reconcile_loop = Arc::new(Controller::<ConfigMap>::new(client.clone()).reconcile_with(log.noting()));
    reconcile_loop.prepare(CancellationToken::new()).await.unwrap();
    assert_eq!(reconcile_loop.queued(), 20, "after prepare all keys are queued");
    assert_eq!(log.all().len(), 0, "no reconcile before run");
    create(&maps(&client), &map("new")).await;
    patch(&maps(&client), "old-13", json!({"data": {"k": "v"}})).await;
    settle().await;
    let running = Running::start(&reconcile_loop);
    settle().await;
    running.stop().await;

    let logged = log.take();
    assert_eq!(logged.len(), 21);
    assert_eq!((logged[0].key.as_str(), logged[0].causes.as_str()), ("default/new", "event of ConfigMap"));
    assert_eq!((logged[1].key.as_str(), logged[1].priority), ("default/old-13", 0));
    assert_eq!(logged[1].causes, "initial list, event of ConfigMap");
    for later in &logged[2..] {
        assert_eq!((later.priority, later.causes.as_str()), (Priority::LOW.0, "initial list"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resync_enqueues_every_key_at_low_priority() {
    let server = server();
    let client = server.client();
    create(&maps(&client), &map("a")).await;
    let log = Log::new();
    let controller = Controller::<ConfigMap>::new(client).resync_period(Duration::from_secs(30));
    let running = started(controller.reconcile_with(log.noting())).await;
    log.take();
    tokio::time::sleep(Duration::from_secs(95)).await;
    running.stop().await;
    let logged: Vec<_> =
        log.take().into_iter().map(|logged| (logged.key, logged.causes, logged.priority)).collect();
    let resync = ("default/a".to_owned(), "resync".to_owned(), Priority::LOW.0);
    assert_eq!(logged, [resync.clone(), resync.clone(), resync]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_watch_is_forbidden_does_not_start_and_reports_the_reason() {
    let server = server();
    let log = Log::new();
    let controller = Controller::<ConfigMap>::new(refused(&server, "/secrets")).owns::<Secret>();
    let reconcile_loop = controller.reconcile_with(log.noting());
    let error = reconcile_loop.run(CancellationToken::new()).await.unwrap_err();
    let RunError::Prepare { name, source } = &error else { panic!("{error}") };
    assert_eq!(name, "configmap");
    let reason = source.to_string();
    for word in ["secrets", "forbidden", "optional"] {
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(log.all().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_watch_does_not_delay_other_watches() {
    let server = server();
    let client = refused(&server, "/secrets");
    let api = maps(&client);
    let log = Log::new();
    let controller = Controller::<ConfigMap>::new(client).owns_with(Watch::<Secret>::new().optional());
    let reconcile_loop = Arc::new(controller.reconcile_with(log.noting()));
    let running = Running::start(&reconcile_loop);
    settle().await;
    log.take();

    let mut made = Vec::new();
    for number in 0..300 {
        let name = format!("m{number}");
        create(&api, &map(&name)).await;
        made.push((format!("default/{name}"), log.now()));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let sources = reconcile_loop.sources();
    running.stop().await;

    let logged = log.take();
    assert_eq!(logged.len(), 300);
    let mut latencies: Vec<_> = made
        .iter()
        .zip(&logged)
        .map(|((key, at), logged)| {
            assert_eq!(*key, logged.key);
            logged.at.saturating_sub(*at)
        })
        .collect();
    latencies.sort();
    assert!(latencies[297] < Duration::from_secs(1), "p99 is {:?}", latencies[297]);

    assert_eq!(sources.iter().map(|source| source.is_optional).collect::<Vec<_>>(), [false, true]);
    assert!(sources[0].status.is_synced());
    assert!(sources[1].name.contains("secrets"), "{:?}", sources[1]);
    let Status::Failing { message, attempts, is_transient: false, .. } = &sources[1].status else {
        panic!("{:?}", sources[1])
    };
    assert!(message.contains("forbidden") && *attempts > 1, "{message} after {attempts}");
}

#[tokio::test(start_paused = true)]
async fn an_optional_kind_joins_when_it_is_installed() {
    let server = server();
    let client = server.client();
    let (of_foos, of_maps) = (Log::new(), Log::new());
    let primary = Controller::<Foo>::new(client.clone()).named("foos").optional();
    let primary = started(primary.reconcile_with(of_foos.noting())).await;
    let secondary = Controller::<ConfigMap>::new(client.clone())
        .watches_with(Watch::<Foo>::new().optional(), |_| vec![key("default/mapped")]);
    let secondary = started(secondary.reconcile_with(of_maps.noting())).await;
    of_foos.take();
    of_maps.take();
    create(&maps(&client), &map("a")).await;
    settle().await;
    assert_eq!(of_maps.take_keys(), ["default/a"], "other sources are not affected");

    install_foos(&client).await;
    let foos = watchkeeper_client::Client::from(client).resource::<Foo>().namespace("default");
    settle().await;
    create(&foos, &foo("x")).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(
        (of_foos.take_keys(), of_maps.take_keys()),
        (vec!["default/x".into()], vec!["default/mapped".to_owned()])
    );
    create(&foos, &foo("y")).await;
    settle().await;
    let logged = of_foos.take();
    assert_eq!((logged[0].key.as_str(), logged[0].causes.as_str()), ("default/y", "event of Foo"));
    primary.stop().await;
    secondary.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_installed_fails_the_start_unless_it_is_optional() {
    let server = server();
    let reconcile_loop = Controller::<Foo>::new(server.client()).reconcile_with(Log::new().noting());
    let error = reconcile_loop.prepare(CancellationToken::new()).await.unwrap_err();
    let RunError::Prepare { source, .. } = error else { panic!("{error}") };
    assert!(source.to_string().contains("not served"), "{source}");
}

#[tokio::test(start_paused = true)]
async fn informers_are_shared_and_handlers_are_removed_with_the_loop() {
    let server = server();
    let factory = SharedInformerFactory::new(server.client());
    let informer = factory.informer::<ConfigMap>();
    let (one, two) = (Log::new(), Log::new());
    let first = Arc::new(Controller::<ConfigMap>::on(&factory).named("one").reconcile_with(one.noting()));
    let second = Arc::new(
        Controller::<Deployment>::on(&factory)
            .watches::<ConfigMap, _>(|_| vec![key("default/all")])
            .reconcile_with(two.noting()),
    );
    let (first_running, second_running) = (Running::start(&first), Running::start(&second));
    settle().await;
    assert_eq!(informer.handler_count(), 2);
    create(&maps(&server.client()), &map("a")).await;
    settle().await;
    assert_eq!(one.take().last().map(|logged| logged.key.clone()).as_deref(), Some("default/a"));
    assert_eq!(two.take().last().map(|logged| logged.key.clone()).as_deref(), Some("default/all"));
    first_running.stop().await;
    second_running.stop().await;
    drop((first, second));
    settle().await;
    assert_eq!(informer.handler_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_access_of_a_controller_covers_its_watches_and_declared_uses() {
    let server = server();
    let access = |group: &str, resource: &str, namespace: Option<&str>, verbs: &[Verb]| Access {
        group: group.into(),
        resource: resource.into(),
        namespace: namespace.map(Into::into),
        verbs: verbs.iter().copied().collect(),
    };
    let factory = SharedInformerFactory::new(server.client());
    let shop = || Scope::namespaces(["shop", "mail"]);
    let reconcile_loop = Controller::on_with(&factory, Watch::<Deployment>::within(shop()))
        .owns_with(Watch::<ConfigMap>::within(Scope::namespace("shop")))
        .owns::<Secret>()
        .uses::<ConfigMap>(&[Verb::Create])
        .uses::<Namespace>(&[Verb::Get])
        .uses_status::<Deployment>(&[Verb::Patch])
        .uses_subresource::<Deployment>("scale", &[Verb::Update])
        .reconcile_with(Log::new().noting());
    assert_eq!(
        reconcile_loop.access(),
        [
            access("apps", "deployments", Some("mail"), &Verb::READ),
            access("apps", "deployments", Some("shop"), &Verb::READ),
            access("", "configmaps", Some("shop"), &Verb::READ),
            access("", "secrets", None, &Verb::READ),
            access("", "configmaps", Some("mail"), &[Verb::Create]),
            access("", "configmaps", Some("shop"), &[Verb::Create]),
            access("", "namespaces", None, &[Verb::Get]),
            access("apps", "deployments/status", Some("mail"), &[Verb::Patch]),
            access("apps", "deployments/status", Some("shop"), &[Verb::Patch]),
            access("apps", "deployments/scale", Some("mail"), &[Verb::Update]),
            access("apps", "deployments/scale", Some("shop"), &[Verb::Update]),
        ]
    );
}
