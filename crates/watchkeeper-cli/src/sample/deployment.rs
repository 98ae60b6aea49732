//! The desired Deployment of a Foo.

use std::collections::BTreeMap;

use watchkeeper::{
    controller::objects::owner,
    k8s_openapi::{
        api::{
            apps::v1::{Deployment, DeploymentSpec},
            core::v1::{Container, PodSpec, PodTemplateSpec},
        },
        apimachinery::pkg::apis::meta::v1::LabelSelector,
    },
    kube_core::ObjectMeta,
    prelude::*,
};

use super::Foo;

/// Returns the desired Deployment of a Foo. The Foo owns it, so it is garbage collected with the Foo.
pub fn wanted(foo: &Foo) -> Deployment {
    let labels =
        BTreeMap::from([("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), foo.name_any())]);
    let containers = vec![Container {
        name: "nginx".to_owned(),
        image: Some("nginx:latest".to_owned()),
        ..Container::default()
    }];
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.namespace(),
            owner_references: owner::controller_reference(foo).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: Some(foo.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers, ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

/// Returns the number of available replicas.
pub fn available(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// Returns the number of desired replicas.
pub fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::FooSpec;

    fn foo(uid: &str) -> Foo {
        let mut foo = Foo::new("red", FooSpec { deployment_name: "red-web".to_owned(), replicas: 3 });
        foo.metadata.namespace = Some("shop".to_owned());
        foo.metadata.uid = Some(uid.to_owned());
        foo
    }

    #[test]
    fn the_deployment_is_owned_by_its_foo_and_not_by_a_foo_of_the_same_name() {
        let deployment = wanted(&foo("1"));
        assert_eq!((deployment.name_any().as_str(), replicas(&deployment)), ("red-web", 3));
        assert!(owner::is_controlled_by(&deployment, &foo("1")));
        assert!(!owner::is_controlled_by(&deployment, &foo("2")));
    }
}
