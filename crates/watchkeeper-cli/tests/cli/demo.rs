//! `demo`, apart from the transcript in the README.

use serde_json::json;
use watchkeeper::{
    client::config::Loader,
    k8s_openapi::{
        api::{apps::v1::Deployment, core::v1::Namespace},
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    prelude::*,
};
use watchkeeper_cli::{changes::Changes, sample::Foo};

use crate::support::{Listening, PATIENCE, Running};

#[tokio::test]
async fn with_keep_the_controller_continues_for_clients_with_the_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut demo = Running::start(&["demo", "--keep", "--kubeconfig-out", kubeconfig.to_str().unwrap()]);
    demo.line_with("Running at http://127.0.0.1:").await;

    // Another client deletes a Foo, and its Deployment is deleted.
    let client = Loader::new().file(&kubeconfig).load().unwrap().into_client().unwrap();
    let deployments = client.resource::<Deployment>().namespace("default");
    assert!(deployments.get_opt("green-web").await.unwrap().is_some());
    client.resource::<Foo>().namespace("default").delete("green", &DeleteParams::background()).await.unwrap();
    deployments.await_condition("green-web", wait::deleted(), PATIENCE).await.unwrap();
    assert_eq!(demo.interrupt().await, Some(0));
}

#[tokio::test]
async fn on_a_cluster_all_steps_run_and_every_object_is_removed() {
    let cluster = Listening::start().await;
    let ended = tokio::select! {
        ended = cluster.run(&["demo"]) => ended,
        () = start_replicas(&cluster) => unreachable!("the simulation does not end"),
    };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains(&format!("API server at {}/", cluster.url)), "{}", ended.out);
    assert!(ended.out.contains("Deployment red-web garbage collected"), "{}", ended.out);

    let factory = SharedInformerFactory::new(cluster.client.clone());
    let (namespaces, definitions) =
        (factory.informer::<Namespace>(), factory.informer::<CustomResourceDefinition>());
    let changes = Changes::default();
    changes.count(&namespaces).unwrap();
    changes.count(&definitions).unwrap();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let is_clean = || {
        let is_demo = |key: &ObjectKey| key.name().starts_with("watchkeeper-demo-");
        (definitions.reader().is_empty() && !namespaces.reader().keys().iter().any(is_demo)).then_some(())
    };
    changes.until(PATIENCE, is_clean).await.expect("the namespace and the definition are deleted");
    factory.shutdown().await;
}

/// Simulates the Deployment controller of a cluster, as far as the tests need it. Never returns.
async fn start_replicas(cluster: &Listening) {
    let factory = SharedInformerFactory::new(cluster.client.clone());
    let deployments = factory.informer::<Deployment>();
    let (sender, mut changed) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |event: &Event<Deployment>| sender.send(event.object().clone()).unwrap_or_default();
    deployments.add_handler(handler).unwrap();
    factory.start();
    while let Some(deployment) = changed.recv().await {
        let deployment = deployment.get().unwrap();
        let replicas = deployment.spec.replicas;
        if deployment.status.as_ref().and_then(|status| status.available_replicas) == replicas {
            continue;
        }
        let client = cluster.client.resource::<Deployment>().namespace_of(&*deployment);
        let status = json!({"status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}});
        // A deleted Deployment has no replicas to start.
        let _ =
            client.patch_status(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(status)).await;
    }
}

#[tokio::test]
async fn a_cluster_without_workload_controllers_is_left_as_it_was_found() {
    // On a server without workload controllers no replicas start: the demonstration is interrupted while it
    // waits for them.
    let cluster = Listening::start().await;
    let kubeconfig = cluster.kubeconfig();
    let mut demo = Running::start(&["demo", "--kubeconfig", &kubeconfig]);
    let line = demo.line_with("create Namespace").await;
    let namespace = line.split_whitespace().last().unwrap().to_owned();
    assert!(namespace.starts_with("watchkeeper-demo-"), "{line}");
    demo.line_with("Deployment red-web has spec.replicas 1").await;
    assert_eq!(demo.interrupt().await, Some(130));

    let left = cluster.client.resource::<Namespace>().get_opt(&namespace).await.unwrap();
    assert!(left.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()));
    let definitions = cluster.client.resource::<CustomResourceDefinition>();
    let left = definitions.get_opt("foos.samplecontroller.example.com").await.unwrap();
    assert!(left.is_none_or(|definition| definition.metadata.deletion_timestamp.is_some()));
}
