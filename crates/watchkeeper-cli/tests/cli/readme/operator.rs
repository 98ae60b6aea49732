//! The operator of the README and its test. The README shows everything below the next line.

use std::error::Error;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::{from_value, json};
use watchkeeper::{
    controller::{manager::Manager, objects::owner, rbac::Verb},
    prelude::*,
};

const NAME: &str = "cluster-info";

/// Creates a `ConfigMap` with the name of the cluster in each namespace.
async fn reconcile(request: Request<Namespace>, context: Context) -> Result<Action, ReconcileError> {
    let Some(namespace) = request.object else { return Ok(Action::done()) }; // deleted
    let name = namespace.name_any();
    // The cache contains the earlier writes of this reconciler.
    let is_present = context.lister::<ConfigMap>()?.namespace(&*name).contains(NAME);
    if is_present || namespace.metadata.deletion_timestamp.is_some() {
        return Ok(Action::done());
    }
    let mut info: ConfigMap =
        from_value(json!({"metadata": {"name": NAME}, "data": {"cluster": "production"}}))?;
    info.metadata.owner_references = owner::controller_reference(&*namespace).map(|owner| vec![owner]);
    context.client().resource().namespace(&name).create(&PostParams::default(), &info).await?;
    Ok(Action::done())
}

fn operator(client: Client) -> Result<Manager, Box<dyn Error>> {
    let mut manager = Manager::builder(client).build();
    let controller = Controller::<Namespace>::on(manager.factory()).named(NAME);
    let controller = controller.owns::<ConfigMap>().uses::<ConfigMap>(&[Verb::Create]);
    manager.add(controller.reconcile_with(reconcile))?;
    Ok(manager)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Ok(operator(Client::try_default().await?)?.run().await?) // until SIGTERM or Ctrl-C
}

use std::time::Duration;

use watchkeeper::apiserver::{
    ApiServer,
    faults::{self, Fault, Requests},
};

#[tokio::test(start_paused = true)]
async fn failed_and_lost_responses_do_not_stop_the_operator() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::in_process();
    let client = Client::from(server.client());
    let creates = Requests::of::<ConfigMap>().verb(faults::Verb::Create).namespace("default");
    let unavailable = server.faults().inject(creates.clone(), Fault::unavailable().times(2)); // 503, 503
    let lost = server.faults().inject(creates, Fault::lose_response().times(1)); // created, but not confirmed

    let maps = client.resource::<ConfigMap>().namespace("default");
    let scenario = async {
        maps.await_condition(NAME, wait::exists(), Duration::from_mins(1)).await?;
        maps.delete(NAME, &DeleteParams::default()).await?; // the operator creates it again
        maps.await_condition(NAME, wait::exists(), Duration::from_mins(1)).await
    };
    tokio::select! {
        ended = operator(client.clone())?.run() => panic!("the operator ended: {ended:?}"),
        created = scenario => assert!(created?.is_some()),
    }
    assert_eq!((unavailable.count(), lost.count()), (2, 1)); // the faults did happen
    Ok(())
}
