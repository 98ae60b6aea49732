//! Servers that send escape sequences, or responses that are not those of an API server.

use serde_json::{Value, json};
use watchkeeper_test_support::{Gate, Reply, ScriptedServer};

use crate::support::{Ended, run};

/// Text that clears the screen, sets the title, reverses the text and breaks the line: ESC, C1, bidirectional
/// marks, separators.
const HOSTILE: &str = "\u{1b}[2J\u{9b}31m\u{202e}evil\u{2066}\u{2028}\u{7f}\nnext";

fn is_safe(text: &str) -> bool {
    !text.contains(|c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}')
    })
}

/// Starts a server with the custom resource `widgets`, whose lists receive this reply.
async fn server(list: Reply) -> ScriptedServer {
    let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [
        {"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget", "verbs": ["list", "watch", "get"]},
    ]});
    let version = json!({"groupVersion": "example.com/v1", "version": "v1"});
    let group = json!({"name": "example.com", "versions": [version], "preferredVersion": version});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]});
    let core = json!({"kind": "APIVersions", "versions": ["v1"]});
    let no_core = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": []});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [
                {"name": HOSTILE, "type": "string", "jsonPath": ".spec.text"}]}]}});
    let rejected =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422});
    let quiet = Gate::new();
    ScriptedServer::handler(move |request| {
        let (path, query) = request.target().split_once('?').unwrap_or((request.target(), ""));
        let found = |value: &Value| Reply::json(200, value.to_string());
        match path {
            "/api" => found(&core),
            "/apis" => found(&groups),
            "/api/v1" => found(&no_core),
            "/apis/example.com/v1" => found(&resources),
            path if path.contains("customresourcedefinitions") => found(&definition),
            _ if query.contains("sendInitialEvents") => Reply::json(422, rejected.to_string()),
            _ if query.contains("watch=") => Reply::chunked(200, &[]).wait_for(&quiet),
            _ => list.clone(),
        }
    })
    .await
}

async fn get(server: &ScriptedServer, arguments: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server.url()}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]});
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let kubeconfig = path.to_str().unwrap();
    run(&[&["get", "widgets"], arguments, &["--kubeconfig", kubeconfig]].concat()).await
}

fn widgets() -> Value {
    json!({"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {"resourceVersion": "5"}, "items": [
        {"metadata": {"name": HOSTILE, "namespace": "default", "uid": "1", "resourceVersion": "5", "labels": {"app": HOSTILE}},
            "spec": {"text": HOSTILE}},
    ]})
}

#[tokio::test]
async fn escape_sequences_and_bidirectional_marks_of_a_server_do_not_reach_the_terminal() {
    let server = server(Reply::json(200, widgets().to_string())).await;
    for arguments in [&[][..], &["--by", "label=app"], &["-o", "name"], &["-o", "json"], &["-o", "yaml"]] {
        let ended = get(&server, arguments).await;
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        assert!(is_safe(&ended.out), "{arguments:?}: {:?}", ended.out);
        assert!(ended.out.contains("evil"), "{arguments:?}: {ended:?}");
    }
    let ended = get(&server, &["-o", "name"]).await;
    let name = "widgets/\\u{1b}[2J\\u{9b}31m\\u{202e}evil\\u{2066}\\u{2028}\\u{7f}\\nnext\n";
    assert_eq!(ended.out, name);
}

#[tokio::test]
async fn json_and_yaml_with_hostile_text_decode_to_what_the_server_sent() {
    let server = server(Reply::json(200, widgets().to_string())).await;
    let json: Value = serde_json::from_str(&get(&server, &["-o", "json"]).await.out).unwrap();
    assert_eq!(json["items"][0]["spec"]["text"], HOSTILE);
    let yaml: Value = serde_saphyr::from_str(&get(&server, &["-o", "yaml"]).await.out).unwrap();
    assert_eq!(yaml, json);
}

#[tokio::test]
async fn error_messages_and_logs_of_a_server_are_escaped() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
        "message": HOSTILE, "code": 403});
    let server = server(Reply::json(403, status.to_string())).await;
    let ended = get(&server, &["-vv"]).await;
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(is_safe(&ended.err), "{:?}", ended.err);
    assert!(ended.err.matches("evil").count() >= 2, "in the log and in the error: {ended:?}");
}

#[tokio::test]
async fn responses_that_cannot_be_used_fail_soon_and_are_named() {
    let bomb = format!(r#"{{"kind":"WidgetList","items":[{{"a":"{}"}}]}}"#, "a".repeat(60 << 20));
    for (fault, list) in [
        ("a web page", Reply::text(200, "<html><body>Please log in</body></html>")),
        ("a decompression bomb", Reply::gzip_json(200, bomb.as_bytes())),
        ("another kind", Reply::json(200, r#"{"kind":"Banana","items":17}"#)),
    ] {
        let server = server(list).await;
        #[expect(clippy::disallowed_methods, reason = "the program runs in real time")]
        let began = std::time::Instant::now();
        let ended = get(&server, &[]).await;
        assert_eq!(ended.code, Some(1), "{fault}: {ended:?}");
        assert!(began.elapsed().as_secs() < 40, "{fault}: not before the time limit: {ended:?}");
        assert!(ended.err.contains("list widgets.example.com in namespace"), "{fault}: {ended:?}");
    }
}
