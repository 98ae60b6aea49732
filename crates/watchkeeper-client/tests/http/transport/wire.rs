//! Headers, warnings, redirects, proxies and limits on the wire.

use std::sync::Arc;

use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use watchkeeper_client::error::TransportKind;
use watchkeeper_client::{
    config::{ClientConfig, Environment, Kubeconfig, Loader},
    limits::Limits,
    transport::{CollectWarnings, Impersonation},
};

use super::{
    authority::Authority,
    failure, get,
    server::{Server, ServerResponse, respond},
    status,
};

#[tokio::test]
async fn requests_carry_a_user_agent() {
    let server = Server::plain().await;
    let kubeconfig = format!(
        "{{clusters: [{{name: c, cluster: {{server: '{}'}}}}], contexts: [{{name: x, context: {{cluster: c}}}}], current-context: x}}",
        server.url()
    );
    let environment = Environment::empty().with_program("lighthouse");
    let loader = Loader::new().kubeconfig(Kubeconfig::from_text(&kubeconfig).unwrap());
    let config = loader.environment(environment).load().unwrap();
    status(&config.clone().into_client().unwrap()).await;
    status(&config.user_agent("my-operator/1.0").into_client().unwrap()).await;

    let agents: Vec<_> =
        server.seen().iter().map(|seen| seen.header("user-agent").unwrap().to_owned()).collect();
    let platform = format!("({}/{})", std::env::consts::OS, std::env::consts::ARCH);
    assert_eq!(agents[0], format!("watchkeeper/{} {platform} lighthouse", env!("CARGO_PKG_VERSION")));
    assert_eq!(agents[1], "my-operator/1.0");
}

#[tokio::test]
async fn impersonation_reaches_the_server() {
    let server = Server::plain().await;
    let mut jane = Impersonation::of("jane");
    jane.groups = vec!["dev".to_owned()];
    status(&server.config().impersonate(jane).into_client().unwrap()).await;
    let seen = server.seen();
    assert_eq!(seen[0].header("impersonate-user"), Some("jane"));
    assert_eq!(seen[0].header("impersonate-group"), Some("dev"));

    let smuggled = Impersonation::of("jane\r\nImpersonate-Group: system:masters");
    let error = server.config().impersonate(smuggled).into_client().unwrap_err();
    assert!(error.to_string().contains("the impersonated user contains a line break"), "{error}");
}

#[tokio::test]
async fn warnings_reach_the_handler() {
    let server = Server::start(None, |_| {
        let mut response = respond(200, "");
        let warning = r#"299 - "v1beta1 is deprecated", 299 - "so is this""#;
        response.headers_mut().insert("warning", warning.parse().unwrap());
        response
    })
    .await;
    let warnings = Arc::new(CollectWarnings::default());
    let client = server.config().warning_handler(warnings.clone()).into_client().unwrap();
    status(&client).await;
    let texts: Vec<_> = warnings.take().into_iter().map(|warning| warning.text).collect();
    assert_eq!(texts, ["v1beta1 is deprecated", "so is this"]);
    assert!(warnings.take().is_empty());
}

#[tokio::test]
async fn redirects_are_not_followed_and_credentials_stay_where_they_belong() {
    let elsewhere = Server::plain().await;
    for code in [301, 302, 303, 307, 308] {
        let location = elsewhere.url();
        let server = Server::start(None, move |_| redirect(code, &location)).await;
        let client = server.config().bearer_token("secret").into_client().unwrap();
        assert_eq!(status(&client).await, code);
        assert_eq!(server.seen().len(), 1);
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_request_for_another_host_goes_to_ours() {
    let (ours, elsewhere) = (Server::plain().await, Server::plain().await);
    let client = ours.config().bearer_token("secret").into_client().unwrap();
    get(&client, &format!("{}/api", elsewhere.url())).await.unwrap();
    assert_eq!(ours.seen()[0].path, "/api");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_server_behind_a_path_keeps_its_path() {
    let server = Server::plain().await;
    let config = ClientConfig::new(&format!("{}/k8s/clusters/c-1/", server.url())).unwrap();
    get(&config.into_client().unwrap(), "/api/v1/pods").await.unwrap();
    assert_eq!(server.seen()[0].path, "/k8s/clusters/c-1/api/v1/pods");
}

#[tokio::test]
async fn an_endless_response_head_ends_in_an_error_that_names_the_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert_ne!(socket.read(&mut [0; 1024]).await.unwrap(), 0);
            socket.write_all(b"HTTP/1.1 200 OK\r\nx: ").await.unwrap();
            let filler = [b'a'; 4096];
            while socket.write_all(&filler).await.is_ok() {}
        }
    });
    let mut limits = Limits::default();
    limits.header_bytes = 16 << 10;
    let client = ClientConfig::new(&url).unwrap().limits(limits).into_client().unwrap();
    assert_eq!(client.limits().header_bytes, 16 << 10);
    let error = failure(&client).await;
    assert!(error.contains("message head is too large (the limit is 16384 bytes)"), "{error}");
    assert_eq!(super::kind(&client).await, TransportKind::Malformed);
}

#[tokio::test]
async fn a_connection_that_closes_without_a_response_is_an_error_and_not_a_second_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = 0;
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            connections += 1;
            assert_eq!(connections, 1, "the request was sent again");
            let mut buffer = [0; 1024];
            assert_ne!(socket.read(&mut buffer).await.unwrap(), 0);
        }
    });
    let client = ClientConfig::new(&url).unwrap().into_client().unwrap();
    let error = failure(&client).await;
    assert!(error.contains("ended before a response"), "{error}");
    assert!(tasks.try_join_next().is_none(), "the server saw a second connection");
}

#[tokio::test]
async fn a_refused_connection_is_named_in_the_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = ClientConfig::new(&format!("http://{address}")).unwrap().into_client().unwrap();
    let error = failure(&client).await;
    assert!(error.starts_with(&format!("cannot connect to http://{address}/: ")), "{error}");
    assert!(error.contains("refused"), "{error}");
    assert_eq!(super::kind(&client).await, TransportKind::Refused);
}

#[tokio::test]
async fn an_http_proxy_receives_connect_and_only_encrypted_data() {
    let authority = Authority::new("a");
    let server = Server::tls(authority.server(&["127.0.0.1"]).serve(None)).await;
    let (proxy, mut tasks) = connect_proxy().await;
    let config = server.config().certificate_authority_pem(authority.pem()).bearer_token("secret");
    let config = config.proxy(Some(&format!("http://user:pass@{proxy}"))).unwrap();
    assert_eq!(status(&config.into_client().unwrap()).await, 200);
    assert_eq!(server.seen().len(), 1);

    let head = tasks.join_next().await.unwrap().unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with(&format!("connect {} http/1.1\r\n", server.address)), "{head}");
    assert!(head.contains("proxy-authorization: basic dxnlcjpwyxnz\r\n"), "{head}");
    assert!(!head.contains("secret"), "{head}");
}

#[tokio::test]
async fn a_socks_proxy_connects_to_the_server() {
    let server = Server::plain().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("socks5://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 3];
        client.read_exact(&mut greeting).await.unwrap();
        assert_eq!(greeting, [5, 1, 0], "version 5, one method: none");
        client.write_all(&[5, 0]).await.unwrap();
        let mut request = [0; 10];
        client.read_exact(&mut request).await.unwrap();
        assert_eq!(request[..4], [5, 1, 0, 1], "connect to an IPv4 address");
        let [.., a, b, c, d, high, low] = request;
        let target = std::net::SocketAddr::from(([a, b, c, d], u16::from_be_bytes([high, low])));
        let mut server = TcpStream::connect(target).await.unwrap();
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        drop(copy_bidirectional(&mut client, &mut server).await);
        target
    });
    let client = server.config().proxy(Some(&url)).unwrap().into_client().unwrap();
    assert_eq!(status(&client).await, 200);
    drop(client);
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), server.address);
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_is_rejected_and_not_bypassed() {
    let config = ClientConfig::new("https://127.0.0.1").unwrap();
    let error = config.proxy(Some("ftp://proxy.example")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "proxy of the given URL: \"ftp\" proxies are not supported; use http:// (CONNECT) or socks5://"
    );
}

#[test]
fn a_client_outside_a_runtime_is_an_error_and_not_a_panic() {
    let error = ClientConfig::new("http://127.0.0.1").unwrap().into_client().unwrap_err();
    assert!(error.to_string().contains("a client needs a tokio runtime"), "{error}");
}

fn redirect(code: u16, location: &str) -> ServerResponse {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert("location", location.parse().unwrap());
    response
}

/// Starts a proxy for one connection; its task returns the head of the request that opened it.
async fn connect_proxy() -> (std::net::SocketAddr, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.split_whitespace().nth(1).unwrap();
        let mut server = TcpStream::connect(target).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        // Ends when the client is dropped, in whatever way.
        drop(copy_bidirectional(&mut client, &mut server).await);
        head
    });
    (address, tasks)
}
