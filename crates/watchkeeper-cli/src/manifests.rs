//! `watchkeeper crd` and `watchkeeper rbac`: what to install for the sample controller.

use std::io::Write as _;

use watchkeeper::{
    apiserver::ApiServer,
    controller::{manager::Manager, rbac},
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
    /// The namespace of the service account.
    #[arg(long, short, default_value = "default")]
    namespace: String,
}

/// Prints the definition of the sample's resource.
///
/// # Errors
/// If the output cannot be written.
pub fn crd() -> Result<(), Failure> {
    print(&rbac::definition_yaml::<Foo>().map_err(|error| Failure::Other(error.to_string()))?)
}

/// Prints the roles the sample controller needs, from what it declares to do.
///
/// # Errors
/// If the output cannot be written.
pub fn roles(arguments: &RbacArguments) -> Result<(), Failure> {
    // What a controller declares is known when it is put together; it is never run here.
    let mut manager = Manager::builder(ApiServer::in_process().client()).build();
    let controller = sample::controller(manager.factory(), manager.recorder(sample::NAME));
    manager.add(controller.reconcile_with(sample::reconcile));
    let manifests = rbac::Manifests::new(&arguments.name, &arguments.namespace, &manager.access());
    print(&manifests.to_yaml().map_err(|error| Failure::Other(error.to_string()))?)
}

fn print(yaml: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    write!(out, "{yaml}")?;
    Ok(out.flush()?)
}
