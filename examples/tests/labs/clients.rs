//! The labs about clients.

use crate::support::{Listening, run};

#[tokio::test]
async fn the_rest_client_lists_the_pods_of_the_namespace_it_is_given() {
    let program = env!("CARGO_BIN_EXE_rest_client");
    let ended = run(program, &["--namespace", "shop"]).await;
    let lines = ended.lines();
    assert_eq!(words(lines[0]), ["web-0", "Running"]);
    assert_eq!(words(lines[2]), ["worker-0", "Pending"]);
    assert!(lines[3].starts_with("3 pods in namespace shop, at version "), "{lines:?}");

    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Succeeded").await;
    let ended = cluster.run(program, &[]).await;
    assert_eq!(words(ended.lines()[0]), ["mine", "Succeeded"]);
}

#[tokio::test]
async fn one_pod_is_read_with_a_typed_client_and_a_missing_one_is_not_an_error() {
    let program = env!("CARGO_BIN_EXE_get_pod");
    let ended = run(program, &[]).await;
    let lines = ended.lines();
    assert_eq!(lines[0], "pod test in namespace default");
    assert!(lines.contains(&"  node   node-1") && lines.contains(&"  phase  Running"), "{lines:?}");

    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Failed").await;
    let ended = cluster.run(program, &["mine"]).await;
    assert!(ended.lines().contains(&"  phase  Failed"), "{ended:?}");
    let ended = cluster.run(program, &["not-there"]).await;
    assert_eq!(ended.lines()[0], "pod not-there in namespace default does not exist");
}

#[tokio::test]
async fn running_pods_of_all_namespaces_are_counted_and_others_are_not() {
    let program = env!("CARGO_BIN_EXE_count_running_pods");
    let ended = run(program, &[]).await;
    assert!(ended.lines().contains(&"4 pods are running in 3 namespaces"), "{ended:?}");

    let cluster = Listening::start().await;
    cluster.add_pod("one", "Running").await;
    cluster.add_pod("two", "Pending").await;
    let ended = cluster.run(program, &[]).await;
    assert!(ended.lines().contains(&"1 pods are running in 1 namespaces"), "{ended:?}");
}

#[tokio::test]
async fn the_report_joins_nodes_with_the_pods_on_them() {
    let program = env!("CARGO_BIN_EXE_pods_and_nodes_report");
    let ended = run(program, &[]).await;
    let lines = ended.lines();
    let second = lines.iter().position(|line| line.starts_with("node node-2: not ready")).unwrap();
    assert_eq!(words(lines[second + 1]), ["shop/web-1", "Running", "2", "restarts"]);
    assert_eq!(lines[second + 2], "on no node");
    assert!(lines.contains(&"5 pods, 2 nodes"), "{lines:?}");

    let cluster = Listening::start().await;
    cluster.add_pod("lonely", "Running").await;
    let ended = cluster.run(program, &[]).await;
    assert!(ended.lines().contains(&"1 pods, 0 nodes"), "{ended:?}");
}

#[tokio::test]
async fn the_dynamic_client_lists_what_a_name_means_and_changes_nothing() {
    let program = env!("CARGO_BIN_EXE_dynamic_client");
    let ended = run(program, &["ns"]).await;
    let lines = ended.lines();
    assert_eq!(lines[0], "ns is v1/namespaces (Namespace)");
    assert!(lines.iter().any(|line| line.starts_with("shop: ")), "{lines:?}");

    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Running").await;
    let ended = cluster.run(program, &["po", "-n", "default"]).await;
    assert!(ended.lines().contains(&"mine would have 1 labels"), "{ended:?}");
    assert_eq!(cluster.pods("default").get("mine").await.unwrap().metadata.labels, None);
    let ended = cluster.run(program, &["nonsense"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.ends_with("Error: the server serves no \"nonsense\"\n"), "{}", ended.err);
}

#[tokio::test]
async fn discovery_prints_versions_and_resources_and_explains_names() {
    let program = env!("CARGO_BIN_EXE_discovery");
    let ended = run(program, &[]).await;
    let lines = ended.lines();
    assert!(lines.contains(&"  apps/v1") && lines.contains(&"  v1"), "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| words(line) == ["deployments", "deploy", "apps/v1", "namespaced", "Deployment"]),
        "{lines:?}"
    );

    let cluster = Listening::start().await;
    let ended = cluster.run(program, &["deploy", "Lease", "nonsense"]).await;
    let lines = ended.lines();
    assert_eq!(lines[1], "deploy: apps/v1/deployments (Deployment)");
    assert_eq!(lines[2], "Lease: coordination.k8s.io/v1/leases (Lease)");
    assert_eq!(lines[3], "the server serves no \"nonsense\"");
}

#[tokio::test]
async fn the_wire_shows_a_list_with_a_length_and_a_watch_in_chunks() {
    let program = env!("CARGO_BIN_EXE_list_watch_on_the_wire");
    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Running").await;
    for ended in [run(program, &[]).await, cluster.run(program, &[]).await] {
        let lines = ended.lines();
        assert_eq!(lines[0], "> GET /api/v1/namespaces/default/pods HTTP/1.1");
        assert_eq!(lines[1], "< HTTP/1.1 200 OK");
        assert!(lines[3].starts_with("< content-length: "), "{lines:?}");
        let version = lines[4].split("resourceVersion ").nth(1).unwrap().trim_end_matches('}');
        let watch =
            format!("> GET /api/v1/namespaces/default/pods?watch=true&resourceVersion={version} HTTP/1.1");
        assert_eq!(lines[6], watch);
        assert_eq!(lines[9], "< transfer-encoding: chunked");
        let types: Vec<&str> = lines[10..14].iter().map(|line| line.split('"').nth(3).unwrap()).collect();
        // A pod is marked as being deleted before it is gone.
        assert_eq!(types, ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]);
    }
    assert_eq!(cluster.pod_names().await, ["mine"]);
}

#[tokio::test]
async fn a_context_that_is_not_there_is_named_with_those_that_are() {
    let cluster = Listening::start().await;
    let program = env!("CARGO_BIN_EXE_count_running_pods");
    let ended = cluster.run(program, &["--context", "nope"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("no context \"nope\"; there are: watchkeeper"), "{ended:?}");
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
