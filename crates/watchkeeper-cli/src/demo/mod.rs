//! `watchkeeper demo`: the sample controller in action.
//!
//! Each line is printed after an informer of the demonstration, independent of the controller's, has observed the event. The
//! demonstration fails with an error if an expected event does not happen in time.

mod environment;
mod narrator;
mod observer;
mod scenario;
mod workloads;

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;
use watchkeeper::{apiserver::faults::Faults, client::Client, controller::manager::Manager};

use self::{
    environment::Environment,
    narrator::Narrator,
    scenario::{Counted, Scenario},
};
use crate::{cluster::ClusterArguments, exit::Failure, sample, stop};

/// The arguments of `demo`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DemoArguments {
    /// Keeps running at the end, for kubectl, until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// With --keep: writes the kubeconfig to this file. Defaults to a file in the directory for temporary files.
    #[arg(long, value_name = "FILE", requires = "keep")]
    kubeconfig_out: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Runs the demonstration on an API server in this process, or on the cluster that the arguments select.
///
/// On a cluster, the demonstration uses a namespace of its own, and removes everything that it created.
///
/// # Errors
/// Returns a [`Failure`] if a request fails, or if an expected event does not happen in time.
pub async fn demo(arguments: &DemoArguments) -> Result<(), Failure> {
    let narrator = Narrator::new();
    let mut environment = Environment::connect(&arguments.cluster, &narrator).await?;
    let prepared = interruptible(environment.prepare(&narrator)).await;
    let done = match prepared {
        Ok(()) => Box::pin(run(&environment, arguments, &narrator)).await,
        Err(failure) => Err(failure),
    };
    // Also after a failure. The first failure is reported.
    let cleaned_up = environment.clean_up().await;
    done.and(cleaned_up)
}

/// Completes the work, unless a stop request arrives first.
async fn interruptible<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        () = stop::requested() => Err(Failure::Interrupted),
    }
}

async fn run(
    environment: &Environment,
    arguments: &DemoArguments,
    narrator: &Narrator,
) -> Result<(), Failure> {
    // Only the controller's client is affected, not the observer's.
    let faults = Faults::new();
    let mut manager = Manager::builder(with_faults(environment.client(), &faults)).build();
    let factory = environment.factory(manager.client());
    let counted = Counted::default();
    let controller = sample::controller(&factory, manager.recorder(sample::NAME));
    let added = manager.add(controller.reconcile_with(counted.reconciler()));
    added.map_err(|error| Failure::Other(error.to_string()))?;
    // Started here and not only by the controller, because the scenario waits for these caches.
    factory.start();

    let stop = CancellationToken::new();
    let running = manager.run_until(stop.clone());
    let steps = async {
        let scenario = Scenario::start(environment, &faults, &factory, &counted, narrator).await?;
        interruptible(Box::pin(scenario.run())).await?;
        if arguments.keep {
            scenario.keep(arguments.kubeconfig_out.as_deref()).await?;
        }
        scenario.shutdown().await;
        Ok(())
    };
    tokio::pin!(running);
    let done = tokio::select! {
        done = steps => done,
        ended = &mut running => {
            let reason = ended.err().map_or_else(|| "without a stop request".to_owned(), |error| error.to_string());
            return Err(Failure::Other(format!("the controller ended: {reason}")));
        }
    };
    stop.cancel();
    let ended = running.await.map_err(|error| Failure::Other(error.to_string()));
    factory.shutdown().await;
    done.and(ended)
}

/// Returns the same client with faults injected into its requests.
fn with_faults(client: &Client, faults: &Faults) -> Client {
    client.clone().with_transport(faults.client(client.transport()))
}
