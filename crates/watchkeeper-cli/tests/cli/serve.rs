//! `serve`.

use std::{net::SocketAddr, os::unix::fs::PermissionsExt as _, time::Duration};

use rustix::process::Signal;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use watchkeeper::{
    client::config::{Kubeconfig, Loader},
    k8s_openapi::api::core::v1::Namespace,
    prelude::*,
};

use crate::support::{Running, run};

async fn namespaces(loader: Loader) -> Result<Vec<String>, watchkeeper::client::Error> {
    let client = loader.load().unwrap().into_client().unwrap();
    let namespaces = client.resource::<Namespace>().list_all(&ListParams::default()).await?;
    Ok(namespaces.iter().map(ResourceExt::name_any).collect())
}

#[tokio::test]
async fn a_kubeconfig_is_printed_that_leads_to_the_server() {
    let mut serving = Running::start(&["serve", "--port", "0"]);
    let mut text = String::new();
    while !text.contains("\nusers:") || !text.contains("token:") {
        text += &serving.line().await;
        text.push('\n');
    }
    let kubeconfig = Kubeconfig::from_text(&text).unwrap();
    assert!(namespaces(Loader::new().kubeconfig(kubeconfig)).await.unwrap().contains(&"default".to_owned()));
    assert_eq!(serving.interrupt().await, Some(0));
}

#[tokio::test]
async fn with_tls_tokens_and_rbac_the_first_token_is_in_a_kubeconfig_only_its_owner_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tokens, kubeconfig) = (path("tokens.csv"), path("kubeconfig"));
    std::fs::write(&tokens, "admin-token,admin,1,\"system:masters\"\nother-token,other,2,\"others\"\n")
        .unwrap();
    let mut serving = Running::start(&[
        "serve",
        "--port",
        "0",
        "--tls",
        "--token-auth-file",
        &tokens,
        "--authorization-mode",
        "RBAC",
        "--kubeconfig-out",
        &kubeconfig,
    ]);
    let line = serving.line().await;
    assert!(line.starts_with("serving on https://127.0.0.1:"), "{line}");
    let mode = std::fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    assert!(namespaces(Loader::new().file(&kubeconfig)).await.unwrap().contains(&"kube-system".to_owned()));

    // Another user is not permitted.
    let others = std::fs::read_to_string(&kubeconfig).unwrap().replace("admin-token", "other-token");
    let others = Kubeconfig::from_text(&others).unwrap();
    assert!(namespaces(Loader::new().kubeconfig(others)).await.unwrap_err().is_forbidden());
    assert_eq!(serving.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_port_that_is_taken_and_tokens_that_are_none_are_refused() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = run(&["serve", "--port", &port]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{ended:?}");

    let ended = run(&["serve", "--port", "0", "--token-auth-file", "/nonexistent/tokens"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.starts_with("error: /nonexistent/tokens: "), "{ended:?}");
}

#[tokio::test]
async fn a_server_without_a_way_to_authenticate_is_rejected() {
    let ended = run(&["serve", "--port", "0", "--authorization-mode", "RBAC"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("needs --token-auth-file"), "{ended:?}");

    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("tokens.csv");
    std::fs::write(&empty, "\n \n").unwrap();
    let ended = run(&["serve", "--port", "0", "--token-auth-file", empty.to_str().unwrap()]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("the token file contains no token"), "{ended:?}");
}

#[tokio::test]
async fn a_world_readable_kubeconfig_file_becomes_private() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, "of an earlier run").unwrap();
    std::fs::set_permissions(&kubeconfig, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut serving =
        Running::start(&["serve", "--port", "0", "--kubeconfig-out", kubeconfig.to_str().unwrap()]);
    serving.line().await;
    let mode = std::fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    assert!(namespaces(Loader::new().file(&kubeconfig)).await.unwrap().contains(&"default".to_owned()));
    assert_eq!(serving.interrupt().await, Some(0));
}

/// Starts a server with a client that has sent half a request, and returns the address of the server.
async fn with_a_stuck_client() -> (Running, TcpStream, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut serving =
        Running::start(&["serve", "--port", "0", "--kubeconfig-out", kubeconfig.to_str().unwrap()]);
    let line = serving.line_with("serving on").await;
    let url = line.split_whitespace().find_map(|word| word.strip_prefix("http://")).unwrap();
    let address: SocketAddr = url.parse().unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let half = "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    client.write_all(half.as_bytes()).await.unwrap();
    // A complete request on another connection shows that the server has started to read the first.
    namespaces(Loader::new().file(&kubeconfig)).await.unwrap();
    (serving, client, address)
}

#[tokio::test]
async fn sigterm_ends_the_server_within_its_grace_period_whatever_clients_do() {
    let (serving, _client, _) = with_a_stuck_client().await;
    serving.signal(Signal::TERM);
    let code = tokio::time::timeout(Duration::from_secs(15), serving.ended()).await;
    assert_eq!(code.expect("the grace period is five seconds"), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_the_server_at_once() {
    let (serving, _client, address) = with_a_stuck_client().await;
    serving.signal(Signal::TERM);
    // The server has received the signal once it accepts no more connections.
    while TcpStream::connect(address).await.is_ok() {}
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().await, Some(130));
}
