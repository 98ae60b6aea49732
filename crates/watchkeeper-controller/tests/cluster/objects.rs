//! Object helpers of reconcilers, against an embedded server.

use std::{
    convert::Infallible,
    error::Error,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::Method;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube_core::params::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::kube_client::Api;
use watchkeeper_client::{
    Client,
    rest::{Retry, ToResourceClient},
};
use watchkeeper_controller::{
    Context, ErrorClass, ReconcileError,
    objects::{
        apply::{Applied, Applier},
        finalizer::{Event, FinalizeError, finalize},
        write::{ConflictError as _, CreateOrUpdateError, Operation, create_or_update, retry_on_conflict},
    },
};

use crate::faults::{Fate, Faults};

const OURS: &str = "shop.example.com/cleanup";

fn api(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

async fn create(server: &ApiServer, object: Value) -> Arc<ConfigMap> {
    let object: ConfigMap = serde_json::from_value(object).unwrap();
    Arc::new(api(server).create(&PostParams::default(), &object).await.unwrap())
}

async fn patch(server: &ApiServer, name: &str, patch: Value) -> ConfigMap {
    api(server).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

fn finalizers(object: &ConfigMap) -> Vec<&str> {
    object.metadata.finalizers.iter().flatten().map(String::as_str).collect()
}

/// A record of the calls to a reconciler, which fails on demand.
#[derive(Default)]
struct RecordedReconciler {
    events: Mutex<Vec<(&'static str, bool)>>,
}

impl RecordedReconciler {
    async fn reconcile(
        &self,
        api: &Api<ConfigMap>,
        object: Arc<ConfigMap>,
        fails: bool,
    ) -> Result<u32, FinalizeError> {
        finalize(api, OURS, object, |event| async move {
            let (word, object) = match event {
                Event::Apply(object) => ("apply", object),
                Event::Cleanup(object) => ("cleanup", object),
            };
            self.events.lock().unwrap().push((word, finalizers(&object).contains(&OURS)));
            if fails { Err(io::Error::other("no")) } else { Ok(7) }
        })
        .await
    }

    fn calls(&self) -> Vec<(&'static str, bool)> {
        self.events.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_finalizer_is_added_before_the_first_apply_and_removed_after_the_cleanup() {
    let (server, reconciler) = (ApiServer::in_process(), RecordedReconciler::default());
    let object =
        create(&server, json!({"metadata": {"name": "a", "finalizers": ["other.example.com/x"]}})).await;
    let api = api(&server);
    assert_eq!(reconciler.reconcile(&api, object, false).await.unwrap(), 7);
    assert_eq!(reconciler.calls(), [("apply", true)]);
    let object = Arc::new(api.get("a").await.unwrap());
    assert_eq!(finalizers(&object), ["other.example.com/x", OURS]);
    reconciler.reconcile(&api, Arc::clone(&object), false).await.unwrap();
    assert_eq!(
        api.get("a").await.unwrap().metadata.resource_version,
        object.metadata.resource_version,
        "nothing to add"
    );

    api.delete("a", &DeleteParams::default()).await.unwrap();
    let object = Arc::new(api.get("a").await.unwrap());
    let error = reconciler.reconcile(&api, Arc::clone(&object), true).await.unwrap_err();
    assert!(matches!(error, FinalizeError::Cleanup { .. }), "{error}");
    assert_eq!(
        finalizers(&api.get("a").await.unwrap()),
        ["other.example.com/x", OURS],
        "it stays until the cleanup succeeds"
    );
    reconciler.reconcile(&api, object, false).await.unwrap();
    let object = Arc::new(api.get("a").await.unwrap());
    assert_eq!(finalizers(&object), ["other.example.com/x"]);
    let calls = reconciler.calls().len();
    assert_eq!(
        reconciler.reconcile(&api, object, false).await.unwrap(),
        0,
        "without work the default value is returned"
    );
    assert_eq!(reconciler.calls().len(), calls);
}

#[tokio::test]
async fn nothing_is_applied_if_the_finalizer_cannot_be_added() {
    let (server, reconciler, faults) =
        (ApiServer::in_process(), RecordedReconciler::default(), Faults::none());
    let object = create(&server, json!({"metadata": {"name": "a"}})).await;
    faults.plan(|method, _| if *method == Method::PATCH { Fate::Lost } else { Fate::Pass });
    let broken: Api<ConfigMap> = Api::default_namespaced(faults.client(&server).kube());
    let error = reconciler.reconcile(&broken, Arc::clone(&object), false).await.unwrap_err();
    assert!(matches!(error, FinalizeError::Add { .. }), "{error}");

    // The cache is behind: a finalizer was added meanwhile and must not be lost.
    patch(&server, "a", json!({"metadata": {"finalizers": ["other.example.com/x"]}})).await;
    let error = reconciler.reconcile(&api(&server), object, false).await.unwrap_err();
    let FinalizeError::Add { source, .. } = &error else { panic!("{error}") };
    assert!(source.is_conflict(), "{error}");
    assert_eq!(finalizers(&api(&server).get("a").await.unwrap()), ["other.example.com/x"]);
    assert_eq!(reconciler.calls(), []);
}

#[tokio::test]
async fn a_finalizer_is_removed_despite_concurrent_writes_and_other_finalizers_are_kept() {
    let (server, reconciler) = (ApiServer::in_process(), RecordedReconciler::default());
    let api = api(&server);
    create(&server, json!({"metadata": {"name": "a", "finalizers": [OURS, "other.example.com/x"]}})).await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let stale = Arc::new(api.get("a").await.unwrap());
    patch(&server, "a", json!({"data": {"k": "v"}})).await;
    reconciler.reconcile(&api, Arc::clone(&stale), false).await.unwrap();
    let now = api.get("a").await.unwrap();
    assert_eq!(finalizers(&now), ["other.example.com/x"]);
    assert_eq!(now.data.unwrap()["k"], "v");
    // Again with the stale cache: the finalizer is already removed, which is not an error.
    reconciler.reconcile(&api, Arc::clone(&stale), false).await.unwrap();
    patch(&server, "a", json!({"metadata": {"finalizers": null}})).await;
    assert!(api.get_opt("a").await.unwrap().is_none());
    reconciler.reconcile(&api, Arc::clone(&stale), false).await.unwrap();
    // An object that was created again under the same name is a different object.
    create(&server, json!({"metadata": {"name": "a", "finalizers": [OURS]}})).await;
    reconciler.reconcile(&api, stale, false).await.unwrap();
    assert_eq!(finalizers(&api.get("a").await.unwrap()), [OURS]);
}

#[tokio::test]
async fn the_server_decides_which_finalizer_names_are_valid_and_a_rejected_name_is_terminal() {
    let server = ApiServer::in_process();
    let object = create(&server, json!({"metadata": {"name": "a"}})).await;
    let long = "a".repeat(64);
    for name in ["cleanup", "", "/x", "x/", "not a valid name", "a/b/c", &long] {
        let result: Result<(), _> =
            finalize(&api(&server), name, Arc::clone(&object), |_| async { Ok::<_, Infallible>(()) }).await;
        let error = result.unwrap_err();
        assert!(matches!(error, FinalizeError::Name { .. }), "{name}: {error}");
        assert!(error.to_string().contains("example.com/cleanup"), "{error}");
        assert_eq!(ReconcileError::from(error).class(), ErrorClass::Terminal, "{name}");
    }
    // Another client has deleted the object since it was cached. The name is not at fault.
    patch(&server, "a", json!({"metadata": {"finalizers": ["other.example.com/x"]}})).await;
    api(&server).delete("a", &DeleteParams::default()).await.unwrap();
    let mut cached = api(&server).get("a").await.unwrap();
    cached.metadata.deletion_timestamp = None;
    let result: Result<(), _> =
        finalize(&api(&server), OURS, Arc::new(cached), |_| async { Ok::<_, Infallible>(()) }).await;
    let error = result.unwrap_err();
    assert!(matches!(error, FinalizeError::Add { .. }), "{error}");
    assert_eq!(ReconcileError::from(error).class(), ErrorClass::Retry);

    let unread = Arc::new(ConfigMap::default());
    let result: Result<(), _> =
        finalize(&api(&server), OURS, unread, |_| async { Ok::<_, Infallible>(()) }).await;
    let error = result.unwrap_err();
    assert!(matches!(error, FinalizeError::Identity { .. }), "{error}");
    assert_eq!(ReconcileError::from(error).class(), ErrorClass::Terminal);
}

/// A type that converts into a boxed error without being an error, as `anyhow::Error` does.
struct Opaque(Box<dyn Error + Send + Sync>);

impl From<Opaque> for Box<dyn Error + Send + Sync> {
    fn from(Opaque(error): Opaque) -> Self {
        error
    }
}

#[derive(Debug, thiserror::Error)]
enum OwnError {
    #[error(transparent)]
    Finalize(#[from] FinalizeError),
    #[error("own")]
    Sourced(#[source] FinalizeError),
    #[error(transparent)]
    Write(#[from] CreateOrUpdateError),
}

#[tokio::test]
async fn an_error_of_a_closure_keeps_its_class_for_every_type_and_wrapper() {
    let server = ApiServer::in_process();
    let object = create(&server, json!({"metadata": {"name": "a", "finalizers": [OURS]}})).await;
    let api = api(&server);
    let conflict = || {
        let status = kube_core::Status::failure("the object has been modified", "Conflict").with_code(409);
        watchkeeper_client::kube_client::Error::Api(Box::new(status))
    };
    let class = |error: FinalizeError| ReconcileError::from(error).class();
    let failing = |error: fn() -> ReconcileError| {
        finalize(&api, OURS, Arc::clone(&object), move |_| async move { Err::<(), _>(error()) })
    };
    let terminal = || ReconcileError::terminal("spec.size is negative");

    let error = failing(terminal).await.unwrap_err();
    assert_eq!(error.to_string(), "apply default/a: spec.size is negative");
    assert_eq!(class(error), ErrorClass::Terminal);
    assert_eq!(class(failing(|| ReconcileError::retry("later")).await.unwrap_err()), ErrorClass::Retry);
    assert_eq!(class(failing(|| ReconcileError::conflict("old")).await.unwrap_err()), ErrorClass::Conflict);
    for wrap in [OwnError::Finalize, OwnError::Sourced] {
        let own = wrap(failing(terminal).await.unwrap_err());
        assert_eq!(ReconcileError::from(own).class(), ErrorClass::Terminal, "wrapped");
    }

    let text = finalize(&api, OURS, Arc::clone(&object), |_| async { Err::<(), _>("no luck") }).await;
    assert_eq!(class(text.unwrap_err()), ErrorClass::Retry);
    let opaque =
        finalize(&api, OURS, Arc::clone(&object), |_| async { Err::<(), _>(Opaque(Box::new(conflict()))) });
    assert_eq!(class(opaque.await.unwrap_err()), ErrorClass::Conflict);

    let initial: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "b"}})).unwrap();
    let error = create_or_update(&api, initial, |_| Err(terminal())).await.unwrap_err();
    assert_eq!(ReconcileError::from(OwnError::from(error)).class(), ErrorClass::Terminal);
}

fn wanted(data: &Value) -> ConfigMap {
    serde_json::from_value(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}),
    )
    .unwrap()
}

#[tokio::test]
async fn an_apply_without_effect_is_not_sent() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let counted: Api<ConfigMap> = Api::default_namespaced(faults.client(&server).kube());
    let applier = Applier::new("shop");
    let first = wanted(&json!({"x": "1", "y": "2"}));
    let Applied::Changed(made) = applier.apply(&counted, &first, None).await.unwrap() else {
        panic!("it is new")
    };
    assert_eq!(applier.apply(&counted, &first, Some(&made)).await.unwrap(), Applied::Skipped);

    // Another client changed a field that is not ours, so nothing is applied.
    let touched =
        patch(&server, "a", json!({"metadata": {"labels": {"team": "shop"}}, "data": {"z": "3"}})).await;
    assert_eq!(applier.apply(&counted, &first, Some(&touched)).await.unwrap(), Applied::Skipped);
    assert_eq!(faults.requests().len(), 1);

    // Another client changed one of our fields.
    let drifted = patch(&server, "a", json!({"data": {"x": "changed"}})).await;
    let Applied::Changed(mended) = applier.apply(&counted, &first, Some(&drifted)).await.unwrap() else {
        panic!("mended")
    };
    let data = mended.data.clone().unwrap();
    assert_eq!(
        (data["x"].as_str(), data["z"].as_str()),
        ("1", "3"),
        "fields of other managers are unchanged"
    );

    // A field that is no longer wanted must be removed, although all wanted fields are present.
    let fewer = wanted(&json!({"x": "1"}));
    let Applied::Changed(fewer_made) = applier.apply(&counted, &fewer, Some(&mended)).await.unwrap() else {
        panic!("y must go")
    };
    assert!(!fewer_made.data.as_ref().unwrap().contains_key("y"));
    assert_eq!(faults.requests().len(), 3);

    // A new process does not know what was applied. It sends one request, which changes nothing.
    let other = Applier::new("shop");
    let result = other.apply(&counted, &fewer, Some(&fewer_made)).await.unwrap();
    assert!(matches!(result, Applied::Unchanged(_)), "{result:?}");
    assert_eq!(other.apply(&counted, &fewer, Some(&fewer_made)).await.unwrap(), Applied::Skipped);

    // Without memory, every call sends a request.
    let forgetful = Applier::new("shop").capacity(0);
    for _ in 0..2 {
        let result = forgetful.apply(&counted, &fewer, Some(&fewer_made)).await.unwrap();
        assert!(matches!(result, Applied::Unchanged(_)), "{result:?}");
    }

    // Deleted and created again by another client, it is a different object.
    api(&server).delete("a", &DeleteParams::default()).await.unwrap();
    let remade = create(&server, json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await;
    assert!(matches!(other.apply(&counted, &fewer, Some(&remade)).await.unwrap(), Applied::Changed(_)));
}

#[tokio::test]
async fn a_status_is_applied_separately_and_skipped_under_the_same_conditions() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let deployments: Api<Deployment> = Api::default_namespaced(faults.client(&server).kube());
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }}))
    .unwrap();
    let made = deployments.create(&PostParams::default(), &deployment).await.unwrap();
    let status: Deployment = serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": {"replicas": 3},
    }))
    .unwrap();
    let applier = Applier::new("shop");
    let applied = applier.apply_status(&deployments, &status, Some(&made)).await.unwrap();
    let Applied::Changed(now) = applied else { panic!("{applied:?}") };
    assert_eq!(now.status.as_ref().unwrap().replicas, Some(3));
    assert_eq!(now.spec, made.spec);
    let requests = faults.requests().len();
    assert_eq!(applier.apply_status(&deployments, &status, Some(&now)).await.unwrap(), Applied::Skipped);
    assert_eq!(faults.requests().len(), requests);
}

#[tokio::test]
async fn a_field_of_another_manager_is_taken_over_or_is_a_conflict() {
    let server = ApiServer::in_process();
    let api = api(&server);
    Applier::new("one").apply(&api, &wanted(&json!({"x": "1"})), None).await.unwrap();
    let polite = Applier::new("two").without_force();
    let error = polite.apply(&api, &wanted(&json!({"x": "2"})), None).await.unwrap_err();
    assert!(error.to_string().contains("conflict"), "{error}");
    Applier::new("two").apply(&api, &wanted(&json!({"x": "2"})), None).await.unwrap();
    assert_eq!(api.get("a").await.unwrap().data.unwrap()["x"], "2");
}

#[tokio::test]
async fn an_object_is_created_updated_or_unchanged() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let counted: Api<ConfigMap> = Api::default_namespaced(faults.client(&server).kube());
    let initial: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let set = |value: &'static str| {
        move |config: &mut ConfigMap| {
            config.data.get_or_insert_default().insert("k".to_owned(), value.to_owned());
            Ok::<_, Infallible>(())
        }
    };
    let mut done = Vec::new();
    for value in ["1", "1", "2"] {
        let (object, operation) = create_or_update(&counted, initial.clone(), set(value)).await.unwrap();
        assert_eq!(object.data.unwrap()["k"], value);
        done.push(operation);
    }
    assert_eq!(done, [Operation::Created, Operation::Unchanged, Operation::Updated]);
    let writes = faults.requests().iter().filter(|request| !request.starts_with("GET")).count();
    assert_eq!(writes, 2);

    let renamed = create_or_update(&counted, initial, |config: &mut ConfigMap| {
        config.metadata.name = Some("b".to_owned());
        Ok::<_, Infallible>(())
    })
    .await;
    assert!(matches!(renamed, Err(CreateOrUpdateError::Renamed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_write_is_a_conflict_and_is_not_lost() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    create(&server, json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await;
    let second = Duration::from_secs(1);
    faults
        .plan(move |method, _| if *method == Method::PUT { Fate::Slow(second, second) } else { Fate::Pass });
    let slow: Api<ConfigMap> = Api::default_namespaced(faults.client(&server).kube());
    let initial: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let updating = create_or_update(&slow, initial, |config: &mut ConfigMap| {
        config.data = None;
        Ok::<_, Infallible>(())
    });
    let interfering = async {
        tokio::time::sleep(second / 2).await;
        patch(&server, "a", json!({"data": {"z": "1"}})).await
    };
    let (updated, _) = tokio::join!(updating, interfering);
    let Err(CreateOrUpdateError::Server { source, .. }) = &updated else { panic!("{updated:?}") };
    assert!(source.is_conflict(), "{source}");
    assert_eq!(api(&server).get("a").await.unwrap().data.unwrap()["z"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried_five_times_and_other_errors_are_not() {
    let server = ApiServer::in_process();
    let api = api(&server);
    let stale = create(&server, json!({"metadata": {"name": "a"}})).await;
    patch(&server, "a", json!({"data": {"k": "v"}})).await;
    let tries = Mutex::new(0);
    let start = tokio::time::Instant::now();
    let error = retry_on_conflict(&Retry::conflicts().seeded(1), || async {
        *tries.lock().unwrap() += 1;
        api.replace("a", &PostParams::default(), &stale).await
    })
    .await
    .unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(*tries.lock().unwrap(), 5);
    assert!(start.elapsed() >= Duration::from_millis(40), "{:?}", start.elapsed());

    *tries.lock().unwrap() = 0;
    retry_on_conflict(&Retry::conflicts(), || async {
        let mut object = if *tries.lock().unwrap() == 0 { (*stale).clone() } else { api.get("a").await? };
        *tries.lock().unwrap() += 1;
        object.data = None;
        api.replace("a", &PostParams::default(), &object).await
    })
    .await
    .unwrap();
    assert_eq!(*tries.lock().unwrap(), 2);

    *tries.lock().unwrap() = 0;
    let error = retry_on_conflict(&Retry::conflicts(), || async {
        *tries.lock().unwrap() += 1;
        api.create(
            &PostParams::default(),
            &ConfigMap { metadata: stale.metadata.clone(), ..ConfigMap::default() },
        )
        .await
    })
    .await
    .unwrap_err();
    assert!(!error.is_conflict(), "that it exists is not a conflict: {error}");
    assert_eq!(*tries.lock().unwrap(), 1);
}

/// Creates, updates, applies and finalizes config maps of this name.
async fn write_all(resource: &impl ToResourceClient<ConfigMap>, name: &str) {
    let initial: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default"},
    }))
    .unwrap();
    let change = |value: &'static str| {
        move |map: &mut ConfigMap| {
            map.data.get_or_insert_default().insert("k".to_owned(), value.to_owned());
            Ok::<_, Infallible>(())
        }
    };
    let mut operations = Vec::new();
    for value in ["1", "2", "2"] {
        operations.push(create_or_update(resource, initial.clone(), change(value)).await.unwrap().1);
    }
    assert_eq!(operations, [Operation::Created, Operation::Updated, Operation::Unchanged], "{name}");

    let mut labelled = initial;
    labelled.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    let applied = Applier::new("shop").apply(resource, &labelled, None).await.unwrap();
    let Applied::Changed(applied) = applied else { panic!("{applied:?}") };
    let finalized = finalize(resource, OURS, Arc::new(applied), |event| async {
        let Event::Apply(object) = event else { panic!("{event:?}") };
        Ok::<_, Infallible>(finalizers(&object).len())
    });
    assert_eq!(finalized.await.unwrap(), 1, "{name}");
}

#[tokio::test]
async fn helpers_take_a_context_a_client_a_resource_client_or_an_api_of_kube() {
    let server = ApiServer::in_process();
    let client = Client::from(server.client());
    write_all(&Context::detached(&client), "context").await;
    write_all(&client, "client").await;
    write_all(&client.resource::<ConfigMap>().namespace("default"), "resource").await;
    write_all(&api(&server), "api").await;

    let nowhere: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let error = create_or_update(&client, nowhere, |_| Ok::<_, Infallible>(())).await.unwrap_err();
    assert!(error.to_string().contains("set metadata.namespace"), "{error}");
}
