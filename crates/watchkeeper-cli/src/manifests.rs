//! `watchkeeper crd` and `watchkeeper rbac`: what to install for the sample controller.

use std::io::Write as _;

use watchkeeper::{
    apiserver::ApiServer,
    controller::{access::Access, manager::Manager, rbac},
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
    /// The namespace the controller runs in: of the service account, and of the lease of leader election.
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Another namespace of the lease: the --leader-election-namespace that the controller is run with.
    #[arg(long, value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,
}

/// Prints the definition of the sample's resource.
///
/// # Errors
/// If the output cannot be written.
pub fn crd() -> Result<(), Failure> {
    print(&rbac::definition_yaml::<Foo>().map_err(|error| Failure::Other(error.to_string()))?)
}

/// Prints the service account and the roles of the sample controller: for what it declares to do, its events and its leader election.
///
/// # Errors
/// If the output cannot be written.
pub fn roles(arguments: &RbacArguments) -> Result<(), Failure> {
    // What a controller declares is known when it is put together; it is never run here.
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
