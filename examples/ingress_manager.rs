//! A controller for a built-in kind: maintains an Ingress for each Service with the annotation `ingress/http: "true"`.
//!
//! `cargo run -p watchkeeper-examples --bin ingress_manager`
//!
//! On a cluster it runs until Ctrl-C, with the flags of a controller program (`--help`): probes on port 8081, metrics on
//! 127.0.0.1:8080. Without a cluster it creates a Service, deletes the Ingress, removes the annotation, and ends.

use std::{
    io::{self, Write},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::Service,
    networking::v1::{Ingress, ServiceBackendPort},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    controller::{objects::owner, rbac::Verb},
    kube_core::params::Preconditions,
    prelude::*,
};
use watchkeeper_examples::{Connection, Failure, Outcome};

const NAME: &str = "ingress-manager";
const ANNOTATION: &str = "ingress/http";
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Outcome {
    let (connection, mut manager) = Connection::with_manager(NAME).await?;
    let factory = manager.factory().clone();
    let controller = Controller::<Service>::on(&factory)
        .named(NAME)
        .owns::<Ingress>() // a change of an Ingress enqueues its Service
        .uses::<Ingress>(&[Verb::Create, Verb::Patch, Verb::Delete]);
    manager.add(controller.reconcile_with(reconcile))?;

    if connection.server().is_none() {
        writeln!(io::stdout(), "running until Ctrl-C")?;
        return Ok(manager.run().await?);
    }
    let stop = CancellationToken::new();
    let scenario = async {
        let done = run_scenario(connection.client()).await;
        stop.cancel();
        done
    };
    let (ended, done) = tokio::join!(manager.run_until(stop.clone()), scenario);
    done?;
    ended?;
    writeln!(io::stdout(), "next: leader_pair, for several replicas")?;
    Ok(())
}

/// Creates, updates or deletes the Ingress of a Service, according to the annotation.
async fn reconcile(request: Request<Service>, context: Context) -> Result<Action, ReconcileError> {
    // The Service was deleted. The cluster garbage collects the Ingress that it owned.
    let Some(service) = request.object else { return Ok(Action::done()) };
    let namespace = service.namespace().unwrap_or_default();
    let name = service.name_any();
    let ingresses = context.client().resource::<Ingress>().namespace(&namespace);
    let existing = context.lister::<Ingress>()?.namespace(&*namespace).get_opt(&name)?;

    let is_wanted = service.annotations().get(ANNOTATION).is_some_and(|value| value == "true");
    let log = |what: &str| writeln!(io::stdout(), "  {what} Ingress {namespace}/{name} ({})", request.causes);
    match existing {
        None if is_wanted => {
            log("creates")?;
            // Create, not apply: apply would take over an Ingress of another owner that the cache does not contain yet.
            ingresses.create(&PostParams::default(), &wanted(&service)?).await?;
        }
        None => {}
        Some(ingress) if !owner::is_controlled_by(&*ingress, &*service) => {
            // The error is retried with backoff, because the other Ingress may be deleted.
            let reason = format!("Ingress {namespace}/{name} exists and is not owned by this Service");
            return if is_wanted { Err(ReconcileError::new(reason)) } else { Ok(Action::done()) };
        }
        Some(ingress) if is_wanted => {
            let mut wanted = wanted(&service)?;
            if backend(&ingress) != backend(&wanted) {
                log("updates")?;
                // Apply changes only the fields of this controller. The uid rejects an Ingress that was recreated.
                wanted.metadata.uid.clone_from(&ingress.metadata.uid);
                ingresses.apply(&PatchParams::apply(NAME).force(), &wanted).await?;
            }
        }
        Some(ingress) => {
            log("deletes")?;
            let uid = ingress.metadata.uid.clone();
            let preconditions = Some(Preconditions { uid, resource_version: None });
            let this_one = DeleteParams { preconditions, ..DeleteParams::default() };
            match ingresses.delete(&name, &this_one).await {
                Err(error) if error.is_object_not_found() => {}
                deleted => drop(deleted?),
            }
        }
    }
    Ok(Action::done())
}

/// Returns the wanted Ingress of a Service: a rule for `/` with the first port as backend.
fn wanted(service: &Service) -> Result<Ingress, ReconcileError> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    let Some(port) = ports.and_then(|ports| ports.first()) else {
        return Err(ReconcileError::terminal("the Service has no port for the backend of an Ingress"));
    };
    let (name, namespace) = (service.name_any(), service.namespace());
    let mut ingress: Ingress = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"rules": [{"http": {"paths": [{
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": name, "port": {"number": port.port}}},
        }]}}]},
    }))?;
    ingress.metadata.owner_references = owner::controller_reference(service).map(|owner| vec![owner]);
    Ok(ingress)
}

/// Returns the name and port of the backend of an Ingress.
fn backend(ingress: &Ingress) -> Option<(&str, Option<&ServiceBackendPort>)> {
    let rule = ingress.spec.as_ref()?.rules.as_ref()?.first()?;
    let service = rule.http.as_ref()?.paths.first()?.backend.service.as_ref()?;
    Some((&service.name, service.port.as_ref()))
}

/// Changes a Service and its Ingress, and waits for the reaction of the controller.
async fn run_scenario(client: &Client) -> Outcome {
    let say = |what: &str| -> Result<(), Failure> { Ok(writeln!(io::stdout(), "{what}")?) };
    let services = client.resource::<Service>().namespace("shop");
    let ingresses = client.resource::<Ingress>().namespace("shop");

    say("create Service shop/web with the annotation")?;
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "web", "annotations": {ANNOTATION: "true"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }))?;
    services.create(&PostParams::default(), &service).await?;
    let first = ingresses.await_condition("web", wait::exists(), PATIENCE).await?;
    let first_uid = first.and_then(|ingress| ingress.metadata.uid);

    say("delete the Ingress")?;
    ingresses.delete("web", &DeleteParams::default()).await?;
    let is_new = |ingress: Option<&Ingress>| ingress.is_some_and(|it| it.metadata.uid != first_uid);
    ingresses.await_condition("web", wait::described("a new Ingress", is_new), PATIENCE).await?;

    say("remove the annotation")?;
    let remove = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: null}}}));
    services.patch("web", &PatchParams::default(), &remove).await?;
    ingresses.await_condition("web", wait::deleted(), PATIENCE).await?;
    Ok(())
}
