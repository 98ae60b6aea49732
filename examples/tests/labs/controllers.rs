//! The labs that are controllers, and the one about leading.

use futures_util::TryStreamExt as _;
use k8s_openapi::api::{
    apps::v1::Deployment, coordination::v1::Lease, core::v1::Service, events::v1::Event as ClusterEvent,
    networking::v1::Ingress,
};
use serde_json::json;
use watchkeeper::{
    kube_core::{params::WatchParams, watch::WatchEvent},
    prelude::*,
};
use watchkeeper_cli::sample::{self, Foo, FooSpec};

use crate::support::{Listening, PATIENCE, Running, page, run};

/// Starts a lab that runs controllers, on ports that are free.
fn start(program: &str, cluster: &Listening) -> Running {
    let kubeconfig = cluster.kubeconfig();
    let free = ["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=:0"];
    Running::start(program, &[&free[..], &["--kubeconfig", &kubeconfig]].concat())
}

#[tokio::test]
async fn labs_that_run_controllers_are_ready_and_export_controller_and_queue_metrics() {
    let cluster = Listening::start().await;
    for (program, name) in [
        (env!("CARGO_BIN_EXE_sample_controller"), "sample-controller"),
        (env!("CARGO_BIN_EXE_ingress_manager"), "ingress-manager"),
    ] {
        let mut lab = start(program, &cluster);
        let (probes, metrics) = (lab.port("serving health probes").await, lab.port("serving metrics").await);
        let ready = async { while page(probes, "/readyz").await.is_none() {} };
        tokio::time::timeout(PATIENCE, ready).await.expect("the lab becomes ready");
        let text = page(metrics, "/metrics").await.unwrap();
        for series in [
            format!("controller_runtime_reconcile_total{{controller=\"{name}\",result=\"success\"}} "),
            format!("controller_runtime_max_concurrent_reconciles{{controller=\"{name}\"}} "),
            format!("workqueue_depth{{controller=\"{name}\",name=\"{name}\",priority=\"0\"}} "),
            format!("workqueue_work_duration_seconds_count{{controller=\"{name}\",name=\"{name}\"}} "),
        ] {
            assert!(text.contains(&series), "{series} is not in\n{text}");
        }
        assert_eq!(lab.interrupt().await, Some(0));
    }
}

#[tokio::test]
async fn without_a_cluster_the_sample_controller_reacts_to_each_change_of_a_foo() {
    let ended = run(env!("CARGO_BIN_EXE_sample_controller"), &[]).await;
    let lines = ended.lines();
    let position =
        |line: &str| lines.iter().position(|it| *it == line).unwrap_or_else(|| panic!("{line} in {lines:?}"));
    // Events of one informer are ordered; those of different informers are not.
    let of_foo = ["added: Foo example-foo wants 1, has 0", "updated: Foo example-foo wants 2, has 2"];
    let of_deployment = [
        "added: Deployment example-foo of 1",
        "updated: Deployment example-foo of 2",
        "deleted: Deployment example-foo of 2",
    ];
    assert!(of_foo.map(position).is_sorted() && of_deployment.map(position).is_sorted(), "{lines:?}");
}

#[tokio::test]
async fn the_sample_controller_makes_scales_and_reports_and_leaves_what_is_not_its_own() {
    let cluster = Listening::start().await;
    let mut lab = start(env!("CARGO_BIN_EXE_sample_controller"), &cluster);
    assert_eq!(lab.line().await, "running until Ctrl-C");

    let foos = cluster.client.resource::<Foo>().namespace("default");
    let deployments = cluster.client.resource::<Deployment>().namespace("default");
    let events = cluster.client.resource::<ClusterEvent>().namespace("default");

    let foo = |name: &str, deployment: &str| {
        Foo::new(name, FooSpec { deployment_name: deployment.to_owned(), replicas: 2 })
    };
    let red = foos.create(&PostParams::default(), &foo("red", "red-web")).await.unwrap();
    let made = deployments.await_condition("red-web", wait::exists(), PATIENCE).await.unwrap().unwrap();
    assert_eq!(
        (sample::replicas(&made), &made.owner_references()[0].uid),
        (2, red.metadata.uid.as_ref().unwrap())
    );

    // What is changed behind its back is put right again.
    let scaled = Patch::Merge(json!({"spec": {"replicas": 9}}));
    let changed = deployments.patch("red-web", &PatchParams::default(), &scaled).await.unwrap();
    let version = ResourceVersion::of(&changed).unwrap();
    let is_right = |deployment: Option<&Deployment>| {
        deployment.is_some_and(|it| {
            sample::replicas(it) == 2 && ResourceVersion::of(it).is_some_and(|it| it > version)
        })
    };
    deployments.await_condition("red-web", wait::described("2 replicas", is_right), PATIENCE).await.unwrap();

    // How far it has come is in the status.
    let started =
        Patch::Merge(json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}));
    deployments.patch_status("red-web", &PatchParams::default(), &started).await.unwrap();
    let ready = foos.await_condition("red", wait::condition_true(sample::READY), PATIENCE).await.unwrap();
    assert_eq!(ready.unwrap().status.unwrap().available_replicas, 2);

    // A Deployment that is somebody else's is not touched.
    let mut taken = sample::wanted(&foo("nobody", "taken"));
    taken.metadata.namespace = None;
    let before = deployments.create(&PostParams::default(), &taken).await.unwrap();
    foos.create(&PostParams::default(), &foo("purple", "taken")).await.unwrap();
    let is_warning = |event: &ClusterEvent| event.reason.as_deref() == Some("ErrResourceExists");
    let mut seen = events.watch(&WatchParams::default(), "0").await.unwrap();
    let warning = async {
        loop {
            match seen.try_next().await.unwrap().expect("the watch goes on") {
                WatchEvent::Added(event) if is_warning(&event) => break event,
                _ => {}
            }
        }
    };
    let warning = tokio::time::timeout(PATIENCE, warning).await.expect("a warning in time");
    assert_eq!(warning.regarding.as_ref().unwrap().name.as_deref(), Some("purple"));
    assert_eq!(
        deployments.get("taken").await.unwrap().metadata.resource_version,
        before.metadata.resource_version
    );

    foos.delete("red", &DeleteParams::background()).await.unwrap();
    deployments.await_condition("red-web", wait::deleted(), PATIENCE).await.unwrap();
    assert_eq!(lab.interrupt().await, Some(0));
}

#[tokio::test]
async fn the_ingress_manager_plays_its_story_without_a_cluster() {
    let ended = run(env!("CARGO_BIN_EXE_ingress_manager"), &[]).await;
    let lines = ended.lines();
    assert_eq!(lines[0], "create Service shop/web with the annotation");
    assert!(lines[1].starts_with("  creates Ingress shop/web ("), "{lines:?}");
    assert_eq!(lines[2], "delete the Ingress");
    assert!(lines[3].starts_with("  creates Ingress shop/web ("), "{lines:?}");
    assert_eq!(lines[4], "remove the annotation");
    assert!(lines[5].starts_with("  deletes Ingress shop/web ("), "{lines:?}");
}

#[tokio::test]
async fn an_ingress_follows_the_annotation_and_the_port_of_its_service_only() {
    let cluster = Listening::start().await;
    let mut lab = start(env!("CARGO_BIN_EXE_ingress_manager"), &cluster);
    assert_eq!(lab.line().await, "running until Ctrl-C");
    let services = cluster.client.resource::<Service>().namespace("default");
    let ingresses = cluster.client.resource::<Ingress>().namespace("default");
    let service = |name: &str, annotation: Option<&str>| -> Service {
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": annotation.map(|value| json!({"ingress/http": value}))},
            "spec": {"ports": [{"port": 80}]},
        }))
        .unwrap()
    };
    let port = |ingress: &Ingress| {
        let path = ingress.spec.clone()?.rules?.first()?.http.clone()?.paths.first()?.clone();
        path.backend.service?.port?.number
    };

    // Others, with the annotation off or absent, get none; that is seen when one made after them has got its own.
    services.create(&PostParams::default(), &service("plain", None)).await.unwrap();
    services.create(&PostParams::default(), &service("off", Some("false"))).await.unwrap();
    services.create(&PostParams::default(), &service("web", Some("true"))).await.unwrap();
    let first = ingresses.await_condition("web", wait::exists(), PATIENCE).await.unwrap().unwrap();
    assert_eq!((port(&first), first.owner_references()[0].kind.as_str()), (Some(80), "Service"));

    let moved = Patch::Merge(json!({"spec": {"ports": [{"port": 8080}]}}));
    services.patch("web", &PatchParams::default(), &moved).await.unwrap();
    let has_moved = |ingress: Option<&Ingress>| ingress.and_then(port) == Some(8080);
    ingresses.await_condition("web", wait::described("the new port", has_moved), PATIENCE).await.unwrap();

    ingresses.delete("web", &DeleteParams::default()).await.unwrap();
    let is_new = |ingress: Option<&Ingress>| ingress.is_some_and(|it| it.metadata.uid != first.metadata.uid);
    ingresses.await_condition("web", wait::described("a new Ingress", is_new), PATIENCE).await.unwrap();

    // One that somebody made by hand is left alone, and so is its Service.
    let by_hand: Ingress = serde_json::from_value(json!({
        "metadata": {"name": "hand"},
        "spec": {"defaultBackend": {"service": {"name": "hand", "port": {"number": 1}}}},
    }))
    .unwrap();
    ingresses.create(&PostParams::default(), &by_hand).await.unwrap();
    services.create(&PostParams::default(), &service("hand", Some("true"))).await.unwrap();

    let gone = Patch::Merge(json!({"metadata": {"annotations": {"ingress/http": null}}}));
    services.patch("web", &PatchParams::default(), &gone).await.unwrap();
    ingresses.await_condition("web", wait::deleted(), PATIENCE).await.unwrap();

    // With its Service an Ingress goes by itself.
    services.create(&PostParams::default(), &service("brief", Some("true"))).await.unwrap();
    ingresses.await_condition("brief", wait::exists(), PATIENCE).await.unwrap();
    services.delete("brief", &DeleteParams::background()).await.unwrap();
    ingresses.await_condition("brief", wait::deleted(), PATIENCE).await.unwrap();
    let all = cluster.client.resource::<Ingress>().list_all(&ListParams::default()).await.unwrap();
    let names: Vec<String> = all.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["hand"], "only the Ingress that was created by hand remains");
    let left = ingresses.get("hand").await.unwrap();
    assert!(left.spec.as_ref().unwrap().rules.is_none() && left.owner_references().is_empty());
    assert_eq!(lab.interrupt().await, Some(0));
}

#[tokio::test]
async fn of_a_pair_one_leads_and_the_other_takes_over() {
    let program = env!("CARGO_BIN_EXE_leader_pair");
    let cluster = Listening::start().await;
    for ended in [run(program, &[]).await, cluster.run(program, &[]).await] {
        let lines = ended.lines();
        assert!(lines[0].starts_with("first leads, in term "), "{lines:?}");
        assert_eq!(lines[1], "second stands by: first leads");
        assert!(
            lines[2].starts_with("first has stopped and released the lease; second leads, in term "),
            "{lines:?}"
        );
        assert!(lines[4].starts_with("first, started again leads, in term "), "{lines:?}");
        let term = |line: &str| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap();
        assert!(term(lines[0]) < term(lines[2]) && term(lines[2]) < term(lines[4]), "{lines:?}");
    }
    let leases = cluster.client.resource::<Lease>().namespace("default");
    assert!(leases.get_opt("leader-pair-lab").await.unwrap().is_none());
}
