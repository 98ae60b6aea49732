//! Leader election: one of two replicas leads, and another takes over when the leader stops or crashes.
//!
//! `cargo run -p watchkeeper-examples --bin leader_pair`
//!
//! The lease is `leader-pair-lab` in the namespace `default`, and is deleted at the end. All replicas run in this
//! process. If two of these programs run on one cluster, their replicas compete for the same lease.

use std::{
    io::{self, Write},
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    controller::leader::{LeadError, LeaderElection, LeaderElector, Leadership, Timing},
    prelude::*,
};
use watchkeeper_examples::{Connection, Failure, Outcome};

const LEASE: &str = "leader-pair-lab";
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let client = connection.client();
    let mut out = io::stdout();

    // The first replica has no competitor.
    let (first, mut first_leads) = elector(client, "first")?;
    let stop_first = CancellationToken::new();
    let mut first = Box::pin(first.lead(stop_first.clone(), work));
    until(&mut first, first_leads.acquired()).await?;
    writeln!(out, "first leads, in term {}", first_leads.term().unwrap_or_default())?;

    // The second replica observes the holder of the lease, and waits.
    let (second, mut second_leads) = elector(client, "second")?;
    let mut second = Box::pin(second.lead(CancellationToken::new(), work));
    let holder = async {
        tokio::select! {
            holder = second_leads.holder_other_than("") => Ok(holder),
            ended = &mut second => Err(format!("second ended: {ended:?}")),
        }
    };
    let holder = until(&mut first, holder).await??.unwrap_or_default();
    writeln!(out, "second stands by: {holder} leads")?;

    // The first replica stops its work and then releases the lease, so the second need not wait until it expires.
    stop_first.cancel();
    let (stopped, led) = tokio::join!(first, until(&mut second, second_leads.acquired()));
    stopped?;
    led?;
    writeln!(
        out,
        "first has stopped and released the lease; second leads, in term {}",
        second_leads.term().unwrap_or_default()
    )?;

    // A crashed replica does not release the lease. The next one waits until the lease expires.
    drop(second);
    writeln!(out, "second has crashed, still holding the lease")?;
    let (third, mut third_leads) = elector(client, "first, started again")?;
    let mut third = Box::pin(third.lead(CancellationToken::new(), work));
    until(&mut third, third_leads.acquired()).await?;
    writeln!(out, "{} leads, in term {}", third_leads.identity(), third_leads.term().unwrap_or_default())?;
    drop(third);

    client.resource::<Lease>().namespace("default").delete(LEASE, &DeleteParams::default()).await?;
    writeln!(out, "that was the last lab; `cargo run` is next")?;
    Ok(())
}

/// The work of the leader: waits until the term ends.
async fn work(term: watchkeeper::controller::leader::Term) {
    term.stop.cancelled().await;
}

/// Returns a replica with a short lease, so that the lab is short. The defaults are 15 s, renewed within 10 s, retried every 2 s.
fn elector(client: &Client, name: &str) -> Result<(LeaderElector, Leadership), Failure> {
    let (lease, renew, retry) = (Duration::from_secs(3), Duration::from_secs(2), Duration::from_millis(300));
    let timing = Timing::new(lease, renew, retry)?;
    let election = LeaderElection::new("default", LEASE).identity(name).timing(timing);
    let elector = LeaderElector::new(client.clone(), election);
    let leadership = elector.leadership();
    Ok((elector, leadership))
}

/// Waits for a future while a replica runs.
async fn until<T>(
    replica: &mut (impl Future<Output = Result<(), LeadError>> + Unpin),
    awaited: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::select! {
        seen = tokio::time::timeout(PATIENCE, awaited) => Ok(seen?),
        ended = replica => Err(format!("a replica ended unexpectedly: {ended:?}").into()),
    }
}
