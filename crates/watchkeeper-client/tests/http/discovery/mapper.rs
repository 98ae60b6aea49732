//! The REST mapper on a server that gains resources: late custom resources, and the cost of a miss.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use tokio::task::JoinSet;
use watchkeeper_client::{
    Client,
    discovery::{DiscoveryClient, MappingError, RestMapper},
    dynamic::GroupVersionResource,
    kube_core::{DynamicObject, GroupVersionKind},
};
use watchkeeper_test_support::{Received, Reply, ScriptedServer};

struct Cluster {
    server: ScriptedServer,
    has_widgets: Arc<AtomicBool>,
}

impl Cluster {
    async fn start() -> Self {
        let has_widgets = Arc::new(AtomicBool::new(false));
        let defined = Arc::clone(&has_widgets);
        let server =
            ScriptedServer::handler(move |request| respond(request, defined.load(Ordering::Relaxed))).await;
        Self { server, has_widgets }
    }

    fn mapper(&self) -> RestMapper {
        RestMapper::new(DiscoveryClient::new(Client::from(self.server.client())))
    }

    fn define_widgets(&self) {
        self.has_widgets.store(true, Ordering::Relaxed);
    }

    fn fetches(&self) -> usize {
        self.server.received().iter().filter(|request| request.target() == "/apis").count()
    }
}

fn respond(request: &Received, has_widgets: bool) -> Reply {
    let pods = json!({ "metadata": { "name": "" }, "versions": [{ "version": "v1", "resources": [
        { "resource": "pods", "responseKind": { "kind": "Pod" }, "scope": "Namespaced", "singularResource": "pod",
          "verbs": ["get"], "shortNames": ["po"] },
    ] }] });
    let widgets = json!({ "metadata": { "name": "example.com" }, "versions": [{ "version": "v1", "resources": [
        { "resource": "widgets", "responseKind": { "kind": "Widget" }, "scope": "Cluster", "singularResource": "widget",
          "verbs": ["get"], "shortNames": ["wd"] },
    ] }] });
    let items = match request.target() {
        "/api" => json!([pods]),
        "/apis" if has_widgets => json!([widgets]),
        "/apis" => json!([]),
        _ => return Reply::text(404, "404 page not found"),
    };
    let document =
        json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items });
    Reply::json(200, document.to_string())
}

#[tokio::test]
async fn a_resource_defined_after_the_start_is_found() {
    let cluster = Cluster::start().await;
    let mapper = cluster.mapper();
    assert_eq!(mapper.find_resource("po").await.unwrap().resource.to_string(), "v1/pods");
    assert_eq!(cluster.fetches(), 1);

    cluster.define_widgets();
    let widgets = mapper.find_kind("Widget").await.unwrap();
    assert_eq!(widgets.resource, GroupVersionResource::new("example.com", "v1", "widgets"));
    assert!(!widgets.is_namespaced());
    assert_eq!(cluster.fetches(), 2);

    for _ in 0..3 {
        mapper.find_resource("widgets.example.com").await.unwrap();
        mapper.mapping_of_kind(&GroupVersionKind::gvk("example.com", "v1", "Widget")).await.unwrap();
        mapper.mapping_of_resource(&widgets.resource).await.unwrap();
    }
    assert_eq!(cluster.fetches(), 2, "a cached name sends no request");
}

#[tokio::test]
async fn a_lookup_without_a_match_refreshes_once_unless_discovery_was_just_fetched() {
    let cluster = Cluster::start().await;
    let mapper = cluster.mapper();
    for fetches in [1, 2, 3] {
        // In a task, as in programs: the future of the mapper is `Send`.
        let in_task = mapper.clone();
        let looked_up =
            JoinSet::from_iter([async move { in_task.find_resource("widgets").await }]).join_all().await;
        let error = looked_up.into_iter().next().unwrap().unwrap_err();
        assert!(matches!(error, MappingError::NoMatch { .. }), "{error}");
        assert_eq!(cluster.fetches(), fetches);
    }
}

#[tokio::test]
async fn an_object_is_mapped_by_its_types() {
    let cluster = Cluster::start().await;
    cluster.define_widgets();
    let mapper = cluster.mapper();
    let widget: DynamicObject =
        serde_json::from_value(json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {} }))
            .unwrap();
    assert_eq!(
        mapper.mapping_of_object(&widget).await.unwrap().resource.to_string(),
        "example.com/v1/widgets"
    );
    let untyped: DynamicObject = serde_json::from_value(json!({ "metadata": {} })).unwrap();
    assert!(matches!(mapper.mapping_of_object(&untyped).await, Err(MappingError::Untyped)));
}

#[tokio::test]
async fn a_failed_discovery_is_an_error_of_the_mapper() {
    let server = ScriptedServer::handler(|_| Reply::text(503, "starting")).await;
    let mapper = RestMapper::new(DiscoveryClient::new(Client::from(server.client())));
    let error = mapper.find_resource("pods").await.unwrap_err();
    assert!(matches!(error, MappingError::Discovery(_)), "{error}");
}
