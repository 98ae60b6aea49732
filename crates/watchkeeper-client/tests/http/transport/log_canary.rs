//! A series of requests with complete logging: no secret may appear in the log.

use std::{
    io,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Method;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;
use watchkeeper_client::{
    Client,
    config::{Environment, Kubeconfig, Loader},
};

use super::{
    authority::Authority,
    get, send,
    server::{Seen, Server, respond},
};

const TOKEN: &str = "canary-token-71c0";
const PASSWORD: &str = "canary-password-71c0";
const EXEC_TOKEN: &str = "canary-exec-71c0";
const EXEC_SECRET: &str = "canary-variable-71c0";
const SENT: &str = "{\"kind\":\"Secret\",\"data\":{\"k\":\"canary-sent-71c0\"}}";
const RECEIVED: &str = "{\"kind\":\"Secret\",\"data\":{\"k\":\"canary-received-71c0\"}}";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Captures everything from every thread and every crate, through `tracing` or `log`.
    fn install() -> Self {
        let log = Self::default();
        let format = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        format.with_writer(log.clone()).with_ansi(false).try_init().unwrap();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

async fn round(client: &Client) {
    get(client, "/api/v1/namespaces/n/secrets/s").await.unwrap().into_body().collect_bytes().await.unwrap();
    send(client, Method::POST, "/api/v1/namespaces/n/secrets", SENT).await.unwrap();
    get(client, "/denied").await.unwrap();
    let gone = client.rest().client().clone();
    assert!(!format!("{gone:?}").contains("canary"));
}

#[tokio::test]
async fn no_secret_is_logged_by_us_or_by_anything_below_us() {
    let log = Log::install();
    tracing::trace!("marker-of-tracing");
    let authority = Authority::new("a");
    let tls = authority.server(&["127.0.0.1"]).serve(None);
    let mutual = authority.server(&["127.0.0.1"]).serve(Some(&authority));
    let handler = |seen: &Seen| match seen.path.as_str() {
        "/denied" => respond(401, RECEIVED),
        _ => respond(200, RECEIVED),
    };
    let plain = Server::start(None, handler).await;
    let secure = Server::start(Some(tls), handler).await;
    let mutual = Server::start(Some(mutual), handler).await;
    let leaf = authority.client("jane");

    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    std::fs::write(&token_file, TOKEN).unwrap();
    let exec = json!({
        "current-context": "x",
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "clusters": [{ "name": "c", "cluster": { "server": plain.url() } }],
        "users": [{ "name": "u", "user": { "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "/bin/sh",
            "args": ["-c", format!(
                r#"echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{EXEC_TOKEN}"}}}}'"#
            )],
            "env": [{ "name": "X", "value": EXEC_SECRET }],
        } } }],
    });
    let exec = Loader::new()
        .environment(Environment::empty())
        .kubeconfig(Kubeconfig::from_text(&exec.to_string()).unwrap())
        .load()
        .unwrap();

    let secured = secure.config().certificate_authority_pem(authority.pem());
    let configs = [
        plain.config().bearer_token(TOKEN),
        plain.config().bearer_token_file(&token_file),
        plain.config().basic_auth("jane", PASSWORD),
        secured.clone().bearer_token(TOKEN),
        secured.clone().bearer_token(TOKEN).http2(true),
        secured.basic_auth("jane", PASSWORD).http2(true),
        mutual
            .config()
            .certificate_authority_pem(authority.pem())
            .client_certificate_pem(leaf.certificate.clone(), leaf.key.clone())
            .http2(true),
        exec,
    ];
    for config in configs {
        round(&config.into_client().unwrap()).await;
    }
    // Followed by a token that is no longer accepted.
    let client = plain.config().bearer_token_file(&token_file).into_client().unwrap();
    std::fs::write(&token_file, format!("{TOKEN}\u{7f}{TOKEN}")).unwrap();
    round(&client).await;

    let text = log.text();
    // The log contains entries of this crate, the pool, HTTP/2 and TLS.
    for target in
        ["marker-of-tracing", "watchkeeper_client::transport", "hyper_util::client", "h2::", "rustls::"]
    {
        assert!(text.contains(target), "nothing from {target} in the log");
    }
    // The credentials that the requests contained.
    let sent = plain.authorizations();
    assert!(sent.contains(&Some(format!("Bearer {EXEC_TOKEN}"))), "{sent:?}");
    let basic = BASE64_STANDARD.encode(format!("jane:{PASSWORD}"));
    let key_line = leaf.key.lines().nth(1).unwrap();
    for secret in
        [TOKEN, PASSWORD, &basic, EXEC_TOKEN, EXEC_SECRET, "canary-sent", "canary-received", key_line]
    {
        let line = text.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is in the log: {line:?}");
    }
}
