//! Verification of servers, and client certificates.

use std::time::Duration;

use http::Method;
use watchkeeper_client::config::{ClientConfig, Environment, Kubeconfig, Loader};
use watchkeeper_client::error::TransportKind;

use super::{
    authority::{Authority, Leaf},
    failure, get, kind, later, send,
    server::{Server, respond},
    status,
};

const MINUTE: Duration = Duration::from_secs(61);

#[tokio::test]
async fn a_server_of_the_configured_authority_is_believed() {
    let authority = Authority::new("a");
    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(None)).await;
    let client = server.config().certificate_authority_pem(authority.pem()).into_client().unwrap();
    assert_eq!(status(&client).await, 200);
}

#[tokio::test]
async fn servers_with_a_wrong_certificate_are_rejected() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let cases = [
        ("another authority", other.server(&["127.0.0.1"]), "UnknownIssuer"),
        ("its own authority", Leaf::self_signed(&["127.0.0.1"]), "UnknownIssuer"),
        ("the wrong host", ours.server(&["elsewhere.example"]), "not valid for name"),
        ("expired", ours.expired_server(&["127.0.0.1"]), "expired"),
        ("a client's certificate", ours.client("client"), "certificate"),
    ];
    for (case, leaf, expected) in cases {
        let server = Server::tls(leaf.serve(None)).await;
        let client = server.config().certificate_authority_pem(ours.pem()).into_client().unwrap();
        let error = failure(&client).await;
        assert!(error.starts_with("cannot connect to https://127.0.0.1:"), "{case}: {error}");
        assert!(error.contains(expected), "{case}: {error}");
        assert_eq!(kind(&client).await, TransportKind::Tls, "{case}");
        assert!(server.seen().is_empty(), "{case}: a request went out");
    }
}

#[tokio::test]
async fn only_the_danger_switch_accepts_any_certificate() {
    let server = Server::tls(Leaf::self_signed(&["elsewhere.example"]).serve(None)).await;
    let client = server.config().danger_accept_invalid_certs(true).into_client().unwrap();
    assert_eq!(status(&client).await, 200);
}

#[tokio::test]
async fn a_trusted_kubeconfig_can_disable_verification() {
    let server = Server::tls(Leaf::self_signed(&["elsewhere.example"]).serve(None)).await;
    let text = format!(
        "{{current-context: x, contexts: [{{name: x, context: {{cluster: c}}}}], \
         clusters: [{{name: c, cluster: {{server: '{}', insecure-skip-tls-verify: true}}}}]}}",
        server.url()
    );
    let kubeconfig = Kubeconfig::from_text(&text).unwrap();
    let config = Loader::new().environment(Environment::empty()).kubeconfig(kubeconfig).load().unwrap();
    assert_eq!(status(&config.into_client().unwrap()).await, 200);
}

#[tokio::test]
async fn the_certificate_is_verified_for_tls_server_name() {
    let authority = Authority::new("a");
    let server = Server::tls(authority.server(&["kubernetes.example"]).serve(None)).await;
    let config = server.config().certificate_authority_pem(authority.pem());
    let error = failure(&config.clone().into_client().unwrap()).await;
    assert!(error.contains("not valid for name"), "{error}");
    let client = config.tls_server_name("kubernetes.example").unwrap().into_client().unwrap();
    assert_eq!(status(&client).await, 200);
}

#[tokio::test]
async fn a_client_certificate_is_sent_to_a_server_that_requests_one() {
    let authority = Authority::new("a");
    let leaf = authority.client("jane");
    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(Some(&authority))).await;
    let config = server.config().certificate_authority_pem(authority.pem());

    let client =
        config.clone().client_certificate_pem(leaf.certificate.clone(), leaf.key.clone()).into_client();
    assert_eq!(status(&client.unwrap()).await, 200);
    assert_eq!(server.seen()[0].peer, Some(leaf.der()));

    let anonymous = config.into_client().unwrap();
    assert!(get(&anonymous, "/version").await.is_err());
    assert_eq!(server.seen().len(), 1);
}

/// The variable with the certificate directory, set in the child process whose system trusts it.
const MACHINE: &str = "TEST_MACHINE_DIRECTORY";

#[tokio::test]
async fn a_configured_authority_takes_the_place_of_those_the_machine_trusts() {
    let Some(directory) = std::env::var_os(MACHINE).map(std::path::PathBuf::from) else {
        // The system's trust store is fixed when a process starts, so this test restarts itself with a trust
        // store that contains the test's authority.
        let authority = Authority::new("machine");
        let leaf = authority.server(&["127.0.0.1"]);
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [("ca", authority.pem()), ("crt", leaf.certificate), ("key", leaf.key)] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let name = "tls::a_configured_authority_takes_the_place_of_those_the_machine_trusts";
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(MACHINE, directory.path())
            .env("SSL_CERT_FILE", directory.path().join("ca"))
            .env_remove("SSL_CERT_DIR")
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    };
    let read = |name| std::fs::read_to_string(directory.join(name)).unwrap();
    let leaf = Leaf { certificate: read("crt"), key: read("key") };
    let server = Server::tls(leaf.serve(None)).await;
    assert_eq!(status(&server.config().into_client().unwrap()).await, 200);

    let other = Authority::new("configured");
    let client = server.config().certificate_authority_pem(other.pem()).into_client().unwrap();
    let error = failure(&client).await;
    assert!(error.contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn a_new_authority_in_the_file_is_believed_within_a_minute() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    std::fs::write(&file, old.pem()).unwrap();

    let close = |_: &_| {
        let mut response = respond(200, "");
        response.headers_mut().insert("connection", "close".parse().unwrap());
        response
    };
    let server = Server::start(Some(old.server(&["127.0.0.1"]).serve(None)), close).await;
    let client = server.config().certificate_authority_file(&file).into_client().unwrap();
    assert_eq!(status(&client).await, 200);

    server.set_tls(new.server(&["127.0.0.1"]).serve(None));
    assert!(failure(&client).await.contains("certificate"));

    std::fs::write(&file, new.pem()).unwrap();
    later(MINUTE).await;
    assert_eq!(status(&client).await, 200);
}

#[tokio::test]
async fn an_authority_file_caught_half_written_does_not_lose_the_good_one() {
    let authority = Authority::new("a");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    std::fs::write(&file, authority.pem()).unwrap();
    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(None)).await;
    let client = server.config().certificate_authority_file(&file).into_client().unwrap();
    assert_eq!(status(&client).await, 200);

    std::fs::write(&file, &authority.pem()[..100]).unwrap();
    later(MINUTE).await;
    assert_eq!(status(&client).await, 200);
    assert_eq!(client.credential_counts().failures, 1);
}

#[tokio::test]
async fn a_renewed_client_certificate_is_shown_within_a_minute_and_a_torn_pair_never() {
    let authority = Authority::new("a");
    let (old, new) = (authority.client("old"), authority.client("new"));
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| directory.path().join(name));
    std::fs::write(&certificate, &old.certificate).unwrap();
    std::fs::write(&key, &old.key).unwrap();

    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(Some(&authority))).await;
    let config = server.config().certificate_authority_pem(authority.pem());
    let client = config.client_certificate_files(&certificate, &key).into_client().unwrap();
    assert_eq!(status(&client).await, 200);

    std::fs::write(&certificate, &new.certificate).unwrap();
    later(MINUTE).await;
    assert_eq!(status(&client).await, 200);
    assert_eq!(client.credential_counts().failures, 1);

    std::fs::write(&key, &new.key).unwrap();
    later(MINUTE).await;
    assert_eq!(status(&client).await, 200);

    let shown: Vec<_> = server.seen().into_iter().map(|seen| seen.peer.unwrap()).collect();
    assert_eq!(shown, [old.der(), old.der(), new.der()]);
}

#[tokio::test]
async fn a_stalled_handshake_ends_with_the_connect_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let config = ClientConfig::new(&url).unwrap();
    let config = config.certificate_authority_pem(Authority::new("a").pem());
    let client = config.connect_timeout(Duration::from_millis(50)).into_client().unwrap();
    // The kernel accepts the connection, but no process completes the handshake.
    let error = failure(&client).await;
    assert!(error.contains("no connection after 0.05s"), "{error}");
}

#[tokio::test]
async fn a_request_body_arrives_whole_over_tls() {
    let authority = Authority::new("a");
    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(None)).await;
    let client = server.config().certificate_authority_pem(authority.pem()).into_client().unwrap();
    send(&client, Method::POST, "/api/v1/namespaces", "{\"a\":1}").await.unwrap();
    let seen = server.seen();
    assert_eq!((seen[0].method.clone(), seen[0].path.as_str()), (Method::POST, "/api/v1/namespaces"));
    assert_eq!(seen[0].body, "{\"a\":1}");
}
