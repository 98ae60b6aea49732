//! Two replicas and one lease: one leads and the other stands by, until the first stops, and until the second crashes.
//!
//! `cargo run -p watchkeeper-examples --bin leader_pair`
//!
//! The lease is `leader-pair-lab` in the namespace `default`, and is deleted at the end. Both replicas are in this process;
//! started twice on one cluster, four of them share it.

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

    // The first has nobody to compete with.
    let (first, mut first_leads) = elector(client, "first")?;
    let stop_first = CancellationToken::new();
    let mut first = Box::pin(first.lead(stop_first.clone(), work));
    until(&mut first, first_leads.acquired()).await?;
    writeln!(out, "first leads, in term {}", first_leads.term().unwrap_or_default())?;

    // The second sees who leads, and waits.
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

    // Asked to stop, the first ends its work and only then lets the lease go; the second need not wait until it runs out.
    stop_first.cancel();
    let (stopped, led) = tokio::join!(first, until(&mut second, second_leads.acquired()));
    stopped?;
    led?;
    writeln!(
        out,
        "first has stopped and let go; second leads, in term {}",
        second_leads.term().unwrap_or_default()
    )?;

    // Crashed, the second lets nothing go: whoever comes next waits until the lease has run out.
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

/// What is done while leading: here nothing, until it is to end.
async fn work(term: watchkeeper::controller::leader::Term) {
    term.stop.cancelled().await;
}

/// A replica. Its lease is short, so that the lab is; the usual one lasts 15 s, is renewed within 10 s, tried every 2 s.
fn elector(client: &Client, name: &str) -> Result<(LeaderElector, Leadership), Failure> {
    let (lease, renew, retry) = (Duration::from_secs(3), Duration::from_secs(2), Duration::from_millis(300));
    let timing = Timing::new(lease, renew, retry)?;
    let election = LeaderElection::new("default", LEASE).identity(name).timing(timing);
    let elector = LeaderElector::new(client.clone(), election);
    let leadership = elector.leadership();
    Ok((elector, leadership))
}

/// Waits for something while a replica runs.
async fn until<T>(
    replica: &mut (impl Future<Output = Result<(), LeadError>> + Unpin),
    awaited: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::select! {
        seen = tokio::time::timeout(PATIENCE, awaited) => Ok(seen?),
        ended = replica => Err(format!("a replica ended before its time: {ended:?}").into()),
    }
}
