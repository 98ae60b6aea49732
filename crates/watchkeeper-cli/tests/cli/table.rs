//! `get` and `watch`.

use serde_json::{Value, json};
use watchkeeper::{
    k8s_openapi::api::core::v1::{Namespace, Pod},
    prelude::*,
};
use watchkeeper_cli::sample::{self, Foo, FooSpec};

use crate::{
    support::{Listening, PATIENCE, Running},
    terminal::OnTerminal,
};

async fn cluster() -> Listening {
    let cluster = Listening::start().await;
    let shop: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    cluster.client.resource().create(&PostParams::default(), &shop).await.unwrap();
    for (namespace, name, node, app) in [
        ("default", "lone", None, "other"),
        ("shop", "web-0", Some("node-1"), "web"),
        ("shop", "web-1", Some("node-2"), "web"),
    ] {
        add_pod(&cluster, namespace, name, node, app).await;
    }
    cluster
}

async fn add_pod(cluster: &Listening, namespace: &str, name: &str, node: Option<&str>, app: &str) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "nginx"}]},
    }))
    .unwrap();
    cluster.client.resource().namespace(namespace).create(&PostParams::default(), &pod).await.unwrap();
}

/// Returns the words of each line, without the age, which varies.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let row = |line| {
        let mut words: Vec<&str> = str::split_whitespace(line).collect();
        words.pop();
        words
    };
    text.lines().map(row).collect()
}

#[tokio::test]
async fn a_table_has_the_columns_of_its_kind_and_the_requested_rows() {
    let cluster = cluster().await;
    let ended = cluster.run(&["get", "po", "-n", "shop"]).await;
    assert_eq!(
        rows(&ended.out),
        [
            vec!["NAME", "READY", "STATUS", "NODE"],
            vec!["web-0", "0/1", "Pending", "node-1"],
            vec!["web-1", "0/1", "Pending", "node-2"],
        ]
    );
    let ended = cluster.run(&["get", "pods", "-A", "--field-selector", "spec.nodeName=node-2"]).await;
    assert_eq!(rows(&ended.out)[1..], [vec!["shop", "web-1", "0/1", "Pending", "node-2"]]);
    let ended = cluster.run(&["get", "pods", "-A", "-l", "app=other", "-o", "name"]).await;
    assert_eq!(ended.out, "pods/lone\n");
    let ended = cluster.run(&["get", "pods", "lone"]).await;
    assert_eq!(rows(&ended.out)[1..], [vec!["lone", "0/1", "Pending", "<none>"]]);
    let ended = cluster.run(&["get", "configmaps", "-n", "nowhere"]).await;
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (Some(0), "", "no configmaps in namespace nowhere\n")
    );
}

#[tokio::test]
async fn rows_are_grouped_by_an_index() {
    let cluster = cluster().await;
    let first_two =
        |text: &str| -> Vec<String> { rows(text)[1..].iter().map(|row| row[..3].join(" ")).collect() };
    for (by, header, expected) in [
        ("node", "NODE", ["<none> default lone", "node-1 shop web-0", "node-2 shop web-1"]),
        ("namespace", "IN", ["default default lone", "shop shop web-0", "shop shop web-1"]),
        ("label=app", "APP", ["other default lone", "web shop web-0", "web shop web-1"]),
        ("owner", "OWNER", ["<none> default lone", "<none> shop web-0", "<none> shop web-1"]),
    ] {
        let ended = cluster.run(&["get", "pods", "-A", "--by", by]).await;
        assert_eq!(rows(&ended.out)[0][0], header);
        assert_eq!(first_two(&ended.out), expected, "{by}");
    }
}

#[tokio::test]
async fn objects_are_printed_whole_and_say_what_they_are() {
    let cluster = cluster().await;
    let ended = cluster.run(&["get", "pods", "lone", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("List"), &json!("Pod")));
    assert_eq!(list["items"][0]["metadata"]["name"], "lone");
    let ended = cluster.run(&["get", "pods", "lone", "-o", "yaml"]).await;
    assert!(ended.out.contains("kind: List") && ended.out.contains("name: lone"), "{}", ended.out);
}

#[tokio::test]
async fn a_custom_resource_has_the_columns_of_its_definition() {
    let cluster = Listening::start().await;
    assert!(sample::install(&cluster.client).await.unwrap());
    sample::await_served(&cluster.client, PATIENCE).await.unwrap();
    let foo = Foo::new("red", FooSpec { deployment_name: "red-web".to_owned(), replicas: 3 });
    cluster.client.resource::<Foo>().namespace("default").create(&PostParams::default(), &foo).await.unwrap();
    let ended = cluster.run(&["get", "foos.samplecontroller.example.com"]).await;
    let header = ended.out.lines().next().unwrap();
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["NAME", "DEPLOYMENT", "WANTED", "AVAILABLE", "AGE"]
    );
    assert!(ended.out.lines().nth(1).unwrap().starts_with("red    red-web      3"), "{}", ended.out);
}

#[tokio::test]
async fn a_watch_prints_what_is_there_and_then_each_change() {
    let cluster = cluster().await;
    let kubeconfig = cluster.kubeconfig();
    let mut watching = Running::start(&["watch", "pods", "-n", "shop", "--kubeconfig", &kubeconfig]);
    assert!(watching.line().await.starts_with("EVENT "));
    for name in ["web-0", "web-1"] {
        let line = watching.line().await;
        assert!(line.starts_with("ADDED") && line.contains(name), "{line}");
    }
    add_pod(&cluster, "shop", "web-2", Some("node-1"), "web").await;
    let line = watching.line().await;
    assert!(line.starts_with("ADDED") && line.contains("web-2"), "{line}");

    let pods = cluster.client.resource::<Pod>().namespace("shop");
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    pods.patch_status("web-2", &PatchParams::default(), &running).await.unwrap();
    let line = watching.line().await;
    assert!(line.starts_with("MODIFIED") && line.contains("Running"), "{line}");

    pods.delete("web-2", &DeleteParams::default().grace_period(0)).await.unwrap();
    let line = watching.line().await;
    assert!(line.starts_with("MODIFIED") && line.contains("Terminating"), "{line}");
    let line = watching.line().await;
    assert!(line.starts_with("DELETED") && line.contains("web-2"), "{line}");
    assert_eq!(watching.interrupt().await, Some(0));
}

#[tokio::test]
async fn on_a_terminal_a_watch_draws_its_table_over_itself() {
    let cluster = cluster().await;
    let kubeconfig = cluster.kubeconfig();
    let mut watching = OnTerminal::start(&["watch", "pods", "-n", "shop", "--kubeconfig", &kubeconfig]);
    // The names in the first column, between the header and the status line.
    let names = |lines: &[String]| -> Vec<String> {
        let rows = lines.iter().skip(1).take(lines.len().saturating_sub(2));
        rows.map(|row| row.split_whitespace().next().unwrap_or_default().to_owned()).collect()
    };
    let lines = watching.until(|lines| names(lines) == ["web-0", "web-1"]).await;
    assert!(lines[0].starts_with("NAME"), "{lines:#?}");
    assert!(lines[3].contains("2 objects") && lines[3].contains("Ctrl-C ends"), "{lines:#?}");

    let pods = cluster.client.resource::<Pod>().namespace("shop");
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    pods.patch_status("web-1", &PatchParams::default(), &running).await.unwrap();
    let lines = watching.until(|lines| lines.iter().any(|line| line.contains("Running"))).await;
    assert_eq!((lines.len(), names(&lines)), (4, vec!["web-0".to_owned(), "web-1".to_owned()]), "{lines:#?}");

    // A deleted object leaves no remains on the screen.
    pods.delete("web-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    let lines = watching.until(|lines| names(lines) == ["web-1"]).await;
    assert_eq!(lines.len(), 3, "{lines:#?}");

    // Rows that do not fit are counted, because rows that scroll out could not be overwritten.
    for number in 2..10 {
        add_pod(&cluster, "shop", &format!("web-{number}"), None, "web").await;
    }
    let is_full = |lines: &[String]| lines.last().is_some_and(|line| line.contains("9 objects"));
    let lines = watching.until(is_full).await;
    assert_eq!(lines.len(), 7, "{lines:#?}");
    assert!(lines[6].ends_with("4 more rows"), "{lines:#?}");
    assert_eq!(watching.interrupt().await, Some(0));
}
