//! Electors with separate clocks on one lease, whose requests are delayed, lost, or executed without a response.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

const STEP: Duration = Duration::from_millis(250);

/// The lease on the server, with optimistic concurrency.
#[derive(Default)]
struct Server {
    lease: Option<ObservedLease>,
    version: u64,
}

impl Server {
    fn apply(&mut self, action: &ElectorAction) -> RequestOutcome {
        match action {
            ElectorAction::Read => self.lease.clone().map_or(RequestOutcome::Absent, RequestOutcome::Read),
            ElectorAction::Create(_) if self.lease.is_some() => RequestOutcome::Conflict,
            ElectorAction::Create(record) => self.write(record),
            ElectorAction::Update { record, over } => match &self.lease {
                None => RequestOutcome::Absent,
                Some(lease) if lease.resource_version != *over => RequestOutcome::Conflict,
                Some(_) => self.write(record),
            },
            ElectorAction::WaitUntil(_) | ElectorAction::Done => unreachable!("waits are not sent"),
        }
    }

    fn write(&mut self, record: &LeaseRecord) -> RequestOutcome {
        self.version += 1;
        let version = self.version.to_string();
        let uid = self.lease.as_ref().map_or_else(|| version.clone(), |lease| lease.uid.clone());
        let written = ObservedLease { record: record.clone(), uid, resource_version: version };
        self.lease = Some(written.clone());
        RequestOutcome::Written(written)
    }
}

/// The transmission of one request: steps until the server receives it, steps until the response arrives, and whether
/// either is lost.
#[derive(Debug, Clone)]
struct Transmission {
    request_steps: u8,
    response_steps: u8,
    loss: Loss,
}

#[derive(Debug, Clone, PartialEq)]
enum Loss {
    None,
    Request,
    Response,
}

struct Replica {
    elector: Elector,
    /// The clock of the replica: its offset and its speed.
    offset: Duration,
    rate: f64,
    request: Option<InFlight>,
}

struct InFlight {
    action: ElectorAction,
    /// The step at which the server receives the request.
    received_at: usize,
    /// The step at which the response arrives.
    response_at: usize,
    loss: Loss,
    outcome: Option<RequestOutcome>,
}

impl Replica {
    fn clock(&self, step: usize) -> Moment {
        moment(self.offset + (STEP * u32::try_from(step).expect("few steps")).mul_f64(self.rate))
    }

    fn is_creating(&self) -> bool {
        self.request.as_ref().is_some_and(|request| matches!(request.action, ElectorAction::Create(_)))
    }
}

/// Returns a constant wall-clock time, on which no decision may depend.
fn moment(at: Duration) -> Moment {
    Moment { at, date: Timestamp::UNIX_EPOCH }
}

fn run(rates: &[f64], transmissions: &[Transmission], steps: usize) -> Vec<Vec<usize>> {
    run_with_deletion(rates, transmissions, steps, None)
}

/// Runs the replicas and returns, for each step, who leads. The lease is deleted at a step, or at the first
/// step after it at which all replicas have observed the lease and none is about to create it.
fn run_with_deletion(
    rates: &[f64],
    transmissions: &[Transmission],
    steps: usize,
    mut deletion: Option<usize>,
) -> Vec<Vec<usize>> {
    let mut server = Server::default();
    let mut transmissions = transmissions.iter().cycle();
    let mut replicas: Vec<Replica> = rates
        .iter()
        .enumerate()
        .map(|(number, rate)| Replica {
            elector: Elector::new(format!("replica-{number}"), Timing::default(), number as u64),
            offset: Duration::from_secs(1_000_000 * number as u64),
            rate: *rate,
            request: None,
        })
        .collect();
    let mut leaders = Vec::with_capacity(steps);
    for step in 0..steps {
        let may_delete =
            replicas.iter().all(|replica| !replica.elector.holder().is_empty() && !replica.is_creating());
        if deletion.is_some_and(|at| at <= step) && may_delete {
            (server.lease, deletion) = (None, None);
        }
        for replica in &mut replicas {
            let now = replica.clock(step);
            let mut action = None;
            match replica.request.take() {
                None => action = Some(replica.elector.next(now)),
                Some(mut request) => {
                    if request.outcome.is_none() && step >= request.received_at {
                        let is_lost = request.loss == Loss::Request;
                        let outcome =
                            if is_lost { RequestOutcome::Failed } else { server.apply(&request.action) };
                        request.outcome = Some(if request.loss == Loss::Response {
                            RequestOutcome::Failed
                        } else {
                            outcome
                        });
                    }
                    match request.outcome.take() {
                        Some(outcome) if step >= request.response_at => {
                            action = replica.elector.outcome(now, outcome);
                        }
                        outcome => replica.request = Some(InFlight { outcome, ..request }),
                    }
                }
            }
            if let Some(action) =
                action.filter(|action| !matches!(action, ElectorAction::WaitUntil(_) | ElectorAction::Done))
            {
                let transmission = transmissions.next().cloned().unwrap_or(Transmission {
                    request_steps: 0,
                    response_steps: 0,
                    loss: Loss::None,
                });
                let received_at = step + usize::from(transmission.request_steps);
                let response_at = received_at + usize::from(transmission.response_steps);
                replica.request = Some(InFlight {
                    action,
                    received_at,
                    response_at,
                    loss: transmission.loss,
                    outcome: None,
                });
            }
        }
        let leading = replicas
            .iter()
            .enumerate()
            .filter(|(_, replica)| replica.elector.is_leader(replica.clock(step).at));
        leaders.push(leading.map(|(number, _)| number).collect());
    }
    leaders
}

fn transmission() -> impl Strategy<Value = Transmission> {
    let loss = prop_oneof![6 => Just(Loss::None), 1 => Just(Loss::Request), 1 => Just(Loss::Response)];
    let delay = || prop_oneof![8 => 0_u8..3, 1 => 0_u8..80];
    (delay(), delay(), loss).prop_map(|(request_steps, response_steps, loss)| Transmission {
        request_steps,
        response_steps,
        loss,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn two_replicas_with_skewed_clocks_never_lead_together(
        // Rates differ at most by the factor of 1.5 that 15 s and 10 s allow.
        rates in prop::collection::vec(1.0_f64..1.49, 2..4),
        transmissions in prop::collection::vec(transmission(), 1..60),
    ) {
        for (step, leaders) in run(&rates, &transmissions, 400).into_iter().enumerate() {
            prop_assert!(leaders.len() <= 1, "step {step}: {leaders:?} lead together");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_lease_that_is_deleted_by_hand_does_not_make_two_leaders(
        rates in prop::collection::vec(1.0_f64..1.49, 2..4),
        transmissions in prop::collection::vec(transmission(), 1..60),
        deletion in 0_usize..300,
    ) {
        for (step, leaders) in run_with_deletion(&rates, &transmissions, 400, Some(deletion)).into_iter().enumerate() {
            prop_assert!(leaders.len() <= 1, "step {step}: {leaders:?} lead together");
        }
    }
}

#[test]
fn clocks_that_differ_more_than_allowed_can_make_two_leaders() {
    // The check above can fail: a holder whose clock runs at half speed continues when another replica may
    // start. All its requests but the first two are lost.
    let mut transmissions = vec![Transmission { request_steps: 0, response_steps: 0, loss: Loss::None }; 6];
    transmissions.extend(vec![Transmission { request_steps: 0, response_steps: 0, loss: Loss::Request }; 3]);
    let found = (0..40).any(|shift| {
        transmissions.rotate_left(usize::from(shift % 2 == 1));
        run(&[0.3, 3.0], &transmissions, 2_000).iter().any(|leaders| leaders.len() > 1)
    });
    assert!(found, "the simulation cannot tell two leaders from one");
}

#[test]
fn a_leader_is_elected_within_two_seconds_and_stays_while_nothing_fails() {
    let leaders =
        run(&[1.0, 1.0, 1.0], &[Transmission { request_steps: 1, response_steps: 1, loss: Loss::None }], 400);
    assert!(leaders[8].len() == 1, "within two seconds");
    assert!(leaders[8..].iter().all(|now| *now == leaders[8]), "the leader stays");
}

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u32) -> Moment {
    moment(SECOND * seconds)
}

/// Returns an elector that leads, and its server.
fn leading(identity: &str) -> (Elector, Server) {
    let (mut elector, mut server) = (Elector::new(identity, Timing::default(), 0), Server::default());
    assert_eq!(elector.next(at(1)), ElectorAction::Read);
    let create = elector.outcome(at(1), RequestOutcome::Absent).expect("an absent lease is created");
    let written = server.apply(&create);
    elector.outcome(at(1), written);
    assert!(elector.is_leader(SECOND));
    (elector, server)
}

#[test]
fn a_holder_without_responses_steps_down_at_the_renew_deadline() {
    let timing = Timing::default();
    let mut elector = Elector::new("a", timing, 0);
    let mut server = Server::default();
    assert_eq!(elector.next(at(1)), ElectorAction::Read);
    let create = elector.outcome(at(1), RequestOutcome::Absent).expect("an absent lease is created");
    let written = server.apply(&create);
    // The response arrives three seconds late: the deadline counts from sending the write.
    assert!(elector.outcome(at(4), written).is_none());
    assert!(elector.is_leader(SECOND * 4));
    assert_eq!(elector.leads_until(), Some(SECOND + timing.renew_deadline()));
    assert!(!elector.is_leader(SECOND + timing.renew_deadline()));
}

#[test]
fn a_released_lease_is_acquired_at_the_next_attempt() {
    let (mut first, mut server) = leading("first");
    let mut second = Elector::new("second", Timing::default(), 0);
    let term = first.term();

    assert_eq!(second.next(at(1)), ElectorAction::Read);
    let read = server.apply(&ElectorAction::Read);
    second.outcome(at(1), read);
    assert_eq!(second.holder(), "first");

    first.release();
    assert!(!first.is_leader(SECOND * 2), "not a leader from the start of the release");
    let release = first.next(at(2));
    assert!(matches!(&release, ElectorAction::Update { record, .. } if record.is_free()));
    let released = server.apply(&release);
    first.outcome(at(2), released);
    assert_eq!(first.next(at(2)), ElectorAction::Done, "a replica that released does not compete again");

    assert_eq!(second.next(at(3)), ElectorAction::Read);
    let read = server.apply(&ElectorAction::Read);
    second.outcome(at(3), read);
    let take = second.next(at(3));
    let taken = server.apply(&take);
    second.outcome(at(3), taken);
    assert!(second.is_leader(SECOND * 3));
    assert!(second.term() > term, "the term increases");
}

#[test]
fn a_release_reads_the_lease_again_after_a_conflict_or_a_renewal_without_response() {
    let (mut elector, mut server) = leading("a");
    // A label was set: the resourceVersion changes, the record does not.
    let unchanged = server.lease.clone().expect("the lease exists").record;
    server.write(&unchanged);
    elector.release();
    let release = elector.next(at(2));
    let conflict = server.apply(&release);
    assert_eq!(conflict, RequestOutcome::Conflict);
    elector.outcome(at(2), conflict);
    assert_eq!(elector.next(at(2)), ElectorAction::Read);
    let read = server.apply(&ElectorAction::Read);
    elector.outcome(at(2), read);
    let release = elector.next(at(2));
    let released = server.apply(&release);
    elector.outcome(at(2), released);
    assert_eq!(elector.next(at(2)), ElectorAction::Done);
    assert!(server.lease.as_ref().is_some_and(|lease| lease.record.is_free()));

    let (mut elector, mut server) = leading("a");
    let renewal = elector.next(at(4));
    server.apply(&renewal);
    elector.release();
    assert_eq!(elector.next(at(4)), ElectorAction::Read, "the renewal may have happened");
    let read = server.apply(&ElectorAction::Read);
    elector.outcome(at(4), read);
    assert!(matches!(elector.next(at(4)), ElectorAction::Update { record, .. } if record.is_free()));
}

#[test]
fn a_lease_of_another_holder_is_not_released() {
    let (mut elector, mut server) = leading("a");
    server.write(&LeaseRecord { holder: "b".into(), ..LeaseRecord::default() });
    elector.release();
    let release = elector.next(at(2));
    let conflict = server.apply(&release);
    elector.outcome(at(2), conflict);
    assert_eq!(elector.next(at(2)), ElectorAction::Read);
    let read = server.apply(&ElectorAction::Read);
    elector.outcome(at(2), read);
    assert_eq!(elector.next(at(2)), ElectorAction::Done);
    assert_eq!(server.lease.expect("the lease exists").record.holder, "b");
}

#[test]
fn persistent_conflicts_cause_no_hot_loop() {
    let mut elector = Elector::new("a", Timing::default(), 0);
    let mut requests = 0;
    let mut now = Duration::ZERO;
    while now < SECOND * 20 {
        let mut action = Some(elector.next(moment(now)));
        while let Some(request) = action.take() {
            let outcome = match request {
                ElectorAction::WaitUntil(at) => {
                    now = at;
                    break;
                }
                ElectorAction::Read => RequestOutcome::Absent,
                _ => RequestOutcome::Conflict,
            };
            requests += 1;
            assert!(requests < 100, "hot loop");
            action = elector.outcome(moment(now), outcome);
        }
    }
    assert!(requests > 20, "attempts continue");
}

#[test]
fn a_change_of_the_resource_version_only_is_not_a_renewal() {
    let (_, mut server) = leading("gone");
    let mut elector = Elector::new("b", Timing::default(), 0);
    let mut now = SECOND;
    // A label is set on the lease every second.
    while !elector.is_leader(now) {
        let record = server.lease.clone().expect("the lease exists").record;
        server.write(&record);
        loop {
            match elector.next(moment(now)) {
                ElectorAction::WaitUntil(_) => break,
                request => {
                    let outcome = server.apply(&request);
                    elector.outcome(moment(now), outcome);
                }
            }
        }
        now += SECOND;
        assert!(now < SECOND * 20, "acquired after the lease was not renewed, modified or not");
    }
}

#[test]
fn a_failed_takeover_is_retried_without_waiting_for_the_lease_to_expire_again() {
    let (_, mut server) = leading("gone");
    let mut elector = Elector::new("b", Timing::default(), 0);
    let mut first_attempt = None;
    let mut now = SECOND;
    while !elector.is_leader(now) {
        match elector.next(moment(now)) {
            ElectorAction::Update { .. } if first_attempt.is_none() => {
                first_attempt = Some(now);
                elector.outcome(moment(now), RequestOutcome::Failed);
            }
            ElectorAction::WaitUntil(at) => now = at,
            request => {
                let outcome = server.apply(&request);
                elector.outcome(moment(now), outcome);
            }
        }
    }
    let waited = now.saturating_sub(first_attempt.expect("at least one attempt"));
    assert!(waited <= Timing::default().retry_period(), "took {waited:?}");
}

#[test]
fn a_recreated_lease_with_the_same_content_is_another_lease() {
    let (_, mut server) = leading("holder");
    let record = server.lease.clone().expect("the lease exists").record;
    let mut elector = Elector::new("b", Timing::default(), 0);
    let mut now = SECOND;
    let mut is_recreated = false;
    while !elector.is_leader(now) {
        // The holder's wall clock is stopped and the response to its last write was lost, so the holder
        // writes the same record again.
        if !is_recreated && now >= SECOND * 10 {
            (server.lease, is_recreated) = (None, true);
            server.write(&record);
        }
        match elector.next(moment(now)) {
            ElectorAction::WaitUntil(at) => now = at,
            request => {
                let outcome = server.apply(&request);
                elector.outcome(moment(now), outcome);
            }
        }
    }
    assert!(
        now >= SECOND * 25,
        "acquired at {now:?}, but not earlier than 15 s after the lease was created again"
    );
}

#[test]
fn an_elector_that_stepped_down_waits_for_a_time_in_the_future() {
    let (mut elector, _) = leading("a");
    let mut now = SECOND;
    while now < SECOND * 60 {
        match elector.next(moment(now)) {
            ElectorAction::WaitUntil(at) => {
                assert!(at > now, "a wait until {at:?} at {now:?}");
                now = at;
            }
            _ => {
                elector.outcome(moment(now), RequestOutcome::Failed);
            }
        }
    }
    assert_eq!(elector.leads_until(), None);
}

#[test]
fn the_leader_renews_after_the_retry_period_and_standby_replicas_read_within_its_last_quarter() {
    let period = Timing::default().retry_period();
    let (mut earliest, mut latest) = (Duration::MAX, Duration::ZERO);
    for seed in 0..200 {
        let (_, mut server) = leading("holder");
        let mut elector = Elector::new("waiting", Timing::default(), seed);
        let mut now = SECOND;
        for _ in 0..5 {
            let request = elector.next(moment(now));
            let outcome = server.apply(&request);
            assert!(elector.outcome(moment(now), outcome).is_none());
            let ElectorAction::WaitUntil(next) = elector.next(moment(now)) else { panic!("no wait") };
            let delay = next.saturating_sub(now);
            (earliest, latest, now) = (earliest.min(delay), latest.max(delay), next);
        }
    }
    assert!(earliest >= period.mul_f64(0.75) && latest <= period, "{earliest:?} to {latest:?}");
    assert!(earliest < period.mul_f64(0.8) && latest > period.mul_f64(0.95), "{earliest:?} to {latest:?}");

    let (mut leader, mut server) = leading("leader");
    let ElectorAction::WaitUntil(renewal) = leader.next(at(0)) else { panic!("no wait") };
    let request = leader.next(moment(renewal));
    let outcome = server.apply(&request);
    leader.outcome(moment(renewal), outcome);
    assert_eq!(leader.next(moment(renewal)), ElectorAction::WaitUntil(renewal + period));
}

#[test]
fn a_response_to_a_write_that_names_another_holder_ends_the_leadership() {
    let of_another = |version: &str| {
        let record = LeaseRecord { holder: "b".into(), ..LeaseRecord::default() };
        RequestOutcome::Written(ObservedLease { record, uid: "1".into(), resource_version: version.into() })
    };
    let mut elector = Elector::new("a", Timing::default(), 0);
    assert_eq!(elector.next(at(0)), ElectorAction::Read);
    let create = elector.outcome(at(0), RequestOutcome::Absent);
    assert!(matches!(create, Some(ElectorAction::Create(_))), "{create:?}");
    elector.outcome(at(0), of_another("1"));
    assert!(!elector.is_leader(Duration::ZERO));
    assert_eq!((elector.holder(), elector.leads_until()), ("b", None));

    let (mut elector, _) = leading("a");
    let renewal = elector.next(at(4));
    assert!(matches!(renewal, ElectorAction::Update { .. }), "{renewal:?}");
    elector.outcome(at(4), of_another("2"));
    assert!(!elector.is_leader(SECOND * 4));
    assert_eq!((elector.holder(), elector.leads_until()), ("b", None));
}
