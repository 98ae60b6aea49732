//! An embedded server, objects on it, and a log of reconciles.

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube_core::{ObjectMeta, Resource};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::kube_client::{
    Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    client::Body,
};
use watchkeeper_client::{
    list_watch::{ListRequest, ListStream, ListerWatcher, Opening, Selection, WatchRequest, WatchStream},
    rest::ResourceClient,
};
use watchkeeper_controller::{
    Action, Cause, Context, ReconcileError, Request, Triggers,
    manager::{RunError, Runnable},
};
use watchkeeper_informer::ObjectKey;
use watchkeeper_workqueue::{Clock as _, TokioClock};

pub(crate) fn server() -> ApiServer {
    // Without built-in controllers, only the test and the code under test write.
    ApiServer::builder().seed(7).controllers(false).build()
}

/// Returns a server, a channel to enqueue keys, and a log for the reconciles.
pub(crate) fn setup() -> (ApiServer, Triggers, Log) {
    (server(), Triggers::new(), Log::new())
}

pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().unwrap()
}

pub(crate) fn because(text: &str) -> Cause {
    Cause::Other(text.into())
}

pub(crate) fn millis_between(then: Duration, now: Duration) -> u128 {
    now.saturating_sub(then).as_millis()
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Runs all tasks until they are idle. Time is virtual.
pub(crate) async fn settle() {
    tokio::time::sleep(ms(200)).await;
}

pub(crate) fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": "default"}})).unwrap()
}

pub(crate) fn deployment(name: &str) -> Deployment {
    let labels = json!({"app": name});
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }))
    .unwrap()
}

pub(crate) fn owner(kind: &str, name: &str, is_controller: bool) -> OwnerReference {
    let api_version = if kind == "ConfigMap" { "v1" } else { "apps/v1" };
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        controller: Some(is_controller),
        block_owner_deletion: None,
    }
}

pub(crate) fn owned(mut deployment: Deployment, owners: &[OwnerReference]) -> Deployment {
    deployment.metadata.owner_references = Some(owners.to_vec());
    deployment
}

pub(crate) fn maps(client: &(impl Clone + Into<watchkeeper_client::Client>)) -> ResourceClient<ConfigMap> {
    client.clone().into().resource().namespace("default")
}

pub(crate) fn deployments(
    client: &(impl Clone + Into<watchkeeper_client::Client>),
) -> ResourceClient<Deployment> {
    client.clone().into().resource().namespace("default")
}

pub(crate) async fn create<K>(resource: &ResourceClient<K>, object: &K) -> K
where
    K: Resource + serde::Serialize + serde::de::DeserializeOwned,
{
    resource.create(&PostParams::default(), object).await.unwrap()
}

pub(crate) async fn patch<K>(resource: &ResourceClient<K>, name: &str, patch: Value) -> K
where
    K: Resource + serde::de::DeserializeOwned,
{
    resource.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

pub(crate) async fn delete<K>(resource: &ResourceClient<K>, name: &str)
where
    K: Resource + serde::de::DeserializeOwned,
{
    resource.delete(name, &DeleteParams::default()).await.unwrap();
}

/// A reconcile with its request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoggedReconcile {
    pub(crate) key: String,
    pub(crate) at: Duration,
    pub(crate) version: Option<String>,
    pub(crate) causes: String,
    pub(crate) failures: u32,
    pub(crate) priority: i8,
}

/// The reconciles, in order.
#[derive(Clone)]
pub(crate) struct Log {
    reconciles: Arc<Mutex<Vec<LoggedReconcile>>>,
    clock: TokioClock,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { reconciles: Arc::default(), clock: TokioClock::new() }
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Returns the milliseconds since `then`.
    pub(crate) fn since(&self, then: Duration) -> u128 {
        millis_between(then, self.now())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LoggedReconcile>> {
        self.reconciles.lock()
    }

    pub(crate) fn note<K: Resource>(&self, request: &Request<K>) {
        let object = request.object.as_ref();
        self.lock().push(LoggedReconcile {
            key: request.key.to_string(),
            at: self.now(),
            version: object.and_then(|object| object.meta().resource_version.clone()),
            causes: request.causes.to_string(),
            failures: request.failures,
            priority: request.priority.0,
        });
    }

    pub(crate) fn all(&self) -> Vec<LoggedReconcile> {
        self.lock().clone()
    }

    /// Returns the reconciles since the last call.
    pub(crate) fn take(&self) -> Vec<LoggedReconcile> {
        std::mem::take(&mut self.lock())
    }

    pub(crate) fn take_keys(&self) -> Vec<String> {
        self.take().into_iter().map(|logged| logged.key).collect()
    }

    /// Returns a reconciler that logs its requests and then calls `reconcile`.
    pub(crate) fn wrap<K: Resource, F: Future>(
        &self,
        reconcile: impl Fn(Request<K>, Context) -> F + Send + Sync + 'static,
    ) -> impl Fn(Request<K>, Context) -> F + Send + Sync + 'static {
        let log = self.clone();
        move |request, context| {
            log.note(&request);
            reconcile(request, context)
        }
    }

    /// Returns a reconciler that only logs its requests.
    pub(crate) fn noting<K: Resource + 'static>(
        &self,
    ) -> impl Fn(Request<K>, Context) -> Ready<Result<Action, ReconcileError>> + Send + Sync + use<K> + 'static
    {
        let log = self.clone();
        move |request, _| {
            log.note(&request);
            ready(Ok(Action::done()))
        }
    }
}

/// A runnable in a task, until it is stopped.
pub(crate) struct Running {
    stop: CancellationToken,
    tasks: JoinSet<Result<(), RunError>>,
}

impl Running {
    pub(crate) fn start(runnable: &Arc<impl Runnable>) -> Self {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let (runnable, stopped) = (Arc::clone(runnable), stop.clone());
        tasks.spawn(async move { runnable.run(stopped).await });
        Self { stop, tasks }
    }

    /// Requests a stop without waiting.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the runnable has ended.
    pub(crate) async fn ended(&mut self) -> Result<(), RunError> {
        self.tasks.join_next().await.unwrap().unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.ask_to_stop();
        self.ended().await.unwrap();
    }
}

/// Starts a controller and waits until it has reconciled the existing objects.
pub(crate) async fn started(runnable: impl Runnable) -> Running {
    let running = Running::start(&Arc::new(runnable));
    settle().await;
    running
}

/// A source that delivers watch events with a delay.
pub(crate) struct Delayed<S> {
    pub(crate) source: S,
    pub(crate) delay: Arc<Mutex<Duration>>,
}

impl<K: Send + Sync + 'static, S: ListerWatcher<K>> ListerWatcher<K> for Delayed<S> {
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>> {
        self.source.list(request)
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>> {
        let opening = self.source.watch(request);
        let delay = Arc::clone(&self.delay);
        Box::pin(async move {
            let stream = opening.await?.then(move |event| {
                let delay = *delay.lock();
                async move {
                    tokio::time::sleep(delay).await;
                    event
                }
            });
            Ok(Box::pin(stream) as WatchStream<K>)
        })
    }

    fn selection(&self) -> Option<Selection> {
        self.source.selection()
    }
}

/// Returns a source of config maps with delayed watch events, and the delay.
pub(crate) fn late_maps(
    client: &Client,
) -> (Delayed<watchkeeper_client::list_watch::ListWatch<ConfigMap>>, Arc<Mutex<Duration>>) {
    let delay = Arc::new(Mutex::new(Duration::ZERO));
    let client = watchkeeper_client::Client::from(client.clone());
    let source = watchkeeper_client::list_watch::ListWatch::new(&client.resource());
    (Delayed { source, delay: Arc::clone(&delay) }, delay)
}

/// Returns a client whose requests are forbidden if the path contains `forbidden`.
pub(crate) fn refused(server: &ApiServer, forbidden: &'static str) -> Client {
    let client = server.client();
    let guard = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            if !request.uri().path().contains(forbidden) {
                return client.send(request).await;
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "reason": "Forbidden", "code": 403, "message": "you may not",
            });
            let response = http::Response::builder()
                .status(403)
                .header("content-type", "application/json")
                .body(Body::from(status.to_string().into_bytes()));
            response.map_err(watchkeeper_client::kube_client::Error::HttpError)
        }
    });
    Client::new(guard, "default")
}

/// A custom kind, to be installed by tests that need it.
pub(crate) async fn install_foos(client: &Client) {
    let definition = json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    create(&watchkeeper_client::Client::from(client.clone()).resource(), &definition).await;
}

/// The spec of the custom kind.
#[derive(kube_derive::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    schema = "disabled",
    crates(kube_core = "kube_core")
)]
pub(crate) struct FooSpec {
    pub(crate) replicas: u32,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    pub(crate) ready: u32,
}

pub(crate) fn foo(name: &str) -> Foo {
    let made = Foo::new(name, FooSpec { replicas: 1 });
    let metadata = ObjectMeta { namespace: Some("default".into()), ..made.metadata };
    Foo { metadata, ..made }
}
