//! Managers against an embedded server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Method;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube_client::Api;
use kube_core::{
    ResourceExt as _,
    params::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::{Client, config::ClientConfig};
use watchkeeper_controller::{
    Action, Context, Controller, ReconcileError, Request,
    http::EndpointError,
    leader::{LeaderElection, Leadership},
    manager::{Manager, ManagerError, RunError, Runnable},
    metrics::RestMetrics,
    options::{AccessCheck, ManagerOptions},
    rbac::{Access, AccessError, Verb},
    time::Time,
};
use watchkeeper_informer::{SharedIndexInformer, event::Event};

use crate::{
    faults::{Fate, Faults},
    support::token_client,
};

const SECOND: Duration = Duration::from_secs(1);

/// The events of a test, in order.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<String>>>);

impl EventLog {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn index_of(&self, what: &str) -> usize {
        let lines = self.lines();
        lines.iter().position(|line| line == what).unwrap_or_else(|| panic!("{what} is not in {lines:?}"))
    }
}

type Step = Box<dyn Fn(CancellationToken) -> BoxFuture<'static, Result<(), RunError>> + Send + Sync>;

/// A runnable that logs its lifecycle.
struct LoggedRunnable {
    name: &'static str,
    log: EventLog,
    needs_leadership: bool,
    access: Vec<Access>,
    prepare: Step,
    run: Step,
}

impl LoggedRunnable {
    fn new(name: &'static str, log: &EventLog) -> Self {
        let until_stopped: Step = Box::new(|stop| {
            Box::pin(async move {
                stop.cancelled().await;
                Ok(())
            })
        });
        Self {
            name,
            log: log.clone(),
            needs_leadership: true,
            access: Vec::new(),
            prepare: Box::new(|_| Box::pin(async { Ok(()) })),
            run: until_stopped,
        }
    }

    fn everywhere(mut self) -> Self {
        self.needs_leadership = false;
        self
    }

    fn access(mut self, access: impl IntoIterator<Item = Access>) -> Self {
        self.access = access.into_iter().collect();
        self
    }

    fn preparing<F>(mut self, prepare: impl Fn(CancellationToken) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), RunError>> + Send + 'static,
    {
        self.prepare = Box::new(move |stop| Box::pin(prepare(stop)));
        self
    }

    fn running<F>(mut self, run: impl Fn(CancellationToken) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), RunError>> + Send + 'static,
    {
        self.run = Box::new(move |stop| Box::pin(run(stop)));
        self
    }
}

impl Runnable for LoggedRunnable {
    fn name(&self) -> &str {
        self.name
    }

    fn needs_leadership(&self) -> bool {
        self.needs_leadership
    }

    fn access(&self) -> Vec<Access> {
        self.access.clone()
    }

    fn prepare(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            self.log.add(format!("{} prepares", self.name));
            (self.prepare)(stop).await?;
            self.log.add(format!("{} is prepared", self.name));
            Ok(())
        })
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        Box::pin(async move {
            self.log.add(format!("{} runs", self.name));
            let result = (self.run)(stop).await;
            self.log.add(format!("{} has ended", self.name));
            result
        })
    }
}

fn failure(name: &str) -> RunError {
    RunError::Run { name: name.to_owned(), source: "disk full".into() }
}

fn time() -> Time {
    Time::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

fn election(identity: &str) -> LeaderElection {
    LeaderElection::new("default", "lock.example.com").identity(identity)
}

fn quiet() -> ManagerOptions {
    let mut options = ManagerOptions::default();
    options.access_check = AccessCheck::Off;
    options
}

/// A manager that runs in a task.
struct Running {
    leadership: Option<Leadership>,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), ManagerError>>,
}

impl Running {
    fn start(manager: Manager) -> Self {
        let (leadership, stop) = (manager.leadership(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(manager.run_until(stop.clone()));
        Self { leadership, stop, tasks }
    }

    async fn leads(&mut self) {
        assert!(self.leadership.as_mut().expect("leader election is enabled").acquired().await);
    }

    async fn end(&mut self) -> Result<(), ManagerError> {
        self.stop.cancel();
        self.ended().await
    }

    async fn ended(&mut self) -> Result<(), ManagerError> {
        self.tasks.join_next().await.expect("started").expect("no panic")
    }
}

fn manager(client: impl Into<Client>, identity: &str) -> Manager {
    Manager::builder(client).time(time()).options(quiet()).leader_election(election(identity)).build()
}

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
    let asked = Instant::now();
    replicas[0].end().await.unwrap();
    replicas[1].leads().await;
    assert!(asked.elapsed() <= SECOND * 2, "{:?}", asked.elapsed());
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
    let asked = Instant::now();
    let error = running.end().await.unwrap_err();
    assert!(matches!(&error, ManagerError::StopTimeout { names, .. } if names == &["stubborn"]), "{error}");
    assert_eq!((error.exit_code(), asked.elapsed()), (7, SECOND * 30));
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

/// Returns the status and body of a GET request.
async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    request(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
}

async fn request(address: std::net::SocketAddr, text: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    (status, body)
}

fn listening() -> ManagerOptions {
    let mut options = quiet();
    options.health_address = Some("127.0.0.1:0".parse().unwrap());
    options.metrics_address = Some("127.0.0.1:0".parse().unwrap());
    options
}

// Real sockets need real time, but no assertion depends on elapsed time.
#[tokio::test]
async fn a_standby_replica_is_ready_once_its_caches_are_synced() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut leader = Running::start(manager(server.client(), "first"));
    leader.leads().await;
    let mut manager =
        Manager::builder(server.client()).options(listening()).leader_election(election("second")).build();
    let (warm, is_warm) = tokio::sync::watch::channel(false);
    manager
        .add(LoggedRunnable::new("controller", &log).preparing(move |_| {
            let mut is_warm = is_warm.clone();
            async move {
                is_warm.wait_for(|is_warm| *is_warm).await.expect("the sender lives");
                Ok(())
            }
        }))
        .unwrap();
    manager.add_readiness_check("mine", || Ok(()));
    let broken = Arc::new(AtomicBool::new(false));
    let disk = Arc::clone(&broken);
    manager.add_health_check("disk", move || {
        if disk.load(Ordering::SeqCst) { Err("full".to_owned()) } else { Ok(()) }
    });
    let mut endpoints = manager.endpoints();
    let mut running = Running::start(manager);
    let bound = *endpoints.wait_for(|endpoints| endpoints.health.is_some()).await.unwrap();
    let health = bound.health.unwrap();
    let (status, body) = get(health, "/readyz").await;
    assert_eq!(
        (status, body.as_str()),
        (503, "[-]controller failed: reason withheld\n[+]mine ok\n[+]stopping ok\nreadyz check failed\n")
    );
    assert_eq!(get(health, "/livez").await, (200, "ok".to_owned()), "alive although not ready");
    warm.send(true).unwrap();
    while get(health, "/readyz").await.0 != 200 {}
    assert!(!running.leadership.as_ref().unwrap().is_leader());
    assert_eq!(
        get(health, "/readyz?verbose").await.1,
        "[+]controller ok\n[+]mine ok\n[+]stopping ok\nreadyz check passed\n"
    );
    assert_eq!(get(health, "/healthz").await, (200, "ok".to_owned()));
    assert_eq!(get(health, "/healthz/ping").await, (200, "ok".to_owned()));
    broken.store(true, Ordering::SeqCst);
    for page in ["healthz", "livez"] {
        let (status, body) = get(health, &format!("/{page}")).await;
        assert_eq!(
            (status, body),
            (503, format!("[-]disk failed: reason withheld\n[+]ping ok\n{page} check failed\n"))
        );
    }
    assert_eq!(get(health, "/readyz").await.0, 200, "a health check does not affect readiness");
    assert_eq!(get(health, "/metrics").await.0, 404, "on another port");
    assert_eq!(get(health, "/etc/passwd").await.0, 404);
    let post = request(
        health,
        "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(post.0, 405);
    let long = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    assert_eq!(request(health, &long).await.0, 431);
    running.end().await.unwrap();
    assert!(TcpStream::connect(health).await.is_err(), "closed at the end");
    leader.end().await.unwrap();
}

fn idle_controller(manager: &Manager, name: &str) -> Controller<ConfigMap> {
    Controller::<ConfigMap>::on(manager.factory()).named(name)
}

async fn idle(_: Request<ConfigMap>, _: Context) -> Result<Action, ReconcileError> {
    Ok(Action::done())
}

fn text_of(manager: &mut Manager) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, manager.registry()).unwrap();
    text
}

#[tokio::test]
async fn an_added_controller_has_metric_series_before_it_runs() {
    let server = ApiServer::in_process();
    let mut manager = Manager::builder(server.client()).options(quiet()).build();
    let controller = idle_controller(&manager, "shop").workers(3).reconcile_with(idle);
    manager.add(controller).unwrap();
    let text = text_of(&mut manager);
    for line in [
        "controller_runtime_max_concurrent_reconciles{controller=\"shop\"} 3",
        "controller_runtime_reconcile_total{controller=\"shop\",result=\"success\"} 0",
        "workqueue_depth{controller=\"shop\",name=\"shop\",priority=\"0\"} 0",
        "workqueue_unfinished_work_seconds{controller=\"shop\",name=\"shop\"} 0.0",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn reconciles_and_keys_of_an_added_controller_are_counted() {
    let server = ApiServer::in_process();
    let config: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "till"}})).unwrap();
    let configs: Api<ConfigMap> = Api::default_namespaced(server.client());
    configs.create(&PostParams::default(), &config).await.unwrap();
    let mut manager = Manager::builder(server.client()).time(time()).options(quiet()).build();
    // Scraped over HTTP, because a running manager owns its registry.
    let registry = std::mem::take(manager.registry());
    let controller = idle_controller(&manager, "shop").reconcile_with(idle);
    manager.add(controller).unwrap();
    let mut running = Running::start(manager);
    tokio::time::sleep(SECOND).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "controller_runtime_reconcile_total{controller=\"shop\",result=\"success\"} 1",
        "workqueue_adds_total{controller=\"shop\",name=\"shop\"} 1",
        "workqueue_work_duration_seconds_count{controller=\"shop\",name=\"shop\"} 1",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    running.end().await.unwrap();
    text.clear();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(!text.contains("\"shop\""), "the series go with the controller: {text}");
}

#[tokio::test]
async fn a_second_controller_of_the_same_name_is_rejected_with_the_remedy() {
    let server = ApiServer::in_process();
    let mut manager = Manager::builder(server.client()).options(quiet()).build();
    // Both have the default name, which is the name of their kind.
    let first = Controller::<ConfigMap>::on(manager.factory()).workers(3).reconcile_with(idle);
    let second = Controller::<ConfigMap>::on(manager.factory()).workers(5).reconcile_with(idle);
    manager.add(first).unwrap();
    let error = manager.add(second).err().unwrap();
    assert!(
        matches!(&error, ManagerError::DuplicateName(duplicate) if duplicate.name == "configmap"),
        "{error}"
    );
    assert!(
        error.to_string().contains("\"configmap\"") && error.to_string().contains("Controller::named"),
        "{error}"
    );
    assert_eq!(error.exit_code(), 3);
    let text = text_of(&mut manager);
    for line in [
        "controller_runtime_max_concurrent_reconciles{controller=\"configmap\"} 3",
        "workqueue_depth{controller=\"configmap\",name=\"configmap\",priority=\"0\"} 0",
        "workqueue_unfinished_work_seconds{controller=\"configmap\",name=\"configmap\"} 0.0",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn runnables_of_the_same_name_are_rejected() {
    let (server, log) = (ApiServer::in_process(), EventLog::default());
    let mut manager = Manager::builder(server.client()).options(quiet()).build();
    manager.add(LoggedRunnable::new("loop", &log)).unwrap();
    let error = manager.add(LoggedRunnable::new("loop", &log)).err().unwrap();
    assert!(matches!(&error, ManagerError::DuplicateName(duplicate) if duplicate.name == "loop"), "{error}");
}

#[tokio::test]
async fn a_controller_name_is_unique_across_managers_that_share_a_registry() {
    let server = ApiServer::in_process();
    let mut first = Manager::builder(server.client()).options(quiet()).build();
    let controller = idle_controller(&first, "shop").reconcile_with(idle);
    first.add(controller).unwrap();
    let mut second = Manager::builder(server.client()).options(quiet()).build();
    let controller = idle_controller(&second, "shop").metrics(first.metrics()).reconcile_with(idle);
    let error = second.add(controller).err().unwrap();
    assert!(matches!(&error, ManagerError::DuplicateName(duplicate) if duplicate.name == "shop"), "{error}");
    // Each manager has its own registry unless one is shared.
    let controller = idle_controller(&second, "shop").reconcile_with(idle);
    second.add(controller).unwrap();
}

#[tokio::test]
async fn manager_metrics_have_their_standard_names() {
    let server = ApiServer::in_process();
    let mut registry = prometheus_client::registry::Registry::default();
    let brought = prometheus_client::metrics::gauge::Gauge::<i64>::default();
    registry.register("shop_open", "Whether the shop is open", brought);
    let mut manager = Manager::builder(server.client())
        .options(listening())
        .leader_election(election("first"))
        .registry(registry)
        .build();
    let own = prometheus_client::metrics::counter::Counter::<u64>::default();
    manager.registry().register("shop_orders", "Orders", own.clone());
    let controller = idle_controller(&manager, "shop").reconcile_with(idle);
    manager.add(controller).unwrap();
    own.inc();
    let mut endpoints = manager.endpoints();
    let mut running = Running::start(manager);
    running.leads().await;
    let bound = *endpoints.wait_for(|endpoints| endpoints.metrics.is_some()).await.unwrap();
    let (status, text) = get(bound.metrics.unwrap(), "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "leader_election_master_status{name=\"lock.example.com\"} 1",
        "leader_election_slowpath_total{name=\"lock.example.com\"} 0",
        "rest_client_requests_total{code=\"404\",method=\"GET\",host=\"in-process\"} 1",
        "rest_client_requests_total{code=\"201\",method=\"POST\",host=\"in-process\"} 1",
        "rest_client_request_duration_seconds_count{verb=\"POST\",host=\"in-process\"} 1",
        "workqueue_depth{controller=\"shop\",name=\"shop\",priority=\"0\"} 0",
        "workqueue_adds_total{controller=\"shop\",name=\"shop\"} 0",
        "workqueue_retries_total{controller=\"shop\",name=\"shop\"} 0",
        "workqueue_queue_duration_seconds_count{controller=\"shop\",name=\"shop\"} 0",
        "workqueue_work_duration_seconds_count{controller=\"shop\",name=\"shop\"} 0",
        "workqueue_unfinished_work_seconds{controller=\"shop\",name=\"shop\"} 0.0",
        "workqueue_longest_running_processor_seconds{controller=\"shop\",name=\"shop\"} 0.0",
        "controller_runtime_active_workers{controller=\"shop\"} 0",
        "controller_runtime_reconcile_time_seconds_count{controller=\"shop\"} 0",
        "watchkeeper_events_total{fate=\"Created\"} 0",
        "watchkeeper_events_total{fate=\"Failed\"} 0",
        "controller_runtime_max_concurrent_reconciles{controller=\"shop\"} 1",
        "controller_runtime_reconcile_total{controller=\"shop\",result=\"error\"} 0",
        "shop_orders_total 1",
        "shop_open 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    for name in
        ["process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_start_time_seconds "]
    {
        let value =
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(value.parse::<f64>().unwrap() > 0.0, "{name}{value}");
    }
    assert_eq!(get(bound.metrics.unwrap(), "/healthz").await.0, 404, "on another port");
    running.end().await.unwrap();
}

#[tokio::test]
async fn one_address_can_serve_both_endpoints_and_an_address_in_use_is_an_error() {
    let server = ApiServer::in_process();
    // Bound temporarily to find a free port.
    let held = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = held.local_addr().unwrap();
    let mut options = quiet();
    (options.health_address, options.metrics_address) = (Some(address), Some(address));
    let manager = || Manager::builder(server.client()).options(options.clone()).build();
    let error = Running::start(manager()).ended().await.unwrap_err();
    assert!(
        matches!(&error, ManagerError::Endpoint(EndpointError::Taken { address: taken, .. }) if *taken == address),
        "{error}"
    );
    assert_eq!(error.exit_code(), 4);
    drop(held);
    let manager = manager();
    let mut endpoints = manager.endpoints();
    let mut running = Running::start(manager);
    endpoints.wait_for(|endpoints| endpoints.health == Some(address)).await.unwrap();
    assert_eq!(get(address, "/healthz").await.0, 200);
    assert_eq!(get(address, "/metrics").await.0, 200);
    running.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_manager_starts_all_informers_of_its_factory() {
    let server = ApiServer::in_process();
    let manager = manager(server.client(), "first");
    let (factory, log) = (manager.factory().clone(), EventLog::default());
    let (shared, maps) = (log.clone(), factory.informer::<ConfigMap>().reader());
    let handler = move |event: &Event<ConfigMap>| shared.add(event.object().name_any());
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

#[tokio::test]
async fn requests_are_counted_by_host_also_without_a_response() {
    let server = ApiServer::in_process();
    let address = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap().address();
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = RestMetrics::register(&mut registry);
    let client = ClientConfig::new(&format!("http://{address}")).unwrap().into_client().unwrap();
    let counted = metrics.count(&client, &Time::system());
    let pods = || Api::<k8s_openapi::api::core::v1::Pod>::default_namespaced(counted.kube());
    assert!(pods().get_opt("none").await.unwrap().is_none());
    server.shutdown().await;
    let error = counted.clientset().core_v1().pods("default").get("none").await.unwrap_err();
    assert!(
        matches!(error, watchkeeper_client::Error::Transport { .. }),
        "the error is the same as without counting: {error}"
    );
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for code in ["404", "<error>"] {
        let line =
            format!("rest_client_requests_total{{code=\"{code}\",method=\"GET\",host=\"{address}\"}} 1");
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
}
