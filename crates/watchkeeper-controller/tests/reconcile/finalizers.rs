//! A reconciler with a finalizer, in a controller.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use watchkeeper_client::kube_client::Client;
use watchkeeper_client::rest::ResourceClient;
use watchkeeper_controller::{
    Action, Context, Controller, ReconcileError, Request,
    objects::finalizer::{Event, finalize},
};

use crate::support::*;

fn foos(client: &Client) -> ResourceClient<Foo> {
    watchkeeper_client::Client::from(client.clone()).resource().namespace("default")
}

/// Returns a controller of foos with a finalizer of this name, and the names of the events that its
/// reconciler received.
async fn start(
    client: &Client,
    finalizer: &'static str,
    log: &Log,
) -> (Running, Arc<Mutex<Vec<&'static str>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let (recorder, requests) = (Arc::clone(&events), log.clone());
    let reconcile = move |request: Request<Foo>, context: Context| {
        requests.note(&request);
        let recorder = Arc::clone(&recorder);
        async move {
            let Some(foo) = request.object else { return Ok(Action::done()) };
            let done = finalize(&context, finalizer, foo, |event| async move {
                recorder.lock().push(match event {
                    Event::Apply(_) => "apply",
                    Event::Cleanup(_) => "cleanup",
                });
                Ok::<_, ReconcileError>(Action::done())
            });
            Ok::<_, ReconcileError>(done.await?)
        }
    };
    let running = started(Controller::<Foo>::new(client.clone()).reconcile_with(reconcile)).await;
    (running, events)
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_without_a_domain_works_for_a_custom_resource() {
    let (server, log) = (server(), Log::new());
    let client = server.client();
    install_foos(&client).await;
    let api = foos(&client);
    create(&api, &foo("a")).await;
    let (running, events) = start(&client, "documents", &log).await;
    assert_eq!(api.get("a").await.unwrap().metadata.finalizers.unwrap(), ["documents"]);
    delete(&api, "a").await;
    settle().await;
    assert!(api.get_opt("a").await.unwrap().is_none(), "removed after the cleanup");
    running.stop().await;
    assert_eq!(events.lock().first(), Some(&"apply"));
    assert_eq!(events.lock().last(), Some(&"cleanup"));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_name_that_the_server_rejects_is_not_retried() {
    let (server, log) = (server(), Log::new());
    let client = server.client();
    install_foos(&client).await;
    create(&foos(&client), &foo("a")).await;
    let (running, events) = start(&client, "not a valid name", &log).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    running.stop().await;
    assert_eq!(log.take_keys(), ["default/a"]);
    assert_eq!(*events.lock(), [""; 0]);
}
