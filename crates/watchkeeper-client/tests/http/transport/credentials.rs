//! Tokens and passwords: sent, rotated, replaced after a 401.

use std::{path::PathBuf, sync::Mutex, time::Duration};

use futures_util::future::{BoxFuture, join_all};
use http::{Method, Request};
use tempfile::TempDir;
use watchkeeper_client::error::TransportKind;
use watchkeeper_client::{
    Client,
    transport::{Credential, CredentialError, CredentialSource},
};

use super::{
    get, later, send,
    server::{Server, only, respond},
    status,
};

const MINUTE: Duration = Duration::from_secs(61);

/// A temporary token file.
struct TokenFile {
    _directory: TempDir,
    path: PathBuf,
}

impl TokenFile {
    fn new(content: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = Self { path: directory.path().join("token"), _directory: directory };
        file.write(content);
        file
    }

    fn write(&self, content: impl AsRef<[u8]>) {
        std::fs::write(&self.path, content).unwrap();
    }
}

fn bearer(tokens: &[&str]) -> Vec<Option<String>> {
    tokens.iter().map(|token| Some(format!("Bearer {token}"))).collect()
}

fn reader(server: &Server, file: &TokenFile) -> Client {
    server.config().bearer_token_file(&file.path).into_client().unwrap()
}

#[tokio::test]
async fn a_token_file_is_trimmed() {
    let (server, file) = (Server::plain().await, TokenFile::new(" token\r\n"));
    assert_eq!(status(&reader(&server, &file)).await, 200);
    assert_eq!(server.authorizations(), bearer(&["token"]));
}

#[tokio::test]
async fn a_token_file_that_cannot_be_used_is_an_error_when_the_client_is_made() {
    let server = Server::plain().await;
    for (content, expected) in [
        (&b"\n"[..], "the token is empty"),
        (b"", "the token is empty"),
        (b"\xff\xfe", "characters other than printable ASCII"),
        (b"one\ntwo", "characters other than printable ASCII"),
        (b"t\x00ken", "characters other than printable ASCII"),
    ] {
        let file = TokenFile::new("");
        file.write(content);
        let error = server.config().bearer_token_file(&file.path).into_client().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains(&*file.path.to_string_lossy()), "{error}");
    }
    let error = server.config().bearer_token_file("/nowhere/token").into_client().unwrap_err();
    assert_eq!(
        error.to_string(),
        "file /nowhere/token: cannot be read (entity not found); check that it exists and that this process may read it"
    );
}

#[tokio::test]
async fn a_new_token_in_the_file_is_used_after_a_minute_and_not_before() {
    let (server, file) = (Server::plain().await, TokenFile::new("one"));
    let client = reader(&server, &file);
    status(&client).await;
    file.write("two");
    later(Duration::from_secs(50)).await;
    status(&client).await;
    later(Duration::from_secs(11)).await;
    status(&client).await;
    assert_eq!(server.authorizations(), bearer(&["one", "one", "two"]));
}

#[tokio::test]
async fn a_token_file_that_goes_bad_leaves_the_last_good_token_and_is_counted() {
    let (server, file) = (Server::plain().await, TokenFile::new("good"));
    let client = reader(&server, &file);
    status(&client).await;
    for (failures, bad) in [(1, Some(&b""[..])), (2, Some(b"\xff\xff")), (3, None)] {
        match bad {
            Some(content) => file.write(content),
            None => std::fs::remove_file(&file.path).unwrap(),
        }
        later(MINUTE).await;
        assert_eq!(status(&client).await, 200);
        assert_eq!(client.credential_counts().failures, failures);
    }
    assert_eq!(server.authorizations(), bearer(&["good"; 4]));
}

#[tokio::test]
async fn a_401_has_the_token_read_again_and_the_request_sent_once_more() {
    let (server, file) = (Server::start(None, only("new")).await, TokenFile::new("old"));
    let client = reader(&server, &file);
    file.write("new\n");
    let response = send(&client, Method::POST, "/api/v1/pods", "{\"kind\":\"Pod\"}").await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(server.authorizations(), bearer(&["old", "new"]));
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["{\"kind\":\"Pod\"}"; 2]);
}

#[tokio::test]
async fn a_401_with_nothing_new_to_try_is_not_repeated() {
    let (server, file) = (Server::start(None, only("new")).await, TokenFile::new("old"));
    let client = reader(&server, &file);
    for _ in 0..3 {
        assert_eq!(status(&client).await, 401);
    }
    assert_eq!(server.authorizations(), bearer(&["old"; 3]));
    // One load at the creation of the client, one for the first 401; the others came too soon after it.
    assert_eq!(client.credential_counts().loads, 2);
}

#[tokio::test]
async fn a_second_401_is_returned() {
    let (server, file) = (Server::start(None, only("never")).await, TokenFile::new("old"));
    let client = reader(&server, &file);
    file.write("new");
    assert_eq!(status(&client).await, 401);
    assert_eq!(server.authorizations(), bearer(&["old", "new"]));
}

#[tokio::test]
async fn a_body_that_can_be_read_only_once_is_not_sent_twice() {
    let (server, file) = (Server::start(None, only("new")).await, TokenFile::new("old"));
    let client = reader(&server, &file);
    // The body of a response is a stream, which cannot be sent again.
    let stream = Server::start(None, |_| respond(200, "streamed")).await;
    let body = get(&stream.config().into_client().unwrap(), "/").await.unwrap().into_body();
    file.write("new");
    let response = client.kube().send(Request::post("/api").body(body).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(server.authorizations(), bearer(&["old"]));
    assert_eq!(server.seen()[0].body, "streamed");
}

#[tokio::test]
async fn many_concurrent_401s_cost_one_reload() {
    let (server, file) = (Server::start(None, only("new")).await, TokenFile::new("old"));
    let client = reader(&server, &file);
    file.write("new");
    let statuses = join_all((0..20).map(|_| status(&client))).await;
    assert_eq!(statuses, [200; 20]);
    assert_eq!(client.credential_counts().loads, 2);
}

#[tokio::test]
async fn a_request_with_its_own_authorization_keeps_it() {
    let (server, file) = (Server::start(None, only("other")).await, TokenFile::new("ours"));
    let client = reader(&server, &file);
    let request = Request::get("/").header("authorization", "Bearer theirs");
    let response = client.kube().send(request.body(Vec::new().into()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(server.authorizations(), bearer(&["theirs"]));
}

#[tokio::test]
async fn a_password_is_sent_as_basic_authentication() {
    let server = Server::plain().await;
    let client = server.config().basic_auth("jane", "s3cret:x").into_client().unwrap();
    status(&client).await;
    assert_eq!(server.authorizations(), [Some("Basic amFuZTpzM2NyZXQ6eA==".to_owned())]);
}

/// A credential source that returns tokens from a list, then fails.
struct Tokens(Mutex<Vec<&'static str>>);

impl CredentialSource for Tokens {
    fn describe(&self) -> String {
        "a list".to_owned()
    }

    fn load(&self) -> BoxFuture<'_, Result<Credential, CredentialError>> {
        let next = self.0.lock().unwrap().pop();
        Box::pin(async move {
            match next {
                Some(token) => Credential::bearer(token, "a list"),
                None => Err(CredentialError::Source { origin: "a list".to_owned(), source: "empty".into() }),
            }
        })
    }
}

#[tokio::test]
async fn a_custom_source_is_queried_on_first_use_and_again_after_a_401() {
    let server = Server::start(None, only("two")).await;
    let source = Tokens(Mutex::new(vec!["two", "one"]));
    let client = server.config().credential_source(source).into_client().unwrap();
    assert_eq!(client.credential_counts().loads, 0);
    assert_eq!(status(&client).await, 200);
    assert_eq!(server.authorizations(), bearer(&["one", "two"]));
}

#[tokio::test]
async fn a_source_that_has_nothing_fails_the_request_before_it_is_sent() {
    let server = Server::plain().await;
    let source = Tokens(Mutex::default());
    let client = server.config().credential_source(source).into_client().unwrap();
    let error = super::failure(&client).await;
    assert!(error.ends_with("credential source a list: empty"), "{error}");
    assert_eq!(super::kind(&client).await, TransportKind::Credentials);
    assert!(server.seen().is_empty());
}
