//! `watchkeeper demo`: the sample controller at work, told as it happens.
//!
//! Nothing is said that was not seen: each line is printed when an informer of the demonstration's own, beside the
//! controller's, has seen it. What does not come in time ends the demonstration with an error.

mod breaker;
mod eyes;
mod narrator;
mod stage;
mod story;
mod workloads;

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;
use watchkeeper::controller::manager::Manager;

use self::{
    breaker::Breaker,
    narrator::Narrator,
    stage::Stage,
    story::{Counted, Story},
};
use crate::{cluster::ClusterArguments, exit::Failure, sample, stop};

/// The arguments of `demo`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DemoArguments {
    /// Stays up at the end, for kubectl, until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// With --keep: writes the kubeconfig here, instead of into the folder for temporary files.
    #[arg(long, value_name = "FILE", requires = "keep")]
    kubeconfig_out: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Runs the demonstration: on an API server in this process, or on the cluster that the arguments name, which is left as
/// it was found.
///
/// # Errors
/// If the cluster cannot be asked, or something that was to happen did not.
pub async fn demo(arguments: &DemoArguments) -> Result<(), Failure> {
    let narrator = Narrator::new();
    let mut stage = Stage::connect(&arguments.cluster, &narrator).await?;
    let furnished = interruptible(stage.furnish(&narrator)).await;
    let played = match furnished {
        Ok(()) => Box::pin(play(&stage, arguments, &narrator)).await,
        Err(failure) => Err(failure),
    };
    // Also after a failure; and the first failure is the one to tell.
    let cleared = stage.clear().await;
    played.and(cleared)
}

/// Does something, unless the program is asked to stop.
async fn interruptible<T>(doing: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        done = doing => done,
        () = stop::requested() => Err(Failure::Interrupted),
    }
}

async fn play(stage: &Stage, arguments: &DemoArguments, narrator: &Narrator) -> Result<(), Failure> {
    // The controller's client goes through the breaker; everybody else's does not.
    let breaker = Breaker::new();
    let mut manager = Manager::builder(breaker.client(stage.client())).build();
    let factory = stage.factory(manager.client());
    let counted = Counted::default();
    let controller = sample::controller(&factory, manager.recorder(sample::NAME));
    let added = manager.add(controller.reconcile_with(counted.reconciler()));
    added.map_err(|error| Failure::Other(error.to_string()))?;
    // Here and not by the controller alone, because the story waits for these caches.
    factory.start();

    let stop = CancellationToken::new();
    let running = manager.run_until(stop.clone());
    let telling = async {
        let mut story = Story::begin(stage, &breaker, &factory, &counted, narrator).await?;
        interruptible(Box::pin(story.tell())).await?;
        if arguments.keep {
            story.keep(arguments.kubeconfig_out.as_deref()).await?;
        }
        story.end().await;
        Ok(())
    };
    tokio::pin!(running);
    let told = tokio::select! {
        told = telling => told,
        ended = &mut running => {
            let why = ended.err().map_or_else(|| "it was not asked to".to_owned(), |error| error.to_string());
            return Err(Failure::Other(format!("the controller ended: {why}")));
        }
    };
    stop.cancel();
    let ended = running.await.map_err(|error| Failure::Other(error.to_string()));
    factory.shutdown().await;
    told.and(ended)
}
