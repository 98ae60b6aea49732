//! Protobuf and JSON: negotiation, fallback, mixed answers, and equal objects from both.

use std::fmt::Debug;

use futures_util::StreamExt as _;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Event, Node, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_core::{ApiResource, DynamicObject, Resource, params::PostParams};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::{
    Client, Error,
    decode::{Json, ObjectMetadata, Protobuf},
    error::Unreadable,
    list_watch::{ListPart, ListRequest, ListWatch, ListerWatcher, WatchEvent, WatchRequest, WireEncoding},
    rest::{ApiRequest, InvalidRequest, ResourcePath},
};
use watchkeeper_test_support::{Received, Reply, ScriptedServer};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("a valid value") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("a valid value"));
    out
}

/// Encodes a field with bytes.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [vec![number << 3 | 2], varint(bytes.len()), bytes.to_vec()].concat()
}

fn sealed(kind: &str, message: &[u8]) -> Vec<u8> {
    let of = [field(1, "v1"), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, of), field(2, message)].concat()
}

/// Encodes a `ConfigMap` with a name and a version.
fn map(name: &str, version: &str) -> Vec<u8> {
    let metadata = [field(1, name), field(3, "shop"), field(6, version)].concat();
    [field(1, metadata), field(2, [field(1, "k"), field(2, "v")].concat())].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    sealed("ConfigMapList", &[field(1, field(2, "12")), items].concat())
}

fn status(code: u16) -> Vec<u8> {
    let code = [vec![6 << 3], varint(code.into())].concat();
    sealed("Status", &[field(2, "Failure"), field(3, "it failed"), field(4, "Expired"), code].concat())
}

fn frame(event: &str, object: &[u8]) -> Vec<u8> {
    let message = [field(1, event), field(2, field(1, object))].concat();
    [u32::try_from(message.len()).expect("a valid value").to_be_bytes().to_vec(), message].concat()
}

fn reply(code: u16, body: Vec<u8>) -> Reply {
    Reply::whole(code, &[("content-type", PROTOBUF)], body)
}

fn json_list(name: &str) -> Reply {
    let item = json!({ "metadata": { "name": name, "resourceVersion": "5" }, "data": { "k": "v" } });
    let metadata = json!({ "resourceVersion": "12" });
    Reply::json(200, json!({ "kind": "ConfigMapList", "metadata": metadata, "items": [item] }).to_string())
}

fn config_maps(server: &ScriptedServer) -> ListWatch<ConfigMap> {
    ListWatch::new(&Client::from(server.client()).resource::<ConfigMap>())
}

/// Returns the decoded objects of a page.
async fn read<K: Clone + Send + Sync + 'static>(source: &ListWatch<K>) -> Result<Vec<K>, Error> {
    let mut page = source.list(ListRequest::new()).await?;
    let mut objects = Vec::new();
    while let Some(part) = page.next().await {
        if let ListPart::Item(item) = part? {
            assert!(item.decoder().is_some());
            objects.push(item.decode().expect("a valid value").as_ref().clone());
        }
    }
    Ok(objects)
}

async fn names(source: &ListWatch<ConfigMap>) -> Result<Vec<String>, Error> {
    let maps = read(source).await?;
    for map in &maps {
        assert_eq!(map.data.as_ref().expect("a valid value")["k"], "v");
    }
    Ok(maps.into_iter().filter_map(|map| map.metadata.name).collect())
}

fn accepts(server: &ScriptedServer) -> Vec<String> {
    let accept = |request: &Received| request.header("accept").unwrap_or_default().to_owned();
    server.received().iter().map(accept).collect()
}

#[tokio::test]
async fn a_response_is_read_in_the_encoding_that_it_has() {
    let server = ScriptedServer::script([
        reply(200, list(&[map("a", "5"), map("b", "6")])),
        json_list("c"),
        Reply::whole(
            200,
            &[("content-type", "Application/VND.kubernetes.protobuf; x=y")],
            list(&[map("d", "5")]),
        ),
    ])
    .await;
    let source = config_maps(&server);
    assert_eq!(names(&source).await.unwrap(), ["a", "b"]);
    assert_eq!(names(&source).await.unwrap(), ["c"]);
    assert_eq!(names(&source).await.unwrap(), ["d"]);
    assert_eq!(accepts(&server), [EITHER; 3]);
}

#[tokio::test]
async fn a_refusal_of_protobuf_is_remembered_by_the_source() {
    for code in [406, 415] {
        let refusal = || Reply::json(code, json!({ "kind": "Status", "code": code }).to_string());
        let server = ScriptedServer::script([
            refusal(),
            json_list("a"),
            json_list("b"),
            Reply::json(200, ""),
            refusal(),
        ])
        .await;
        let source = config_maps(&server);
        assert_eq!(names(&source).await.unwrap(), ["a"]);
        assert_eq!(names(&source).await.unwrap(), ["b"]);
        drop(source.watch(WatchRequest::new()).await.unwrap());
        let json = "application/json";
        assert_eq!(accepts(&server), [EITHER, json, json, json]);
        // Nothing else can be requested.
        assert!(names(&source).await.is_err());
        assert_eq!(accepts(&server).len(), 5);
    }
}

#[tokio::test]
async fn a_watch_that_refuses_protobuf_falls_back_too() {
    let server = ScriptedServer::script([
        reply(406, status(406)),
        Reply::json(200, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n"),
    ])
    .await;
    let mut events = config_maps(&server).watch(WatchRequest::new()).await.unwrap();
    let Some(Ok(WatchEvent::Bookmark(mark))) = events.next().await else { panic!("a bookmark") };
    assert_eq!(mark.resource_version, "9");
    let either = "application/vnd.kubernetes.protobuf;stream=watch,application/json;q=0.9";
    assert_eq!(accepts(&server), [either, "application/json"]);
}

#[tokio::test]
async fn other_failures_do_not_fall_back() {
    let server = ScriptedServer::script([reply(410, status(410)), reply(200, status(0))]).await;
    let source = config_maps(&server);
    let error = names(&source).await.unwrap_err();
    assert!(error.is_expired() && error.to_string().contains("it failed"), "{error}");
    // The same as a `Status` sent with code 200, whose own code is missing.
    let Err(Error::Api { status, .. }) = names(&source).await else { panic!("a status") };
    assert_eq!((status.code, status.message.as_str()), (500, "it failed"));
    assert_eq!(accepts(&server), [EITHER; 2]);
}

#[tokio::test]
async fn events_bookmarks_and_errors_of_a_watch_are_read() {
    let annotation = field(12, [field(1, "k8s.io/initial-events-end"), field(2, "true")].concat());
    let bookmark = sealed("ConfigMap", &field(1, [field(6, "9"), annotation].concat()));
    let object = |name| sealed("ConfigMap", &map(name, "7"));
    let body = [
        frame("ADDED", &object("a")),
        frame("MODIFIED", &object("b")),
        frame("DELETED", &object("c")),
        frame("BOOKMARK", &bookmark),
        frame("ERROR", &status(410)),
        frame("ADDED", &object("late")),
    ]
    .concat();
    let headers = [("content-type", "application/vnd.kubernetes.protobuf;stream=watch")];
    let server = ScriptedServer::script([
        Reply::whole(200, &headers, body.clone()),
        Reply::whole(200, &headers, body[..body.len() / 2].to_vec()),
        Reply::whole(200, &headers, frame("ADDED", &sealed("Pod", &map("a", "7")))),
    ])
    .await;
    let source = config_maps(&server);
    let mut events = source.watch(WatchRequest::new()).await.unwrap();
    for expected in ["a", "b", "c"] {
        let item = match events.next().await.unwrap().unwrap() {
            WatchEvent::Added(item) if expected == "a" => item,
            WatchEvent::Modified(item) if expected == "b" => item,
            WatchEvent::Deleted(item) if expected == "c" => item,
            other => panic!("{other:?}"),
        };
        assert_eq!(item.identity().key(), format!("shop/{expected}"));
        assert_eq!(item.decode().unwrap().metadata.name.as_deref(), Some(expected));
    }
    let Some(Ok(WatchEvent::Bookmark(mark))) = events.next().await else { panic!("a bookmark") };
    assert!(mark.resource_version == "9" && mark.initial_events_end);
    let Some(Err(error)) = events.next().await else { panic!("an error") };
    assert!(error.is_expired(), "{error}");
    assert!(events.next().await.is_none(), "an error is last");

    let events: Vec<_> = source.watch(WatchRequest::new()).await.unwrap().collect().await;
    assert!(matches!(events.last(), Some(Err(Error::Body { .. }))), "{events:?}");
    let events: Vec<_> = source.watch(WatchRequest::new()).await.unwrap().collect().await;
    assert!(matches!(events[..], [Err(Error::Body { .. })]), "{events:?}");
}

#[tokio::test]
async fn the_setting_and_the_decoder_choose_what_is_requested() {
    let server = ScriptedServer::handler(|request| match request.header("accept") {
        Some(accept) if accept.starts_with(PROTOBUF) => reply(200, list(&[map("a", "5")])),
        _ => json_list("a"),
    })
    .await;
    let own = Protobuf::for_kind("", "v1", "ConfigMap").unwrap().keep_managed_fields();
    for (source, accept) in [
        (config_maps(&server), EITHER),
        (config_maps(&server).encoding(WireEncoding::Auto), EITHER),
        (config_maps(&server).encoding(WireEncoding::Json), "application/json"),
        (config_maps(&server).encoding(WireEncoding::Protobuf), PROTOBUF),
        (config_maps(&server).decoder(Json::new()), "application/json"),
        (config_maps(&server).decoder(Json::new()).encoding(WireEncoding::Protobuf), "application/json"),
        (config_maps(&server).decoder(own), PROTOBUF),
    ] {
        assert_eq!(names(&source).await.unwrap(), ["a"], "{accept}");
        assert_eq!(accepts(&server).last().map(String::as_str), Some(accept));
    }
}

#[tokio::test]
async fn protobuf_is_requested_for_metadata_but_not_for_types_of_unknown_members() {
    let server = ScriptedServer::handler(|request| match request.header("accept") {
        Some(accept) if accept.contains("PartialObjectMetadataList") => {
            reply(200, sealed("PartialObjectMetadataList", &field(2, map("a", "5"))))
        }
        _ => json_list("a"),
    })
    .await;
    let client = Client::from(server.client());
    let maps = ApiResource::erase::<ConfigMap>(&());
    let metadata = ListWatch::new(&client.resource_with::<ObjectMetadata>(&maps));
    assert_eq!(read(&metadata).await.unwrap()[0].metadata.name.as_deref(), Some("a"));
    let of = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let either = format!("{PROTOBUF};{of},application/json;{of};q=0.9");
    assert_eq!(accepts(&server), [either]);

    let dynamic = ListWatch::new(&client.resource_with::<DynamicObject>(&maps));
    assert_eq!(read(&dynamic).await.unwrap()[0].data["data"], json!({ "k": "v" }));
    assert_eq!(accepts(&server)[1], "application/json");

    let custom = ResourcePath::new("example.com", "v1", "configmaps").unwrap();
    let custom = ListWatch::<Value>::at(client, custom, "ConfigMap");
    assert_eq!(read(&custom).await.unwrap().len(), 1);
    assert_eq!(accepts(&server)[2], "application/json");
    let error = read(&custom.encoding(WireEncoding::Protobuf)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { reason: InvalidRequest::Params(_), .. }), "{error}");
}

#[tokio::test]
async fn protobuf_that_was_not_requested_is_rejected() {
    let server = ScriptedServer::handler(|_| reply(200, list(&[map("a", "5")]))).await;
    let error = names(&config_maps(&server).decoder(Json::new())).await.unwrap_err();
    assert!(matches!(error, Error::Decode { reason: Unreadable::ContentType, .. }), "{error}");
    let client = Client::from(server.client());
    let custom = ResourcePath::new("example.com", "v1", "configmaps").unwrap();
    let error = read(&ListWatch::<Value>::at(client, custom, "ConfigMap")).await.unwrap_err();
    assert!(matches!(error, Error::Decode { reason: Unreadable::ContentType, .. }), "{error}");
}

/// Creates an object from JSON, and returns its collection.
async fn create<K>(client: &Client, object: Value) -> ResourcePath
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let path = ResourcePath::new(K::group(&()), K::version(&()), K::plural(&())).expect("a correct server");
    let namespaced = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => path.clone().in_namespace(namespace).expect("a correct server"),
        None => path.clone(),
    };
    let request = ApiRequest::create(namespaced, &PostParams::default(), &object).expect("a correct server");
    let _: Value = client.rest().request(request).send().await.expect("a correct server");
    path
}

/// Compares the objects of lists and of watches in both encodings.
async fn is_same_in_both<K>(client: &Client, object: Value)
where
    K: Resource<DynamicType = ()>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + PartialEq
        + Send
        + Sync
        + 'static,
{
    let path = create::<K>(client, object).await;
    let source =
        |encoding| ListWatch::<K>::at(client.clone(), path.clone(), &K::kind(&())).encoding(encoding);
    let listed = read(&source(WireEncoding::Json)).await.expect("a correct server");
    assert!(!listed.is_empty());
    assert_eq!(read(&source(WireEncoding::Protobuf)).await.expect("a correct server"), listed);
    let any =
        |encoding| ListWatch::<Value>::at(client.clone(), path.clone(), &K::kind(&())).encoding(encoding);
    assert_eq!(
        read(&any(WireEncoding::Protobuf)).await.expect("a correct server"),
        read(&any(WireEncoding::Json)).await.expect("a correct server")
    );

    let mut received = Vec::new();
    for encoding in [WireEncoding::Json, WireEncoding::Protobuf] {
        let mut events =
            any(encoding).watch(WatchRequest::new().send_initial_events()).await.expect("a correct server");
        let mut objects = Vec::new();
        let version = loop {
            match events.next().await.expect("a correct server").expect("a correct server") {
                WatchEvent::Added(item) => {
                    objects.push((
                        item.content().expect("a correct server"),
                        item.decode().expect("a correct server"),
                    ));
                }
                WatchEvent::Bookmark(mark) if mark.initial_events_end => break mark.resource_version,
                other => panic!("{other:?}"),
            }
        };
        received.push((objects, version));
    }
    let (from_protobuf, from_json) =
        (received.pop().expect("a correct server"), received.pop().expect("a correct server"));
    assert_eq!(from_protobuf.1, from_json.1);
    assert_eq!(from_protobuf.0.len(), listed.len());
    for ((one, value), (other, expected)) in from_protobuf.0.iter().zip(&from_json.0) {
        assert_eq!(value, expected);
        assert!(one.is_same(other) && other.is_same(one) && one.is_same(one));
        let (changed, _) = &from_json.0[from_json.0.len() - 1];
        if from_json.0.len() > 1 && expected != &from_json.0[from_json.0.len() - 1].1 {
            assert!(!one.is_same(changed));
        }
    }
}

#[tokio::test]
async fn objects_of_the_embedded_server_are_equal_in_both_encodings() {
    let server = ApiServer::in_process();
    let client = Client::from(server.client());
    let container = json!({ "name": "c", "image": "i", "ports": [{ "containerPort": 80 }], "args": ["--a", "--b"],
        "env": [{ "name": "A", "value": "1" }, { "name": "B", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
        "resources": { "limits": { "cpu": "100m", "memory": "1Gi" } },
        "livenessProbe": { "httpGet": { "port": "web", "path": "/" }, "periodSeconds": 3 },
        "readinessProbe": { "tcpSocket": { "port": 80 } } });
    let pod = json!({ "containers": [container],
        "volumes": [{ "name": "v", "configMap": { "name": "m", "items": [{ "key": "k", "path": "p" }] } },
            { "name": "e", "emptyDir": {} }],
        "tolerations": [{ "operator": "Exists" }] });
    let metadata = |name: &str| {
        json!({ "name": name, "namespace": "default", "labels": { "app": "web", "empty": "" },
            "annotations": { "note": "größe" }, "finalizers": ["example.com/f"] })
    };
    for name in ["a", "b"] {
        let object = json!({ "metadata": metadata(name), "spec": pod });
        is_same_in_both::<Pod>(&client, object).await;
    }
    is_same_in_both::<Deployment>(&client, json!({ "metadata": metadata("d"), "spec": { "replicas": 0,
        "selector": { "matchLabels": { "app": "web" } }, "strategy": { "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 1 } },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod } } }))
    .await;
    is_same_in_both::<ConfigMap>(
        &client,
        json!({ "metadata": metadata("m"), "data": { "k": "v", "empty": "" },
        "binaryData": { "b": "AAEC/w==", "none": "" }, "immutable": false }),
    )
    .await;
    is_same_in_both::<Secret>(
        &client,
        json!({ "metadata": metadata("s"), "data": { "k": "AAEC/w==" }, "type": "Opaque" }),
    )
    .await;
    is_same_in_both::<Event>(&client, json!({ "metadata": metadata("e"), "involvedObject": { "kind": "Pod", "name": "a", "namespace": "default" },
        "reason": "Started", "type": "Normal", "firstTimestamp": "2026-01-02T03:04:05Z", "eventTime": null }))
    .await;
    is_same_in_both::<Node>(
        &client,
        json!({ "metadata": { "name": "n" }, "spec": { "podCIDR": "10.0.0.0/24" },
        "status": { "capacity": { "cpu": "4" } } }),
    )
    .await;
    let property = json!({ "type": "object", "properties": { "size": { "type": "integer", "minimum": 1, "maximum": 2.5, "default": 2 },
        "any": { "x-kubernetes-int-or-string": true }, "map": { "type": "object", "additionalProperties": { "type": "string" } },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "list": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } } } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": property } } } });
    is_same_in_both::<CustomResourceDefinition>(&client, json!({ "metadata": { "name": "foos.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList" },
            "versions": [version] } }))
    .await;
}

#[tokio::test]
async fn a_narrow_type_and_metadata_are_read_from_either_encoding() {
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Narrow {
        metadata: NarrowMetadata,
        data: Option<std::collections::BTreeMap<String, String>>,
    }
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct NarrowMetadata {
        name: String,
        resource_version: String,
    }

    let server = ApiServer::in_process();
    let client = Client::from(server.client());
    let object = json!({ "metadata": { "name": "m", "namespace": "default" }, "data": { "k": "v" } });
    let path = create::<ConfigMap>(&client, object).await;
    let narrow =
        |encoding| ListWatch::<Narrow>::at(client.clone(), path.clone(), "ConfigMap").encoding(encoding);
    let from_json = read(&narrow(WireEncoding::Json)).await.unwrap();
    assert_eq!(read(&narrow(WireEncoding::Protobuf)).await.unwrap(), from_json);
    assert_eq!(from_json.iter().filter(|map| map.metadata.name == "m").count(), 1);

    let metadata = |encoding| {
        let maps = client.resource_with::<ObjectMetadata>(&ApiResource::erase::<ConfigMap>(&()));
        ListWatch::new(&maps).encoding(encoding)
    };
    let without_types = |mut objects: Vec<ObjectMetadata>| {
        for object in &mut objects {
            object.types = None;
        }
        objects
    };
    assert_eq!(
        without_types(read(&metadata(WireEncoding::Protobuf)).await.unwrap()),
        without_types(read(&metadata(WireEncoding::Json)).await.unwrap())
    );
}
