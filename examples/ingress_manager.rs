//! A controller of a built-in kind: a Service annotated `ingress/http: "true"` gets an Ingress, which goes when the
//! annotation goes, and comes back when somebody deletes it.
//!
//! `cargo run -p watchkeeper-examples --bin ingress_manager`
//!
//! On a cluster it runs until Ctrl-C, with the flags of a controller program (`--help`): probes on port 8081, metrics on
//! 127.0.0.1:8080. Without a cluster it makes a Service, does all of that to it, and ends.

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
        .owns::<Ingress>() // has the Service looked at when its Ingress changes
        .uses::<Ingress>(&[Verb::Create, Verb::Patch, Verb::Delete]);
    manager.add(controller.reconcile_with(reconcile))?;

    if connection.server().is_none() {
        writeln!(io::stdout(), "running until Ctrl-C")?;
        return Ok(manager.run().await?);
    }
    let stop = CancellationToken::new();
    let story = async {
        let told = tell(connection.client()).await;
        stop.cancel();
        told
    };
    let (ended, told) = tokio::join!(manager.run_until(stop.clone()), story);
    told?;
    ended?;
    writeln!(io::stdout(), "next: leader_pair, for two of these at once")?;
    Ok(())
}

/// Compares what the Service wants with what there is, and makes up the difference.
async fn reconcile(request: Request<Service>, context: Context) -> Result<Action, ReconcileError> {
    // A Service that is gone takes its Ingress with it: the Ingress is owned.
    let Some(service) = request.object else { return Ok(Action::done()) };
    let namespace = service.namespace().unwrap_or_default();
    let name = service.name_any();
    let ingresses = context.client().resource::<Ingress>().namespace(&namespace);
    let existing = context.lister::<Ingress>()?.namespace(&*namespace).get(&name).ok();

    let is_wanted = service.annotations().get(ANNOTATION).is_some_and(|value| value == "true");
    let say = |what: &str| writeln!(io::stdout(), "  {what} Ingress {namespace}/{name} ({})", request.causes);
    match existing {
        None if is_wanted => {
            say("makes")?;
            // Not by applying: one that somebody else has just made, and the cache does not have yet, would be taken over.
            ingresses.create(&PostParams::default(), &wanted(&service)?).await?;
        }
        None => {}
        Some(ingress) if !owner::is_controlled_by(&*ingress, &*service) => {
            // Somebody else's. If one is wanted, it is looked for again after a while, in case this one has gone.
            let why = format!("Ingress {namespace}/{name} exists and is not this Service's");
            return if is_wanted { Err(ReconcileError::new(why)) } else { Ok(Action::done()) };
        }
        Some(ingress) if is_wanted => {
            let mut wanted = wanted(&service)?;
            if backend(&ingress) != backend(&wanted) {
                say("mends")?;
                // Applying mends the fields that are ours and leaves those of others alone; of this very Ingress, and not
                // of one that was made under its name meanwhile.
                wanted.metadata.uid.clone_from(&ingress.metadata.uid);
                ingresses.apply(&PatchParams::apply(NAME).force(), &wanted).await?;
            }
        }
        Some(ingress) => {
            say("deletes")?;
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

/// The Ingress of a Service: everything under `/` goes to its first port.
fn wanted(service: &Service) -> Result<Ingress, ReconcileError> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    let Some(port) = ports.and_then(|ports| ports.first()) else {
        return Err(ReconcileError::terminal("the Service has no port that an Ingress could lead to"));
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

/// Where an Ingress leads.
fn backend(ingress: &Ingress) -> Option<(&str, Option<&ServiceBackendPort>)> {
    let rule = ingress.spec.as_ref()?.rules.as_ref()?.first()?;
    let service = rule.http.as_ref()?.paths.first()?.backend.service.as_ref()?;
    Some((&service.name, service.port.as_ref()))
}

/// What people do to a Service and its Ingress, and what comes of it.
async fn tell(client: &Client) -> Outcome {
    let say = |what: &str| -> Result<(), Failure> { Ok(writeln!(io::stdout(), "{what}")?) };
    let services = client.resource::<Service>().namespace("shop");
    let ingresses = client.resource::<Ingress>().namespace("shop");

    say("a Service shop/web is created, with the annotation")?;
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "web", "annotations": {ANNOTATION: "true"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }))?;
    services.create(&PostParams::default(), &service).await?;
    let first = ingresses.await_condition("web", wait::exists(), PATIENCE).await?;
    let first_uid = first.and_then(|ingress| ingress.metadata.uid);

    say("somebody deletes the Ingress")?;
    ingresses.delete("web", &DeleteParams::default()).await?;
    let is_new = |ingress: Option<&Ingress>| ingress.is_some_and(|it| it.metadata.uid != first_uid);
    ingresses.await_condition("web", wait::described("a new Ingress", is_new), PATIENCE).await?;

    say("the annotation is removed")?;
    let remove = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: null}}}));
    services.patch("web", &PatchParams::default(), &remove).await?;
    ingresses.await_condition("web", wait::deleted(), PATIENCE).await?;
    Ok(())
}
