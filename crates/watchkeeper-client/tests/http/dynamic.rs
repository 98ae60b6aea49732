//! Dynamic objects: the requests of each verb, and the decoded responses.

use serde_json::{Value, json};
use watchkeeper_client::{
    Client, Error,
    dynamic::GroupVersionResource,
    kube_core::{
        DynamicObject, TypeMeta,
        params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
    },
    rest::ResourceClient,
};
use watchkeeper_test_support::{Received, Reply, ScriptedServer};

fn widget() -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "name": "w1", "namespace": "shop" }, "spec": { "size": 3 },
    }))
    .expect("a widget")
}

fn widgets(server: &ScriptedServer) -> ResourceClient<DynamicObject> {
    let resource = GroupVersionResource::new("example.com", "v1", "widgets");
    Client::from(server.client()).dynamic(&resource)
}

/// Responds to lists with a list, to a scale with a scale, and to everything else with the widget.
fn respond(request: &Received) -> Reply {
    let path = request.target().split('?').next().unwrap_or_default();
    let document = if path.ends_with("/widgets") && request.method() != "POST" {
        json!({ "apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": { "resourceVersion": "7" },
            "items": [{ "metadata": { "name": "w1" } }, { "kind": "Odd", "apiVersion": "v9", "metadata": {} }] })
    } else if path.ends_with("/scale") {
        json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": { "replicas": 2 } })
    } else {
        serde_json::to_value(widget()).expect("a widget is JSON")
    };
    Reply::json(200, document.to_string())
}

#[tokio::test]
async fn every_verb_goes_to_its_path() {
    let server = ScriptedServer::handler(respond).await;
    let shop = widgets(&server).namespace("shop");
    let (get, list) = (GetParams::default(), ListParams::default());
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    let patch = Patch::Merge(json!({ "spec": { "size": 4 } }));
    let applied = PatchParams::apply("tester");

    assert_eq!(shop.get("w1").await.unwrap().data["spec"]["size"], 3);
    shop.get_with("w1", &get).await.unwrap();
    assert!(shop.get_opt("w1").await.unwrap().is_some());
    shop.list(&list).await.unwrap();
    shop.list_all(&list).await.unwrap();
    shop.create(&post, &widget()).await.unwrap();
    shop.update(&post, &widget()).await.unwrap();
    shop.update_status(&post, &widget()).await.unwrap();
    shop.patch("w1", &PatchParams::default(), &patch).await.unwrap();
    shop.apply(&applied, &widget()).await.unwrap();
    shop.apply_status(&applied, &widget()).await.unwrap();
    shop.delete("w1", &delete).await.unwrap();
    shop.delete_collection(&delete, &list).await.unwrap();
    shop.get_subresource::<Value>("w1", "scale").await.unwrap();
    shop.create_subresource::<Value>("w1", "start", &post, &json!({})).await.unwrap();
    shop.update_subresource::<Value>("w1", "scale", &post, &json!({})).await.unwrap();
    shop.patch_subresource::<Value, _>("w1", "scale", &PatchParams::default(), &patch).await.unwrap();

    let collection = "/apis/example.com/v1/namespaces/shop/widgets";
    let expected: Vec<String> = [
        "GET {}/w1",
        "GET {}/w1",
        "GET {}/w1",
        "GET {}",
        "GET {}?limit=500",
        "POST {}",
        "PUT {}/w1",
        "PUT {}/w1/status",
        "PATCH {}/w1",
        "PATCH {}/w1?fieldManager=tester",
        "PATCH {}/w1/status?fieldManager=tester",
        "DELETE {}/w1",
        "DELETE {}",
        "GET {}/w1/scale",
        "POST {}/w1/start",
        "PUT {}/w1/scale",
        "PATCH {}/w1/scale",
    ]
    .iter()
    .map(|line| format!("{} HTTP/1.1", line.replace("{}", collection)))
    .collect();
    assert_eq!(server.lines(), expected);
}

#[tokio::test]
async fn objects_are_sent_as_they_are() {
    let server = ScriptedServer::handler(respond).await;
    widgets(&server).namespace("shop").create(&PostParams::default(), &widget()).await.unwrap();
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert_eq!(sent, serde_json::to_value(widget()).unwrap());
}

#[tokio::test]
async fn without_a_namespace_it_is_the_cluster_or_all_of_them() {
    let server = ScriptedServer::handler(respond).await;
    let everywhere = widgets(&server);
    everywhere.list(&ListParams::default()).await.unwrap();
    everywhere.get("w1").await.unwrap();
    let pods = GroupVersionResource::new("", "v1", "pods");
    Client::from(server.client()).dynamic(&pods).namespace("shop").get("p").await.unwrap();
    everywhere.create(&PostParams::default(), &widget()).await.unwrap();
    assert_eq!(
        server.lines(),
        [
            "GET /apis/example.com/v1/widgets HTTP/1.1",
            "GET /apis/example.com/v1/widgets/w1 HTTP/1.1",
            "GET /api/v1/namespaces/shop/pods/p HTTP/1.1",
            "POST /apis/example.com/v1/namespaces/shop/widgets HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn items_of_a_list_carry_their_types() {
    let server = ScriptedServer::handler(respond).await;
    for list in [
        widgets(&server).list(&ListParams::default()).await.unwrap(),
        widgets(&server).list_all(&ListParams::default()).await.unwrap(),
    ] {
        let types = |at: usize| list.items[at].types.clone().unwrap();
        assert_eq!((types(0).api_version.as_str(), types(0).kind.as_str()), ("example.com/v1", "Widget"));
        assert_eq!(types(1).kind, "Odd", "type fields of an item take precedence");
        assert_eq!(list.metadata.resource_version.as_deref(), Some("7"));
    }
}

#[tokio::test]
async fn an_object_without_types_is_not_sent() {
    let server = ScriptedServer::handler(respond).await;
    let shop = widgets(&server).namespace("shop");
    let mut object = widget();
    for types in [None, Some(TypeMeta::default())] {
        object.types = types;
        for refused in [
            shop.create(&PostParams::default(), &object).await,
            shop.update(&PostParams::default(), &object).await,
            shop.update_status(&PostParams::default(), &object).await,
            shop.apply(&PatchParams::apply("tester"), &object).await,
            shop.apply_status(&PatchParams::apply("tester"), &object).await,
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{error}");
            assert!(error.to_string().contains("widgets: not sent: "), "{error}");
        }
    }
    assert!(server.lines().is_empty());
}

#[tokio::test]
async fn a_name_that_is_no_path_segment_is_rejected_and_not_sent() {
    let server = ScriptedServer::handler(respond).await;
    let client = Client::from(server.client());
    for resource in [
        GroupVersionResource::new("", "v1", "pods/../secrets"),
        GroupVersionResource::new("example.com", "..", "widgets"),
        GroupVersionResource::new("example.com", "v1", ""),
        GroupVersionResource::new("a?b", "v1", "widgets"),
    ] {
        let error = client.dynamic(&resource).namespace("shop").get("w1").await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    assert!(
        client.dynamic(&GroupVersionResource::new("", "v1", "pods")).namespace("").get("p").await.is_err()
    );
    assert!(server.lines().is_empty());
}
