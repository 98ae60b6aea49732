//! Health, readiness and metrics endpoints of a manager.

use super::*;

/// Returns the status and body of a GET request.
pub(super) async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
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

pub(super) fn listening() -> ManagerOptions {
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
