//! Responses that are too large, malformed or truncated, over a real socket.

use std::mem::discriminant;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::ObjectList;
use serde_json::{Value, json};
use watchkeeper_client::{
    Client, Error,
    error::{TransportKind, Unreadable},
    rest::{RequestBuilder, RestClient},
};
use watchkeeper_test_support::{Reply, ScriptedServer};

fn rest(server: &ScriptedServer) -> RestClient {
    Client::from(server.client()).rest()
}

fn get_pod(rest: &RestClient) -> RequestBuilder {
    rest.get().namespace("web").resource("pods").name("front")
}

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"front","namespace":"web"}}"#;

#[tokio::test]
async fn a_response_above_its_limit_is_not_read_to_its_end() {
    let seventeen_mebibytes = Reply::chunked(200, &[])
        .repeat([b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat(), 17 * 16);
    let announced = |length: &str| Reply::head(200, &[("content-length", length)]);
    let unlimited: Option<u64> = None;
    let table = [
        (seventeen_mebibytes, unlimited, "object_bytes = 16777216"),
        (announced("16777217"), unlimited, "object_bytes = 16777216"),
        (Reply::json(200, POD), Some(20), "limit_bytes = 20"),
        (Reply::json(200, format!("{}{}", "[".repeat(129), "]".repeat(129))), unlimited, "json_depth = 128"),
    ];
    for (reply, limit, name) in table {
        let server = ScriptedServer::script([reply.close()]).await;
        let mut request = get_pod(&rest(&server));
        if let Some(limit) = limit {
            request = request.limit_bytes(limit);
        }
        let error = request.send::<Value>().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "get pods \"front\" in namespace \"web\": the response exceeds {name}; \
                 raise it if responses this large are expected"
            )
        );
    }
    let server = ScriptedServer::script([announced("268435457")]).await;
    let error = rest(&server).get().resource("pods").send::<ObjectList<Pod>>().await.unwrap_err();
    assert!(matches!(error, Error::Limit { limit: "page_bytes", .. }), "{error}");
}

#[tokio::test]
async fn depth_is_counted_in_structure_and_not_in_strings() {
    let brackets = json!({ "a": "[".repeat(500), "b": "\\\"{{{{" }).to_string();
    let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    let server = ScriptedServer::script([Reply::json(200, brackets), Reply::json(200, deep)]).await;
    let rest = rest(&server);
    assert!(get_pod(&rest).send::<Value>().await.is_ok());
    assert!(get_pod(&rest).send::<Value>().await.is_ok());
}

#[tokio::test]
async fn an_undecodable_response_is_described_without_quoting_it() {
    let secret =
        |data: &str| format!(r#"{{"kind":"Secret","apiVersion":"v1","metadata":{{}},"data":{data}}}"#);
    let table = [
        (Reply::json(200, secret(r#""canary""#)), Unreadable::Shape { line: 0, column: 0 }),
        (Reply::json(200, secret(r#"{"a":"canary!!"}"#)), Unreadable::Shape { line: 0, column: 0 }),
        (Reply::json(200, "canary"), Unreadable::Syntax { line: 0, column: 0 }),
        (Reply::json(200, r#"{"kind":"Secret","apiVersion":"v1","#), Unreadable::Truncated),
        (Reply::json(200, ""), Unreadable::Truncated),
        (Reply::gzip_json(200, POD.as_bytes()), Unreadable::Encoding),
    ];
    for (reply, expected) in table {
        let server = ScriptedServer::script([reply]).await;
        let error = rest(&server)
            .get()
            .resource("secrets")
            .name("s")
            .namespace("a")
            .send::<Secret>()
            .await
            .unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("canary"), "{text}");
        }
        let Error::Decode { reason, .. } = error else { panic!("{error}") };
        assert_eq!(discriminant(&reason), discriminant(&expected), "{reason:?}");
    }
}

#[tokio::test]
async fn each_way_a_connection_fails_has_its_name() {
    let cut = |reply: Reply| async move {
        let server = ScriptedServer::script([reply]).await;
        match get_pod(&rest(&server)).send::<Pod>().await {
            Err(Error::Transport { kind, .. }) => kind,
            other => panic!("{other:?}"),
        }
    };
    let half_head = "HTTP/1.1 200 OK\r\ncontent-le";
    let table = [
        ("closed before the response", Reply::nothing().close(), TransportKind::UnexpectedEof),
        ("closed in the head", Reply::nothing().send(half_head).close(), TransportKind::UnexpectedEof),
        (
            "closed in a body of known length",
            Reply::head(200, &[("content-length", "100")]).send("{").close(),
            TransportKind::UnexpectedEof,
        ),
        ("closed in a chunk", Reply::chunked(200, &[]).send("10\r\n{").close(), TransportKind::UnexpectedEof),
        ("closed between chunks", Reply::chunked(200, &[]).chunk("{").close(), TransportKind::UnexpectedEof),
        ("reset before the response", Reply::nothing().reset(), TransportKind::Reset),
        ("not HTTP", Reply::nothing().send("SSH-2.0-x\r\n\r\n").close(), TransportKind::Malformed),
    ];
    for (what, reply, expected) in table {
        assert_eq!(cut(reply).await, expected, "{what}");
    }

    let server = ScriptedServer::script([]).await;
    let unreachable = rest(&server);
    drop(server);
    let error = get_pod(&unreachable).send::<Pod>().await.unwrap_err();
    assert!(matches!(error, Error::Transport { kind: TransportKind::Refused, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "get pods \"front\" in namespace \"web\": connection refused; \
         check that the server runs and the address is right"
    );
}

#[tokio::test]
async fn a_body_cut_into_single_bytes_is_the_same_body() {
    let head = Reply::head(200, &[("content-length", &POD.len().to_string())]);
    let server = ScriptedServer::script([head.drip(POD, 1)]).await;
    let pod: Pod = get_pod(&rest(&server)).send().await.unwrap();
    assert_eq!(pod.metadata.namespace.as_deref(), Some("web"));
}

#[tokio::test]
async fn text_is_text_and_not_json() {
    let replies = [Reply::text(200, "ok\n"), Reply::text(200, b"\xff".to_vec()), Reply::text(500, "not ok")];
    let server = ScriptedServer::script(replies).await;
    let livez = || rest(&server).get().absolute_path("/livez");
    assert_eq!(livez().text().await.unwrap(), "ok\n");
    assert!(matches!(livez().text().await, Err(Error::Decode { reason: Unreadable::Utf8, .. })));
    assert_eq!(
        livez().text().await.unwrap_err().to_string(),
        "get /livez: internal server error (500 InternalError): not ok"
    );
}
