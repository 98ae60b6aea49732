//! Settings and paths survive conversions between this crate's clients and kube's.

use std::{convert::Infallible, time::Duration};

use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube_client::{Api, client::Body};
use watchkeeper_client::{
    Client, Error,
    error::Awaited,
    kube_core::{ApiResource, DynamicObject, GroupVersionKind, params::ListParams},
    limits::Limits,
    rest::{Deadlines, InvalidRequest, ResourceClient, ToResourceClient},
    transport::TransportError,
};

/// A server that responds to every request after `delay`, with a config map of `bytes` bytes of data.
fn server(delay: Duration, bytes: usize) -> Client {
    let service = tower::service_fn(move |_: Request<Body>| async move {
        tokio::time::sleep(delay).await;
        let data = "x".repeat(bytes);
        let map = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{"k":"{data}"}}}}"#
        );
        Ok::<_, Infallible>(Response::new(Body::from(map.into_bytes())))
    });
    Client::from_service(service, "shop")
}

fn deadline(request: Duration) -> Deadlines {
    let mut deadlines = Deadlines::default();
    deadlines.request = request;
    deadlines
}

fn at_most(object_bytes: usize) -> Limits {
    let mut limits = Limits::default();
    limits.object_bytes = object_bytes;
    limits
}

#[expect(clippy::disallowed_methods, reason = "the virtual clock of the test is what is measured")]
fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Converts to kube's client and back.
fn round_trip(client: &Client) -> Client {
    Client::from(kube_client::Client::from(client))
}

async fn read(client: &Client) -> Result<ConfigMap, Error> {
    client.resource().default_namespace().get("a").await
}

#[tokio::test(start_paused = true)]
async fn a_deadline_survives_conversions_whether_shorter_or_longer_than_the_default() {
    for (seconds, allowed, is_in_time) in
        [(3, 2, false), (1, 2, true), (100, 120, true), (130, 120, false), (100, 65, false)]
    {
        let (delay, allowed) = (Duration::from_secs(seconds), Duration::from_secs(allowed));
        let client = server(delay, 0).with_deadlines(deadline(allowed));
        let once = round_trip(&client);
        let twice = round_trip(&once);
        for client in [client, once, twice] {
            // The second request knows the deadline before it is sent.
            for request in 1..=2 {
                let started = now();
                let result = read(&client).await;
                assert_eq!(result.is_ok(), is_in_time, "request {request}: {result:?}");
                if let Err(error) = result {
                    assert!(
                        matches!(&error, Error::Deadline { part: Awaited::Head, after, .. } if *after == allowed),
                        "{error}"
                    );
                    assert_eq!(started.elapsed(), allowed);
                }
            }
            assert_eq!(client.deadlines().request, allowed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_of_kube_is_subject_to_the_deadline_of_the_client() {
    let client = server(Duration::from_secs(100), 0);
    for (allowed, is_in_time) in [(120, true), (2, false)] {
        let bounded = client.clone().with_deadlines(deadline(Duration::from_secs(allowed)));
        for kube in [bounded.kube(), round_trip(&bounded).kube()] {
            let maps: Api<ConfigMap> = Api::default_namespaced(kube);
            let result = maps.get("a").await;
            assert_eq!(result.is_ok(), is_in_time, "{result:?}");
            if let Err(error) = result {
                let late = TransportError::of(&error);
                assert!(matches!(late, Some(TransportError::Late { part: Awaited::Head, .. })), "{error:?}");
                assert!(error.to_string().contains("within 2s"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn limits_survive_conversions_and_apply_to_an_api_of_kube() {
    for (allowed, fits) in [(10_000, true), (500, false)] {
        let client = server(Duration::ZERO, 1000).with_limits(at_most(allowed));
        for client in [client.clone(), round_trip(&client), round_trip(&round_trip(&client))] {
            let result = read(&client).await;
            assert_eq!(result.is_ok(), fits, "{result:?}");
            if let Err(error) = result {
                assert!(matches!(error, Error::Limit { limit: "object_bytes", allowed: 500, .. }), "{error}");
            }
            assert_eq!(client.limits().object_bytes, allowed);
            let maps: Api<ConfigMap> = Api::default_namespaced(client.kube());
            let result = maps.get("a").await;
            assert_eq!(result.is_ok(), fits, "{result:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_converted_client_take_precedence_one_by_one() {
    let client = server(Duration::from_secs(100), 1000)
        .with_limits(at_most(500))
        .with_deadlines(deadline(Duration::from_secs(200)));
    let larger = round_trip(&client).with_limits(at_most(10_000));
    assert!(read(&larger).await.is_ok(), "the deadline of the origin, the limit of this client");
    let hasty = round_trip(&client).with_deadlines(deadline(Duration::from_secs(1)));
    assert!(matches!(read(&hasty).await, Err(Error::Deadline { .. })));
    assert_eq!((hasty.limits().object_bytes, larger.deadlines().request.as_secs()), (500, 200));
}

#[tokio::test]
async fn a_transport_that_contains_the_client_itself_is_not_its_own_origin() {
    let client = server(Duration::ZERO, 0);
    let wrapped = client.clone().with_transport(client.kube());
    assert!(read(&wrapped).await.is_ok());
    assert_eq!((wrapped.limits(), client.limits()), (&Limits::default(), &Limits::default()));
}

#[tokio::test]
async fn the_default_namespace_and_the_expiry_survive_conversions() {
    let expiry = "2026-11-18T12:00:00Z".parse().ok();
    let client = server(Duration::ZERO, 0);
    let expiring = client.transport().clone().with_valid_until(expiry);
    let back = kube_client::Client::from(Client::from(expiring));
    assert_eq!((back.default_namespace(), *back.valid_until()), ("shop", expiry));
    assert_eq!(round_trip(&client).default_namespace(), "shop");
}

fn gadgets() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Gadget"), "gadgets")
}

#[tokio::test]
async fn an_api_of_kube_converts_to_a_resource_client_and_back_with_its_path() {
    let client = server(Duration::ZERO, 0);
    let kube = client.kube();
    let path = |path: &str| path.to_owned();

    let maps = Api::<ConfigMap>::namespaced(kube.clone(), "web");
    let converted = maps.to_resource_client();
    assert_eq!(converted.path().unwrap().to_string(), path("/api/v1/namespaces/web/configmaps"));
    assert_eq!(Api::try_from(converted).unwrap().resource_url(), maps.resource_url());

    let all = ResourceClient::from(Api::<ConfigMap>::all(kube.clone()));
    assert_eq!(all.path().unwrap().to_string(), path("/api/v1/configmaps"));
    let error = all.get("a").await.unwrap_err();
    assert!(error.to_string().contains("needs a namespace besides its name"), "{error}");
    assert_eq!(Api::try_from(all).unwrap().resource_url(), "/api/v1/configmaps");

    let nodes = ResourceClient::from(Api::<Node>::all(kube.clone()));
    assert_eq!(Api::try_from(nodes).unwrap().resource_url(), "/api/v1/nodes");

    let dynamic = Api::<DynamicObject>::namespaced_with(kube.clone(), "web", &gadgets());
    let converted = dynamic.to_resource_client();
    assert_eq!(Api::try_from(converted).unwrap().resource_url(), dynamic.resource_url());
    let dynamic = client.resource_with::<DynamicObject>(&gadgets()).namespace("web");
    assert_eq!(Api::try_from(dynamic).unwrap().resource_url(), "/apis/example.com/v1/namespaces/web/gadgets");
}

#[tokio::test]
async fn a_namespace_that_is_no_path_segment_is_an_error_of_the_conversion() {
    let maps = server(Duration::ZERO, 0).resource::<ConfigMap>().namespace("../x");
    assert!(matches!(Api::try_from(maps), Err(InvalidRequest::Path(_))));
}

#[tokio::test]
async fn a_client_an_api_and_a_resource_client_reach_the_objects_of_a_type() {
    fn url(maps: &impl ToResourceClient<ConfigMap>) -> String {
        let maps = maps.to_resource_client();
        let request = maps.list_request(&ListParams::default()).unwrap().into_http().unwrap();
        request.uri().to_string()
    }
    let client = server(Duration::ZERO, 0);
    assert_eq!(url(&client), "/api/v1/configmaps");
    assert_eq!(url(&client.resource().namespace("a")), "/api/v1/namespaces/a/configmaps");
    assert_eq!(url(&Api::default_namespaced(client.kube())), "/api/v1/namespaces/shop/configmaps");
}

#[tokio::test]
async fn a_resource_client_narrows_to_the_namespace_of_an_object() {
    let client = server(Duration::ZERO, 0);
    let object = |namespace: Option<&str>| {
        let mut map = ConfigMap::default();
        map.metadata.namespace = namespace.map(str::to_owned);
        map
    };
    let all = client.resource::<ConfigMap>();
    let path = |resource: ResourceClient<ConfigMap>| resource.path().map(|path| path.to_string());
    assert_eq!(path(all.namespace_of(&object(Some("a")))).unwrap(), "/api/v1/namespaces/a/configmaps");
    let error = all.namespace_of(&object(None)).get("a").await.unwrap_err();
    assert!(error.to_string().contains("set metadata.namespace"), "{error}");
    let one = all.namespace("a");
    for same in [Some("a"), None] {
        assert_eq!(path(one.namespace_of(&object(same))).unwrap(), "/api/v1/namespaces/a/configmaps");
    }
    assert!(path(one.namespace_of(&object(Some("b")))).is_err());
    assert!(client.resource::<Node>().namespace_of(&Node::default()).path().is_ok());
}

#[tokio::test]
async fn the_error_of_a_service_in_the_stack_is_part_of_the_message() {
    let service = tower::service_fn(async |_: Request<Body>| {
        Err::<Response<Body>, _>(tower::BoxError::from("no writes\nwithout the lease"))
    });
    let client = Client::from_service(service, "shop");
    for client in [client.clone(), round_trip(&client)] {
        let message = read(&client).await.unwrap_err().to_string();
        assert_eq!(
            message,
            r#"get configmaps "a" in namespace "shop": the connection failed: no writes without the lease"#
        );
    }
}
