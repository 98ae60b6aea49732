//! Start, stop, leadership and access checks of a manager.

use super::*;

#[tokio::test(start_paused = true)]
async fn runnables_start_in_order_and_stop_in_reverse() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let faults = Faults::planned({
        let log = log.clone();
        move |method, path| {
            if path.contains("/leases") && *method == Method::POST {
                log.add("the lease is requested");
            }
            Fate::Pass
        }
    });
    let mut manager = manager(faults.client(&server), "first");
    let watched = manager.factory().informer::<ConfigMap>();
    let at_stop = watched.clone();
    let shared = log.clone();
    manager.add(LoggedRunnable::new("everywhere", &log).everywhere()).unwrap();
    manager
        .add(
            LoggedRunnable::new("controller", &log)
                .preparing(move |_| {
                    let watched: SharedIndexInformer<ConfigMap> = watched.clone();
                    async move {
                        watched.start();
                        watched.wait_for_sync(None).await.map_err(|source| RunError::Prepare {
                            name: "controller".into(),
                            source: Box::new(source),
                        })
                    }
                })
                .running(move |stop| {
                    let shared = shared.clone();
                    async move {
                        stop.cancelled().await;
                        tokio::time::sleep(SECOND).await;
                        shared.add("work finished");
                        Ok(())
                    }
                }),
        )
        .unwrap();
    let mut running = Running::start(manager);
    running.leads().await;
    tokio::time::sleep(SECOND).await;
    assert!(at_stop.has_synced());
    let leases: Api<Lease> = Api::namespaced(server.client(), "default");
    running.stop.cancel();
    while log.lines().last().is_some_and(|line| line != "everywhere has ended") {
        let holder = leases.get("lock.example.com").await.unwrap().spec.unwrap().holder_identity.unwrap();
        let is_working = !log.lines().iter().any(|line| line == "work finished");
        assert!(!is_working || holder == "first", "the lease was released during the work");
        tokio::time::sleep(SECOND / 20).await;
    }
    running.ended().await.unwrap();
    let spec = leases.get("lock.example.com").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some(""), "released at the end");
    let order = [
        "controller is prepared",
        "the lease is requested",
        "controller runs",
        "work finished",
        "controller has ended",
        "everywhere has ended",
    ];
    let places: Vec<usize> = order.iter().map(|what| log.index_of(what)).collect();
    assert!(places.is_sorted(), "{:?}", log.lines());
    assert!(log.index_of("everywhere runs") < log.index_of("controller runs"));
    assert!(at_stop.is_stopped(), "caches are stopped");
}

#[tokio::test(start_paused = true)]
async fn a_standby_replica_has_warm_caches_and_takes_over() {
    let (server, logs) = (ApiServer::in_process(), [EventLog::default(), EventLog::default()]);
    let mut replicas = Vec::new();
    for (identity, log) in ["first", "second"].into_iter().zip(&logs) {
        let mut manager = manager(server.client(), identity);
        manager.add(LoggedRunnable::new("controller", log)).unwrap();
        manager.add(LoggedRunnable::new("everywhere", log).everywhere()).unwrap();
        let mut running = Running::start(manager);
        if identity == "first" {
            running.leads().await;
        }
        replicas.push(running);
    }
    tokio::time::sleep(SECOND * 30).await;
    assert_eq!(
        logs[1].lines(),
        [
            "controller prepares",
            "controller is prepared",
            "everywhere prepares",
            "everywhere is prepared",
            "everywhere runs"
        ]
    );
    let stop_requested = Instant::now();
    replicas[0].end().await.unwrap();
    replicas[1].leads().await;
    assert!(stop_requested.elapsed() <= SECOND * 2, "{:?}", stop_requested.elapsed());
    tokio::time::sleep(SECOND / 100).await;
    assert!(logs[1].lines().contains(&"controller runs".to_owned()));
    replicas[1].end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_of_one_runnable_stops_the_others_and_is_returned() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("good", &log)).unwrap();
    manager
        .add(LoggedRunnable::new("bad", &log).running(|_| async {
            tokio::time::sleep(SECOND).await;
            Err(failure("bad"))
        }))
        .unwrap();
    let mut running = Running::start(manager);
    let error = running.ended().await.unwrap_err();
    assert!(matches!(&error, ManagerError::Failed(RunError::Run { name, .. }) if name == "bad"), "{error}");
    assert_eq!(error.exit_code(), 1);
    assert!(log.lines().contains(&"good has ended".to_owned()));
    let lease = Api::<Lease>::namespaced(server.client(), "default").get("lock.example.com").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some(""), "released after a failure too");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_one_runnable_stops_the_others_and_is_returned() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("good", &log)).unwrap();
    manager.add(LoggedRunnable::new("bad", &log).running(|_| async { panic!("at the disco") })).unwrap();
    let error = Running::start(manager).ended().await.unwrap_err();
    assert!(
        matches!(&error, ManagerError::Panicked { name, message } if name == "bad" && message == "at the disco"),
        "{error}"
    );
    assert!(log.lines().contains(&"good has ended".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_finishes_does_not_stop_the_manager() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("once", &log).running(|_| async { Ok(()) })).unwrap();
    manager.add(LoggedRunnable::new("good", &log)).unwrap();
    let mut running = Running::start(manager);
    running.leads().await;
    tokio::time::sleep(SECOND * 100).await;
    assert!(log.lines().contains(&"once has ended".to_owned()));
    assert!(!log.lines().contains(&"good has ended".to_owned()));
    running.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_cannot_be_prepared_stops_the_manager_before_any_work() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("good", &log)).unwrap();
    manager
        .add(LoggedRunnable::new("bad", &log).preparing(|_| async {
            Err(RunError::Prepare { name: "bad".into(), source: "forbidden".into() })
        }))
        .unwrap();
    let error = Running::start(manager).ended().await.unwrap_err();
    assert!(matches!(&error, ManagerError::Prepare(_)), "{error}");
    assert_eq!(error.exit_code(), 3);
    assert!(!log.lines().contains(&"good runs".to_owned()));
    assert!(
        Api::<Lease>::namespaced(server.client(), "default")
            .get_opt("lock.example.com")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_is_not_prepared_in_time_is_named() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("good", &log)).unwrap();
    manager
        .add(LoggedRunnable::new("slow", &log).preparing(|stop| async move {
            stop.cancelled().await;
            Ok(())
        }))
        .unwrap();
    let started = Instant::now();
    let error = Running::start(manager).ended().await.unwrap_err();
    assert!(matches!(&error, ManagerError::PrepareTimeout { names, .. } if names == &["slow"]), "{error}");
    assert_eq!((error.exit_code(), started.elapsed()), (3, SECOND * 120));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_the_work_and_has_its_own_exit_code() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("controller", &log)).unwrap();
    // This runnable does not end: the others must not wait for it beyond the lease duration.
    manager.add(LoggedRunnable::new("stubborn", &log).running(|_| std::future::pending())).unwrap();
    let mut running = Running::start(manager);
    running.leads().await;
    tokio::time::sleep(SECOND).await;
    let theft = Patch::Merge(json!({"spec": {"holderIdentity": "thief"}}));
    let leases: Api<Lease> = Api::namespaced(server.client(), "default");
    leases.patch("lock.example.com", &PatchParams::default(), &theft).await.unwrap();
    let stolen = Instant::now();
    let error = running.ended().await.unwrap_err();
    assert!(matches!(&error, ManagerError::LeaseLost(_)), "{error}");
    assert_eq!(error.exit_code(), 6);
    assert!(stolen.elapsed() <= SECOND * 8, "{:?}", stolen.elapsed());
    assert!(log.lines().contains(&"controller has ended".to_owned()));
    let spec = leases.get("lock.example.com").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("thief"));
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_does_not_end_in_time_is_dropped_and_named() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = manager(server.client(), "first");
    manager.add(LoggedRunnable::new("good", &log)).unwrap();
    manager.add(LoggedRunnable::new("stubborn", &log).running(|_| std::future::pending())).unwrap();
    let mut running = Running::start(manager);
    running.leads().await;
    tokio::time::sleep(SECOND).await;
    let stop_requested = Instant::now();
    let error = running.end().await.unwrap_err();
    assert!(matches!(&error, ManagerError::StopTimeout { names, .. } if names == &["stubborn"]), "{error}");
    assert_eq!((error.exit_code(), stop_requested.elapsed()), (7, SECOND * 30));
    assert!(log.lines().contains(&"good has ended".to_owned()));
    let lease = Api::<Lease>::namespaced(server.client(), "default").get("lock.example.com").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some("first"),
        "what was dropped may have left something behind"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_preparation_or_while_waiting_for_leadership_takes_effect() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut preparing = manager(server.client(), "first");
    preparing
        .add(LoggedRunnable::new("slow", &log).preparing(|stop| async move {
            stop.cancelled().await;
            Ok(())
        }))
        .unwrap();
    let mut running = Running::start(preparing);
    tokio::time::sleep(SECOND).await;
    running.end().await.unwrap();

    let mut leader = Running::start(manager(server.client(), "first"));
    leader.leads().await;
    let mut waiting = manager(server.client(), "second");
    waiting.add(LoggedRunnable::new("controller", &log)).unwrap();
    let mut running = Running::start(waiting);
    tokio::time::sleep(SECOND * 5).await;
    running.end().await.unwrap();
    assert!(!log.lines().contains(&"controller runs".to_owned()));
    leader.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_leader_election_runnables_run_once_they_are_prepared() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = Manager::builder(server.client()).time(time()).options(quiet()).build();
    assert!(manager.leadership().is_none());
    manager
        .add(LoggedRunnable::new("controller", &log).preparing(|_| async {
            tokio::time::sleep(SECOND).await;
            Ok(())
        }))
        .unwrap();
    let mut running = Running::start(manager);
    tokio::time::sleep(SECOND * 2).await;
    running.end().await.unwrap();
    assert_eq!(
        log.lines(),
        ["controller prepares", "controller is prepared", "controller runs", "controller has ended"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_fenced_manager_writes_only_while_it_leads() {
    let server = ApiServer::in_process();
    let mut options = quiet();
    options.fences_writes = true;
    let manager = Manager::builder(server.client())
        .time(time())
        .options(options)
        .leader_election(election("first"))
        .build();
    let configs: Api<ConfigMap> = Api::default_namespaced(manager.client().kube());
    let config: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "x"}})).unwrap();
    assert!(configs.create(&PostParams::default(), &config).await.is_err());
    let mut running = Running::start(manager);
    running.leads().await;
    configs.create(&PostParams::default(), &config).await.unwrap();
    running.end().await.unwrap();
    assert!(configs.delete("x", &kube_core::params::DeleteParams::default()).await.is_err(), "released");
}

fn pods(verbs: impl IntoIterator<Item = Verb>) -> Access {
    Access::new("", "pods", verbs)
}

/// Returns a server with the user `keeper`, who may read pods and, in one namespace, write leases.
async fn guarded() -> (ApiServer, Client) {
    let server = ApiServer::builder()
        .tokens("root,root,1,\"system:masters\"\nsecret,keeper,2,")
        .unwrap()
        .rbac(true)
        .build();
    let root = token_client(&server, "root");
    let objects = [
        (
            "clusterroles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]}),
        ),
        (
            "clusterrolebindings",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "keeper", "apiGroup": "rbac.authorization.k8s.io"}]}),
        ),
    ];
    for (resource, object) in objects {
        let request = root.rest().post().api("rbac.authorization.k8s.io/v1").resource(resource).body(&object);
        request.send::<serde_json::Value>().await.unwrap();
    }
    let keeper = token_client(&server, "secret");
    (server, keeper)
}

#[tokio::test(start_paused = true)]
async fn a_declared_verb_that_is_denied_is_named_before_anything_starts() {
    let ((_server, keeper), log) = (guarded().await, EventLog::default());
    let mut options = ManagerOptions::default();
    options.access_check = AccessCheck::Fail;
    let mut manager = Manager::builder(keeper.clone())
        .time(time())
        .options(options.clone())
        .leader_election(election("first"))
        .build();
    manager
        .add(LoggedRunnable::new("controller", &log).access([pods(Verb::READ), pods([Verb::Delete])]))
        .unwrap();
    let error = Running::start(manager).ended().await.unwrap_err();
    let ManagerError::Access(AccessError::Missing { missing }) = &error else { panic!("{error}") };
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(
        missing,
        [
            "delete pods in all namespaces",
            "get leases.coordination.k8s.io in namespace default",
            "create leases.coordination.k8s.io in namespace default",
            "update leases.coordination.k8s.io in namespace default",
        ]
    );
    assert_eq!(error.exit_code(), 5);
    assert_eq!(log.lines(), Vec::<String>::new());

    // No warning is logged for access that is granted.
    let mut manager = Manager::builder(keeper.clone()).time(time()).options(options).build();
    manager.add(LoggedRunnable::new("controller", &log).access([pods(Verb::READ)])).unwrap();
    let mut running = Running::start(manager);
    tokio::time::sleep(SECOND).await;
    running.end().await.unwrap();
    let mut manager = Manager::builder(keeper).time(time()).build();
    manager.add(LoggedRunnable::new("careless", &log).access([pods([Verb::Delete])])).unwrap();
    let mut running = Running::start(manager);
    tokio::time::sleep(SECOND).await;
    running.end().await.unwrap();
    assert!(log.lines().contains(&"careless has ended".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_manager_starts_all_informers_of_its_factory() {
    let server = ApiServer::in_process();
    let manager = manager(server.client(), "first");
    let (factory, log) = (manager.factory().clone(), EventLog::default());
    let (shared, maps) = (log.clone(), factory.informer::<ConfigMap>().reader());
    let handler = move |event: &Event<ConfigMap>| shared.add(event.object().metadata().name().to_owned());
    factory.informer::<ConfigMap>().add_handler(handler).unwrap();
    let mut running = Running::start(manager);
    running.leads().await;
    factory.wait_for_sync().await.unwrap();
    let map = serde_json::from_value(json!({"metadata": {"name": "settings"}})).unwrap();
    let client = Api::<ConfigMap>::default_namespaced(server.client());
    client.create(&PostParams::default(), &map).await.unwrap();
    while !log.lines().iter().any(|name| name == "settings") {
        tokio::time::sleep(SECOND / 20).await;
    }
    assert!(maps.get("default/settings").is_some());
    running.end().await.unwrap();
    assert!(factory.informer::<ConfigMap>().is_stopped());
}
