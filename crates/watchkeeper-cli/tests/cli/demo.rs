//! `demo`, other than what the README shows.

use watchkeeper::{
    client::config::Loader,
    k8s_openapi::{
        api::{apps::v1::Deployment, core::v1::Namespace},
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    prelude::*,
};
use watchkeeper_cli::sample::Foo;

use crate::support::{Listening, Running};

#[tokio::test]
async fn kept_it_goes_on_working_for_whoever_has_the_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut demo = Running::start(&["demo", "--keep", "--kubeconfig-out", kubeconfig.to_str().unwrap()]);
    demo.line_with("Still there, at http://127.0.0.1:").await;

    // Somebody else deletes a Foo, and its Deployment goes.
    let client = Loader::new().file(&kubeconfig).load().unwrap().into_client().unwrap();
    let factory = SharedInformerFactory::new(client.clone());
    let deployments = factory.informer::<Deployment>();
    let changes = watchkeeper_cli::seen::Changes::default();
    changes.count(&deployments).unwrap();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert!(deployments.reader().contains("default/green-web"));
    client.clientset().resource::<Foo>("default").delete("green", &DeleteParams::background()).await.unwrap();
    let is_gone = || (!deployments.reader().contains("default/green-web")).then_some(());
    changes.until(crate::support::PATIENCE, is_gone).await.expect("it is collected");
    factory.shutdown().await;
    assert_eq!(demo.interrupt().await, Some(0));
}

#[tokio::test]
async fn a_cluster_without_workload_controllers_is_left_as_it_was_found() {
    // On a server that only stores, nobody starts replicas: the demonstration is interrupted while it waits for them.
    let cluster = Listening::start().await;
    let kubeconfig = cluster.kubeconfig();
    let mut demo = Running::start(&["demo", "--kubeconfig", &kubeconfig]);
    let line = demo.line_with("make namespace").await;
    let namespace = line.split_whitespace().last().unwrap().to_owned();
    assert!(namespace.starts_with("watchkeeper-demo-"), "{line}");
    demo.line_with("Deployment red-web of Foo red").await;
    assert_eq!(demo.interrupt().await, Some(130));

    let clientset = cluster.client.clientset();
    let left: Option<Namespace> = clientset.core_v1().namespaces().get_opt(&namespace).await.unwrap();
    assert!(left.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()));
    let definitions = clientset.cluster_resource::<CustomResourceDefinition>();
    let left = definitions.get_opt("foos.samplecontroller.example.com").await.unwrap();
    assert!(left.is_none_or(|definition| definition.metadata.deletion_timestamp.is_some()));
}
