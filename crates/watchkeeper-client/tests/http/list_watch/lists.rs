//! Lists over HTTP, from correct and from faulty servers.

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use watchkeeper_client::{
    Client, Error,
    classify::{Decision, Failure, Phase, Situation, classify},
    decode::{DecodeError, ObjectMetadata},
    error::{TransportKind, Unreadable},
    list_watch::{ItemError, ListPart, ListRequest, ListWatch, ListerWatcher, PageEnd},
    rest::ResourcePath,
};
use watchkeeper_test_support::{Reply, ScriptedServer};

type Read = (Vec<Result<String, ItemError>>, PageEnd);

/// Reads a whole page: the decoded items by key, and the end.
async fn read<K: 'static + Send + Sync>(
    source: &impl ListerWatcher<K>,
    request: ListRequest,
) -> Result<Read, Error> {
    let mut page = source.list(request).await?;
    let mut items = Vec::new();
    while let Some(part) = page.next().await {
        match part? {
            ListPart::Item(item) => {
                let key = item.identity().key().to_owned();
                items.push(item.decode().map(|_| key));
            }
            ListPart::End(end) => {
                assert!(page.next().await.is_none(), "the end is the last part");
                return Ok((items, end));
            }
        }
    }
    panic!("a page ended without an end and without an error")
}

fn config_maps(server: &ScriptedServer) -> ListWatch<ConfigMap> {
    ListWatch::new(&Client::from(server.client()).resource::<ConfigMap>().namespace("shop"))
}

fn map(name: &str, version: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "resourceVersion": version }, "data": { "k": "v" } })
}

fn list(items: &[Value], metadata: &Value) -> String {
    json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items }).to_string()
}

async fn refused(reply: Reply) -> Error {
    let server = ScriptedServer::script([reply]).await;
    read(&config_maps(&server), ListRequest::new()).await.map(|_| ()).expect_err("a refusal")
}

#[tokio::test]
async fn a_page_is_requested_and_read_to_its_end() {
    let metadata = json!({ "resourceVersion": "12", "continue": "next", "remainingItemCount": 3 });
    let body = list(&[map("a", "5"), map("b", "7")], &metadata);
    let server = ScriptedServer::script([Reply::json(200, body.clone()), Reply::json(200, body)]).await;
    let source = config_maps(&server).labels("app=web").fields("metadata.name!=x");

    let first = ListRequest::new().resource_version("0").limit(500);
    let (items, end) = read(&source, first).await.unwrap();
    assert_eq!(items.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ["shop/a", "shop/b"]);
    assert_eq!(end.resource_version.as_deref(), Some("12"));
    assert_eq!((end.continue_token.as_deref(), end.remaining_item_count), (Some("next"), Some(3)));

    read(&source, ListRequest::new().limit(2).continue_token("next")).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/namespaces/shop/configmaps?labelSelector=app%3Dweb&fieldSelector=metadata.name%21%3Dx&limit=500&resourceVersion=0 HTTP/1.1",
            "GET /api/v1/namespaces/shop/configmaps?labelSelector=app%3Dweb&fieldSelector=metadata.name%21%3Dx&limit=2&continue=next HTTP/1.1",
        ]
    );
    let request = &server.received()[0];
    assert_eq!(request.header("accept-encoding"), Some("gzip"));
    let accept = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
    assert_eq!(request.header("accept"), Some(accept));
}

#[tokio::test]
async fn a_page_may_come_compressed_dripping_or_in_chunks() {
    let body = list(&[map("a", "5"), map("b", "7")], &json!({ "resourceVersion": "12" }));
    let mut chunked = Reply::chunked(200, &[]);
    for piece in body.as_bytes().chunks(7) {
        chunked = chunked.chunk(piece);
    }
    let length = body.len().to_string();
    let dripping = Reply::head(200, &[("content-length", &length)]).drip(body.clone(), 1);
    let server =
        ScriptedServer::script([Reply::gzip_json(200, body.as_bytes()), chunked.last_chunk(), dripping])
            .await;
    let source = config_maps(&server);
    for _ in 0..3 {
        let (items, end) = read(&source, ListRequest::new()).await.unwrap();
        assert_eq!(items.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ["shop/a", "shop/b"]);
        assert_eq!(end.resource_version.as_deref(), Some("12"));
    }
}

#[tokio::test]
async fn one_bad_item_is_named_and_its_siblings_come_through() {
    let mut bad = map("bad", "6");
    bad["data"] = json!({ "k": { "password": "hunter2" } });
    let body = list(&[map("a", "5"), bad, map("b", "7")], &json!({ "resourceVersion": "12" }));
    let server = ScriptedServer::script([Reply::json(200, body)]).await;
    let (mut items, end) = read(&config_maps(&server), ListRequest::new()).await.unwrap();
    let error = items.remove(1).unwrap_err();
    assert_eq!((error.identity.key(), error.identity.resource_version()), ("shop/bad", Some("6")));
    let text = format!("{error} {error:?}");
    assert!(text.contains("expected a string") && !text.contains("hunter2"), "{text}");
    assert_eq!(items.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ["shop/a", "shop/b"]);
    assert_eq!(end.resource_version.as_deref(), Some("12"));
}

#[tokio::test]
async fn an_expired_second_page_differs_from_an_empty_one() {
    let expired = json!({ "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410,
        "message": "The provided continue parameter is too old" });
    let first = list(&[map("a", "5")], &json!({ "resourceVersion": "12", "continue": "token" }));
    let server = ScriptedServer::script([
        Reply::json(200, first),
        Reply::json(410, expired.to_string()),
        Reply::json(200, expired.to_string()),
    ])
    .await;
    let source = config_maps(&server);
    let (_, end) = read(&source, ListRequest::new().limit(1)).await.unwrap();
    let token = end.continue_token.unwrap();
    // The same result as an HTTP status, and as a `Status` sent with code 200.
    for _ in 0..2 {
        let next = ListRequest::new().limit(1).continue_token(token.clone());
        let error = read(&source, next).await.unwrap_err();
        assert!(error.is_expired(), "{error}");
        let classification = classify(Situation::at(Phase::List), Failure::from(&error));
        assert_eq!(classification.decision, Decision::RelistFromScratch);
    }
}

#[tokio::test]
async fn a_page_that_is_not_whole_ends_in_an_error() {
    let body = list(&[map("a", "5"), map("b", "7")], &json!({ "resourceVersion": "12" }));
    let cut = &body[..body.len() - 30];

    let error = refused(Reply::chunked(200, &[]).chunk(cut).last_chunk()).await;
    assert!(matches!(error, Error::Body { source: DecodeError::Truncated { .. }, .. }), "{error}");
    let announced = body.len().to_string();
    let closed = Reply::head(200, &[("content-length", &announced)]).send(cut).close();
    let error = refused(closed).await;
    assert!(matches!(error, Error::Transport { kind: TransportKind::UnexpectedEof, .. }), "{error}");
    let reset = Reply::chunked(200, &[]).chunk(cut).reset();
    let error = refused(reset).await;
    assert!(matches!(error, Error::Transport { .. }), "{error}");
    let error = refused(Reply::json(200, "")).await;
    assert!(matches!(error, Error::Body { source: DecodeError::Truncated { .. }, .. }), "{error}");
}

#[tokio::test]
async fn a_document_that_is_no_list_is_an_error_and_not_an_empty_list() {
    let named = |error: Error| match error {
        Error::Body { source, .. } => source,
        other => panic!("{other}"),
    };
    let table = json!({ "kind": "Table", "columnDefinitions": [], "rows": [] }).to_string();
    assert!(matches!(named(refused(Reply::json(200, table)).await), DecodeError::Table { .. }));
    assert!(matches!(
        named(refused(Reply::json(200, map("a", "1").to_string())).await),
        DecodeError::NotAList
    ));
    assert!(matches!(
        named(refused(Reply::text(200, "<html>")).await),
        DecodeError::Syntax { offset: 0, .. }
    ));
    let foreign = list(&[json!({ "kind": "Secret", "metadata": { "name": "a" } })], &json!({}));
    assert!(matches!(named(refused(Reply::json(200, foreign)).await), DecodeError::WrongKind { .. }));
    let nameless = list(&[json!({ "metadata": { "namespace": "shop" } })], &json!({}));
    let error = named(refused(Reply::json(200, nameless)).await);
    assert!(matches!(error, DecodeError::Missing { field: "metadata.name" }), "{error}");
    let brotli = Reply::whole(200, &[("content-encoding", "br")], "...");
    assert!(matches!(refused(brotli).await, Error::Decode { reason: Unreadable::Encoding, .. }));
    let not_gzip = Reply::whole(200, &[("content-encoding", "gzip")], "{\"items\":[]}");
    assert!(matches!(named(refused(not_gzip).await), DecodeError::Gzip { .. }));
}

#[tokio::test]
async fn dynamic_and_metadata_only_and_narrow_types_are_read_the_same_way() {
    #[derive(Debug, serde::Deserialize)]
    struct Narrow {
        data: std::collections::BTreeMap<String, String>,
    }
    let body = list(&[map("a", "5")], &json!({ "resourceVersion": "12" }));
    let server = ScriptedServer::handler(move |_| Reply::json(200, body.clone())).await;
    let client = Client::from(server.client());
    let resource = ApiResource::erase::<ConfigMap>(&());

    let dynamic = client.resource_with::<DynamicObject>(&resource).namespace("shop");
    let (items, _) = read(&ListWatch::new(&dynamic), ListRequest::new()).await.unwrap();
    assert_eq!(items.len(), 1);

    let metadata = client.resource_with::<ObjectMetadata>(&resource);
    let (items, _) = read(&ListWatch::new(&metadata), ListRequest::new()).await.unwrap();
    assert_eq!(items.len(), 1);
    let request = server.received().pop().unwrap();
    let accept = request.header("accept").unwrap();
    let of = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(request.target(), "/api/v1/configmaps");
    assert_eq!(accept, format!("application/vnd.kubernetes.protobuf;{of},application/json;{of};q=0.9"));

    let path = ResourcePath::new("", "v1", "configmaps").unwrap();
    let narrow = ListWatch::<Narrow>::at(client.clone(), path, "ConfigMap");
    let mut page = narrow.list(ListRequest::new()).await.unwrap();
    match page.next().await.unwrap().unwrap() {
        ListPart::Item(item) => assert_eq!(item.decode().unwrap().data["k"], "v"),
        ListPart::End(end) => panic!("{end:?}"),
    }
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_not_sent() {
    let server = ScriptedServer::script([]).await;
    let elsewhere = ListWatch::new(&Client::from(server.client()).resource::<Pod>().namespace("../x"));
    let error = read(&elsewhere, ListRequest::new()).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert!(server.received().is_empty());
}
