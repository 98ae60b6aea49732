//! The example behaves as documented, against a scripted server.

use std::{env, fs, process::Command};

use watchkeeper_test_support::{Reply, ScriptedServer};

/// Returns the command that runs the example. The command uses cargo, because a test may be built without the
/// examples.
fn example() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--offline", "--example", "list_watch"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

#[tokio::test]
async fn the_example_lists_every_page_and_then_watches() {
    let map =
        |name: &str| format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop"}},"data":{{"k":"v"}}}}"#);
    let page = |name: &str, token: &str| {
        let metadata = format!(r#"{{"resourceVersion":"10","continue":"{token}"}}"#);
        Reply::json(200, format!(r#"{{"metadata":{metadata},"items":[{}]}}"#, map(name)))
    };
    let events = format!(
        "{{\"type\":\"ADDED\",\"object\":{}}}\n{}\n",
        map("c"),
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#,
    );
    let watch = Reply::chunked(200, &[]).chunk(events).last_chunk();
    let server = ScriptedServer::script([page("a", "next"), page("b", ""), watch]).await;

    let directory = env::temp_dir().join(format!("watchkeeper-list-watch-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory for the kubeconfig");
    let kubeconfig = directory.join("config");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: x, clusters: [{{name: x, cluster: {{server: '{}'}}}}], \
         users: [{{name: x, user: {{}}}}], contexts: [{{name: x, context: {{cluster: x, user: x, namespace: shop}}}}]}}",
        server.url()
    );
    fs::write(&kubeconfig, text).expect("a kubeconfig");

    let mut command = example();
    command.env("KUBECONFIG", &kubeconfig);
    let output =
        tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("it runs");
    fs::remove_dir_all(&directory).expect("the directory was made above");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(lines.len(), 6, "{lines:?} {errors}");
    assert_eq!(
        lines[..4],
        [
            "listed shop/a with 1 keys",
            "listed shop/b with 1 keys",
            "watching from version 10",
            "added shop/c with 1 keys",
        ]
    );
    assert!(lines[4].contains("expired (410") && lines[4].ends_with("to do: Relist"), "{}", lines[4]);
    assert!(lines[5].starts_with("the watch ended"), "{}", lines[5]);
}
