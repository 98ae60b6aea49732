//! Typed resource clients: every verb, every scope, every kind of type, over a real socket.

use std::borrow::Cow;

use futures_util::TryStreamExt as _;
use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v1::Scale,
    core::v1::{ConfigMap, Node, Pod},
};
use kube_core::{
    ApiResource, DynamicObject, GroupVersionKind, NamespaceResourceScope, ObjectMeta, PartialObjectMeta,
    Resource,
    params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    subresource::{EvictParams, LogParams},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use watchkeeper_client::{Client, Error, rest::Deletion};
use watchkeeper_test_support::{Received, Reply, ScriptedServer};

/// Starts a server that responds with an object, a list, or for a deletion a status.
async fn echo() -> (ScriptedServer, Client) {
    let server = ScriptedServer::handler(|request| Reply::json(200, response_to(request).to_string())).await;
    let client = Client::from(server.client());
    (server, client)
}

fn response_to(request: &Received) -> Value {
    let path = request.target().split('?').next().unwrap_or_default();
    let named = |kind: &str, api: &str| json!({"kind": kind, "apiVersion": api, "metadata": {"name": "a"}});
    match (request.method(), path.rsplit('/').next().unwrap_or_default()) {
        (_, "scale") => named("Scale", "autoscaling/v1"),
        (_, "eviction") => json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}),
        (_, "log") => json!("a log"),
        ("DELETE", _) => json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
        ("GET", "pods" | "nodes" | "deployments" | "configmaps" | "gadgets") => {
            json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []})
        }
        _ if path.contains("/pods") => named("Pod", "v1"),
        _ if path.contains("/nodes") => named("Node", "v1"),
        _ if path.contains("/configmaps") => named("ConfigMap", "v1"),
        _ if path.contains("/deployments") => named("Deployment", "apps/v1"),
        _ => named("Gadget", "example.com/v1"),
    }
}

/// A custom resource type, written by hand instead of by `#[derive(CustomResource)]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gadget {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
}

impl Resource for Gadget {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Gadget".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        "example.com".into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "gadgets".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn config(name: Option<&str>, namespace: Option<&str>) -> ConfigMap {
    let metadata = ObjectMeta {
        name: name.map(Into::into),
        namespace: namespace.map(Into::into),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[tokio::test]
async fn every_verb_of_a_namespaced_type_is_the_request_it_should_be() {
    let (server, client) = echo().await;
    let configs = client.resource::<ConfigMap>().namespace("web");
    let object = config(Some("a"), Some("web"));
    let (post, patch, delete) = (PostParams::default(), PatchParams::apply("me"), DeleteParams::default());
    let merge = Patch::Merge(json!({}));

    configs.get("a").await.unwrap();
    configs.get_with("a", &GetParams::any()).await.unwrap();
    assert!(configs.get_opt("a").await.unwrap().is_some());
    assert_eq!(
        configs.list(&ListParams::default()).await.unwrap().metadata.resource_version.as_deref(),
        Some("7")
    );
    configs.create(&post, &object).await.unwrap();
    configs.update(&post, &object).await.unwrap();
    configs.update_status(&post, &object).await.unwrap();
    configs.patch("a", &PatchParams::default(), &merge).await.unwrap();
    configs.patch_status("a", &PatchParams::default(), &merge).await.unwrap();
    configs.apply(&patch, &object).await.unwrap();
    configs.apply_status(&patch.clone().force(), &object).await.unwrap();
    assert!(matches!(configs.delete("a", &delete).await.unwrap(), Deletion::Status(_)));
    configs.delete_collection(&delete, &ListParams::default().labels("x")).await.unwrap();
    let _: ConfigMap = configs.get_subresource("a", "part").await.unwrap();
    let _: ConfigMap = configs.update_subresource("a", "part", &post, &object).await.unwrap();
    let _: ConfigMap = configs.create_subresource("a", "part", &post, &object).await.unwrap();
    let _: ConfigMap = configs.patch_subresource("a", "part", &PatchParams::default(), &merge).await.unwrap();

    let base = "/api/v1/namespaces/web/configmaps";
    let expected = [
        format!("GET {base}/a"),
        format!("GET {base}/a?resourceVersion=0"),
        format!("GET {base}/a"),
        format!("GET {base}"),
        format!("POST {base}"),
        format!("PUT {base}/a"),
        format!("PUT {base}/a/status"),
        format!("PATCH {base}/a"),
        format!("PATCH {base}/a/status"),
        format!("PATCH {base}/a?fieldManager=me"),
        format!("PATCH {base}/a/status?force=true&fieldManager=me"),
        format!("DELETE {base}/a"),
        format!("DELETE {base}?labelSelector=x"),
        format!("GET {base}/a/part"),
        format!("PUT {base}/a/part"),
        format!("POST {base}/a/part"),
        format!("PATCH {base}/a/part"),
    ];
    let sent: Vec<String> =
        server.lines().iter().map(|line| line.trim_end_matches(" HTTP/1.1").to_owned()).collect();
    assert_eq!(sent, expected);
    assert_eq!(server.received()[9].header("content-type"), Some("application/apply-patch+yaml"));
}

#[tokio::test]
async fn scale_eviction_and_logs_are_subresources_with_types() {
    let (server, client) = echo().await;
    let deployments = client.resource::<Deployment>().namespace("web");
    deployments.scale("a").await.unwrap();
    deployments.update_scale("a", &PostParams::default(), &Scale::default()).await.unwrap();
    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    deployments.patch_scale("a", &PatchParams::default(), &two).await.unwrap();

    let pods = client.resource::<Pod>().namespace("web");
    let gently = EvictParams { delete_options: Some(DeleteParams::background()), ..EvictParams::default() };
    assert!(pods.evict("a", &gently).await.unwrap().is_success());
    let params =
        LogParams { container: Some("c".into()), tail_lines: Some(3), follow: true, ..LogParams::default() };
    let log: Vec<_> = pods.log("a", &params).await.unwrap().try_collect().await.unwrap();
    assert_eq!(log.concat(), b"\"a log\"");

    assert_eq!(
        server.lines(),
        [
            "GET /apis/apps/v1/namespaces/web/deployments/a/scale HTTP/1.1",
            "PUT /apis/apps/v1/namespaces/web/deployments/a/scale HTTP/1.1",
            "PATCH /apis/apps/v1/namespaces/web/deployments/a/scale HTTP/1.1",
            "POST /api/v1/namespaces/web/pods/a/eviction HTTP/1.1",
            "GET /api/v1/namespaces/web/pods/a/log?container=c&follow=true&tailLines=3 HTTP/1.1",
        ]
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&server.received()[3].body).unwrap(),
        json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"},
            "deleteOptions": {"propagationPolicy": "Background"},
        })
    );
}

#[tokio::test]
async fn cluster_wide_custom_dynamic_and_metadata_types_are_served_alike() {
    let (server, client) = echo().await;
    client.resource::<Node>().get("a").await.unwrap();
    client.resource::<Gadget>().namespace("web").get("a").await.unwrap();
    client.resource::<Gadget>().default_namespace().list(&ListParams::default()).await.unwrap();
    let gadgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Gadget"));
    client.resource_with::<DynamicObject>(&gadgets).namespace("web").get("a").await.unwrap();
    client.resource_with::<DynamicObject>(&gadgets).get("a").await.unwrap();
    client.resource_with::<DynamicObject>(&gadgets).list(&ListParams::default()).await.unwrap();
    let metadata = client.resource::<PartialObjectMeta<Pod>>().namespace("web");
    metadata.get("a").await.unwrap();
    metadata.list(&ListParams::default()).await.unwrap();

    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/nodes/a HTTP/1.1",
            "GET /apis/example.com/v1/namespaces/web/gadgets/a HTTP/1.1",
            "GET /apis/example.com/v1/namespaces/default/gadgets HTTP/1.1",
            "GET /apis/example.com/v1/namespaces/web/gadgets/a HTTP/1.1",
            "GET /apis/example.com/v1/gadgets/a HTTP/1.1",
            "GET /apis/example.com/v1/gadgets HTTP/1.1",
            "GET /api/v1/namespaces/web/pods/a HTTP/1.1",
            "GET /api/v1/namespaces/web/pods HTTP/1.1",
        ]
    );
    let accepted: Vec<_> =
        server.received()[6..].iter().map(|r| r.header("accept").map(str::to_owned)).collect();
    assert_eq!(
        accepted.iter().flatten().collect::<Vec<_>>(),
        [
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ]
    );
}

#[tokio::test]
async fn a_client_for_all_namespaces_uses_the_namespace_of_the_object_and_rejects_bare_names() {
    let (server, client) = echo().await;
    let configs = client.resource::<ConfigMap>();
    configs.update(&PostParams::default(), &config(Some("a"), Some("b"))).await.unwrap();
    assert_eq!(server.lines(), ["PUT /api/v1/namespaces/b/configmaps/a HTTP/1.1"]);
    let error = configs.get("a").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "get configmaps: not sent: an object of a namespaced type needs a namespace besides its name; \
         choose one with ResourceClient::namespace"
    );
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn an_object_that_does_not_fit_the_request_is_not_sent() {
    let (server, client) = echo().await;
    let here = client.resource::<ConfigMap>().namespace("web");
    let everywhere = client.resource::<ConfigMap>();
    let post = PostParams::default();
    let mut read = config(Some("a"), None);
    read.metadata.managed_fields = Some(vec![]);
    let results = [
        (
            here.update(&post, &config(None, None)).await,
            "update configmaps: not sent: the object has no metadata.name",
        ),
        (
            here.create(&post, &config(Some("a"), Some("elsewhere"))).await,
            "create configmaps: not sent: the object's metadata.namespace is not the client's namespace",
        ),
        (
            everywhere.create(&post, &config(Some("a"), None)).await,
            "create configmaps: not sent: the object names no namespace, and the client is for all of them; \
             set metadata.namespace",
        ),
        (
            here.apply(&PatchParams::apply("me"), &read).await,
            "patch configmaps: not sent: an object that is applied has no metadata.managedFields; \
             apply the fields you mean, not what was read",
        ),
        (
            client.resource::<ConfigMap>().namespace("../x").get("a").await,
            "get objects: not sent: the namespace may not contain '/': \"../x\"",
        ),
    ];
    for (result, message) in results {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_deletion_that_takes_time_returns_the_object() {
    let going = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","deletionTimestamp":"2024-01-01T00:00:00Z"}}"#;
    let server = ScriptedServer::script([Reply::json(200, going)]).await;
    let pods = Client::from(server.client()).resource::<Pod>().namespace("web");
    let Deletion::Object(pod) = pods.delete("a", &DeleteParams::default()).await.unwrap() else {
        panic!("the object was returned");
    };
    assert!(pod.metadata.deletion_timestamp.is_some());
}

fn page(version: &str, token: &str, names: &[&str]) -> Reply {
    let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    let metadata = json!({"resourceVersion": version, "continue": token, "remainingItemCount": 1});
    Reply::json(
        200,
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).to_string(),
    )
}

#[tokio::test]
async fn a_list_is_read_to_its_end_page_by_page() {
    let replies = [page("7", "t1", &["a", "b"]), page("7", "t2", &[]), page("7", "", &["c"])];
    let server = ScriptedServer::script(replies).await;
    let pods = Client::from(server.client()).resource::<Pod>();
    let all = pods.list_all(&ListParams::default().at("5").labels("x")).await.unwrap();
    let names: Vec<_> = all.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(all.types.kind, "PodList");
    assert_eq!(all.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!((all.metadata.continue_, all.metadata.remaining_item_count), (None, None));
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/pods?labelSelector=x&limit=500&resourceVersion=5 HTTP/1.1",
            "GET /api/v1/pods?labelSelector=x&limit=500&continue=t1 HTTP/1.1",
            "GET /api/v1/pods?labelSelector=x&limit=500&continue=t2 HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn pages_that_go_in_circles_are_an_error_and_not_an_endless_list() {
    let server = ScriptedServer::handler(|request| {
        page("7", if request.target().contains("t1") { "t2" } else { "t1" }, &["a"])
    })
    .await;
    let pods = Client::from(server.client()).resource::<Pod>();
    let error = pods.list_all(&ListParams::default()).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }));
    assert_eq!(error.to_string(), "list pods: the server gave the same continue token twice");
    assert_eq!(server.lines().len(), 3);
}

#[tokio::test]
async fn a_list_of_null_is_empty_and_a_response_without_items_is_not_a_list() {
    let list = |rest: &str| {
        Reply::json(200, format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}}{rest}}}"#))
    };
    let server = ScriptedServer::script([list(r#","items":null"#), list("")]).await;
    let pods = Client::from(server.client()).resource::<Pod>();
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    let error = pods.list(&ListParams::default()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("list pods: the response could not be decoded: missing field `items`"),
        "{error}"
    );
}

#[tokio::test]
async fn the_requests_of_lists_and_watches_can_be_had_unsent() {
    let (_server, client) = echo().await;
    let pods = client.resource::<PartialObjectMeta<Pod>>().namespace("web");
    let watch = pods.watch_request(&WatchParams::default(), "7").unwrap().into_http().unwrap();
    assert_eq!(
        watch.uri(),
        "/api/v1/namespaces/web/pods?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=7"
    );
    assert_eq!(watch.headers()["accept"], "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let list = pods.list_request(&ListParams::default()).unwrap().into_http().unwrap();
    assert_eq!(list.headers()["accept"], "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
}
