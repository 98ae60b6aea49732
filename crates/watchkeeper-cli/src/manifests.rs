//! `watchkeeper crd` and `watchkeeper rbac`: manifests of the sample controller.

use std::io::Write as _;

use watchkeeper::{
    apiserver::ApiServer,
    controller::{
        manager::Manager,
        rbac::{self, Access},
    },
};

use crate::{
    exit::Failure,
    sample::{self, Foo},
};

/// The arguments of `rbac`.
#[derive(Debug, Clone, clap::Args)]
pub struct RbacArguments {
    /// The name of the service account, the roles and their bindings.
    #[arg(long, default_value = sample::NAME)]
    name: String,
    /// The namespace the controller runs in, for the service account and the lease of leader election.
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// The namespace of the lease, if the controller runs with another --leader-election-namespace.
    #[arg(long, value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,
}

/// Prints the custom resource definition of the sample.
///
/// # Errors
/// Returns a [`Failure`] if the output cannot be written.
pub fn crd() -> Result<(), Failure> {
    print(&rbac::definition_yaml::<Foo>().map_err(|error| Failure::Other(error.to_string()))?)
}

/// Prints the service account and the roles of the sample controller: for its declared access, its events and
/// its leader election.
///
/// # Errors
/// Returns a [`Failure`] if the output cannot be written.
pub fn roles(arguments: &RbacArguments) -> Result<(), Failure> {
    // The declared access of a controller is known once it is built; the controller is never run here.
    let mut manager = Manager::builder(ApiServer::in_process().client()).build();
    let controller = sample::controller(manager.factory(), manager.recorder(sample::NAME));
    let added = manager.add(controller.reconcile_with(sample::reconcile));
    added.map_err(|error| Failure::Other(error.to_string()))?;
    let mut access = manager.access();
    let lease_namespace = arguments.leader_election_namespace.as_ref().unwrap_or(&arguments.namespace);
    access.push(Access::leader_election(lease_namespace));
    let manifests = rbac::Manifests::new(&arguments.name, &arguments.namespace, &access);
    print(&manifests.to_yaml().map_err(|error| Failure::Other(error.to_string()))?)
}

fn print(yaml: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    write!(out, "{yaml}")?;
    Ok(out.flush()?)
}
