//! A thousand clients of one server, after an outage.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use watchkeeper_client::{
    error::{ApiReason, TransportKind},
    list_watch::PageEnd,
};

use super::*;

const CLIENTS: u64 = 1000;
/// The times at which every connection is lost, and at which the server is back.
const LOST: Duration = Duration::from_mins(5);
const OUTAGE: Duration = Duration::from_mins(1);
const BACK: Duration = Duration::from_mins(6);

fn failed(reason: Reason) -> FailureReport {
    FailureReport::new(Failure::new(reason), "no")
}

fn list_end() -> PageEnd {
    let mut end = PageEnd::default();
    end.resource_version = Some("10".to_owned());
    end
}

/// A client of the simulated server.
struct Client {
    machine: Machine<()>,
    is_back: bool,
}

impl Client {
    fn new(seed: u64) -> Self {
        let mut options = ReflectorOptions::default();
        options.streaming.is_enabled = false;
        let mut machine = Machine::new(options, Rng::with_seed(seed));
        machine.step(Duration::ZERO, Input::Started);
        machine.step(Duration::ZERO, Input::PageEnd(list_end()));
        machine.step(Duration::ZERO, Input::Opened);
        Self { machine, is_back: false }
    }

    /// Takes `input` and does what follows from it until the client waits or its watch is open again. Returns until when
    /// it waits, and counts its requests.
    fn advance(
        &mut self,
        now: Duration,
        mut input: Input<()>,
        requests: &mut Vec<Duration>,
    ) -> Option<Duration> {
        let mut has_relisted = false;
        loop {
            let action = self.machine.step(now, input).action;
            if !matches!(action, DriverAction::Wait { .. } | DriverAction::Read { .. }) {
                requests.push(now);
            }
            let is_down = now < BACK;
            let refused = || failed(Reason::Transport(TransportKind::Refused));
            input = match action {
                DriverAction::Wait { until } => return Some(until),
                DriverAction::Read { .. } => {
                    self.is_back = true;
                    return None;
                }
                DriverAction::Check(_) if is_down => Input::Checked(Err(refused())),
                DriverAction::List(_) | DriverAction::Watch(_) if is_down => Input::Failed(refused()),
                DriverAction::Check(_) => {
                    let resource_version = Some("10".to_owned());
                    Input::Checked(Ok(CheckResponse { resource_version, ..CheckResponse::default() }))
                }
                // A server that was just started can replay nothing from before.
                DriverAction::Watch(_) if !has_relisted => {
                    Input::Failed(failed(Reason::Api(ApiReason::Expired)))
                }
                DriverAction::Watch(_) => Input::Opened,
                DriverAction::List(_) => {
                    has_relisted = true;
                    Input::PageEnd(list_end())
                }
            };
        }
    }
}

#[test]
fn a_thousand_clients_come_back_soon_and_spread_out_after_an_outage_of_a_minute() {
    let mut clients: Vec<Client> = (0..CLIENTS).map(Client::new).collect();
    let mut requests = Vec::new();
    let mut due = BinaryHeap::new();
    let lost = || Input::Failed(failed(Reason::Transport(TransportKind::Reset)));
    for (n, client) in clients.iter_mut().enumerate() {
        due.extend(client.advance(LOST, lost(), &mut requests).map(|at| Reverse((at, n))));
    }
    let mut back_at = Vec::new();
    while let Some(Reverse((now, n))) = due.pop() {
        match clients[n].advance(now, Input::Timer, &mut requests) {
            Some(at) => due.push(Reverse((at, n))),
            None => back_at.push(now.saturating_sub(BACK)),
        }
    }
    assert!(clients.iter().all(|client| client.is_back));

    // Soon: within a sixteenth of the outage.
    let last = back_at.iter().max().copied().unwrap_or_default();
    assert!(last <= OUTAGE / 16, "the last is back after {last:?}");
    // Spread out: no quarter of a second sees more than twice the average of the time in which they come back.
    let mut by_quarter: BTreeMap<u128, u64> = BTreeMap::new();
    for at in &back_at {
        *by_quarter.entry(at.as_millis() / 250).or_default() += 1;
    }
    let quarters = last.as_millis() / 250 + 1;
    let average = u128::from(CLIENTS) / quarters;
    let peak = by_quarter.values().max().copied().unwrap_or_default();
    assert!(
        u128::from(peak) <= 2 * average,
        "a peak of {peak} in a quarter of a second, {average} on average"
    );
    // And while the server was away, each client tried about once a second, and less and less often.
    let during = requests.iter().filter(|at| **at > LOST && **at < BACK).count() as u64;
    assert!(during <= 60 * CLIENTS, "{during} attempts");
    let last_ten_seconds =
        requests.iter().filter(|at| **at >= BACK.saturating_sub(Duration::from_secs(10)) && **at < BACK);
    assert!(last_ten_seconds.count() as u64 <= 5 * CLIENTS);
}
