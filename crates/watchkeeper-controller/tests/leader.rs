//! Electors with separate clocks on one lease, whose requests are slow, lost, or executed without a response.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use watchkeeper_controller::{
    leader::{Action, Elector, LeaseRecord, Observed, Outcome, Timing},
    time::Moment,
};

const STEP: Duration = Duration::from_millis(250);

/// The lease on the server, with optimistic concurrency.
#[derive(Default)]
struct Server {
    lease: Option<Observed>,
    version: u64,
}

impl Server {
    fn apply(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Read => self.lease.clone().map_or(Outcome::Absent, Outcome::Read),
            Action::Create(_) if self.lease.is_some() => Outcome::Conflict,
            Action::Create(record) => self.write(record),
            Action::Update { record, over } => match &self.lease {
                None => Outcome::Absent,
                Some(lease) if lease.resource_version != *over => Outcome::Conflict,
                Some(_) => self.write(record),
            },
            Action::WaitUntil(_) | Action::Done => unreachable!("waits are not sent"),
        }
    }

    fn write(&mut self, record: &LeaseRecord) -> Outcome {
        self.version += 1;
        let version = self.version.to_string();
        let uid = self.lease.as_ref().map_or_else(|| version.clone(), |lease| lease.uid.clone());
        let written = Observed { record: record.clone(), uid, resource_version: version };
        self.lease = Some(written.clone());
        Outcome::Written(written)
    }
}

/// The fate of one request: steps until the server receives it, steps until the response arrives, and whether
/// either is lost.
#[derive(Debug, Clone)]
struct Fate {
    there: u8,
    back: u8,
    loss: Loss,
}

#[derive(Debug, Clone, PartialEq)]
enum Loss {
    None,
    Request,
    Answer,
}

struct Replica {
    elector: Elector,
    /// The clock of the replica: its offset and its speed.
    offset: Duration,
    rate: f64,
    request: Option<InFlight>,
}

struct InFlight {
    action: Action,
    arrives: usize,
    answers: usize,
    fate: Loss,
    outcome: Option<Outcome>,
}

impl Replica {
    fn clock(&self, step: usize) -> Moment {
        moment(self.offset + (STEP * u32::try_from(step).expect("few steps")).mul_f64(self.rate))
    }

    fn is_creating(&self) -> bool {
        self.request.as_ref().is_some_and(|request| matches!(request.action, Action::Create(_)))
    }
}

/// Returns a constant wall-clock time, on which no decision may depend.
fn moment(at: Duration) -> Moment {
    Moment { at, date: Timestamp::UNIX_EPOCH }
}

fn run(rates: &[f64], fates: &[Fate], steps: usize) -> Vec<Vec<usize>> {
    run_with_deletion(rates, fates, steps, None)
}

/// Runs the replicas and returns, for each step, who leads. The lease is deleted at a step, or at the first
/// step after it at which all replicas have observed the lease and none is about to create it.
fn run_with_deletion(
    rates: &[f64],
    fates: &[Fate],
    steps: usize,
    mut deletion: Option<usize>,
) -> Vec<Vec<usize>> {
    let mut server = Server::default();
    let mut fates = fates.iter().cycle();
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
                    if request.outcome.is_none() && step >= request.arrives {
                        let is_lost = request.fate == Loss::Request;
                        let outcome = if is_lost { Outcome::Failed } else { server.apply(&request.action) };
                        request.outcome =
                            Some(if request.fate == Loss::Answer { Outcome::Failed } else { outcome });
                    }
                    match request.outcome.take() {
                        Some(outcome) if step >= request.answers => {
                            action = replica.elector.outcome(now, outcome);
                        }
                        outcome => replica.request = Some(InFlight { outcome, ..request }),
                    }
                }
            }
            if let Some(action) =
                action.filter(|action| !matches!(action, Action::WaitUntil(_) | Action::Done))
            {
                let fate = fates.next().cloned().unwrap_or(Fate { there: 0, back: 0, loss: Loss::None });
                let arrives = step + usize::from(fate.there);
                let answers = arrives + usize::from(fate.back);
                replica.request = Some(InFlight { action, arrives, answers, fate: fate.loss, outcome: None });
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

fn fate() -> impl Strategy<Value = Fate> {
    let loss = prop_oneof![6 => Just(Loss::None), 1 => Just(Loss::Request), 1 => Just(Loss::Answer)];
    let delay = || prop_oneof![8 => 0_u8..3, 1 => 0_u8..80];
    (delay(), delay(), loss).prop_map(|(there, back, loss)| Fate { there, back, loss })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn two_replicas_with_skewed_clocks_never_lead_together(
        // Together at most the factor of 1.5 that 15 s and 10 s allow.
        rates in prop::collection::vec(1.0_f64..1.49, 2..4),
        fates in prop::collection::vec(fate(), 1..60),
    ) {
        for (step, leaders) in run(&rates, &fates, 400).into_iter().enumerate() {
            prop_assert!(leaders.len() <= 1, "step {step}: {leaders:?} lead together");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_lease_that_is_deleted_by_hand_does_not_make_two_leaders(
        rates in prop::collection::vec(1.0_f64..1.49, 2..4),
        fates in prop::collection::vec(fate(), 1..60),
        deletion in 0_usize..300,
    ) {
        for (step, leaders) in run_with_deletion(&rates, &fates, 400, Some(deletion)).into_iter().enumerate() {
            prop_assert!(leaders.len() <= 1, "step {step}: {leaders:?} lead together");
        }
    }
}

#[test]
fn clocks_further_apart_than_promised_do_break_it() {
    // The check above can fail: a holder whose clock runs at half speed continues when another replica may
    // start. All its requests but the first two are lost.
    let mut fates = vec![Fate { there: 0, back: 0, loss: Loss::None }; 6];
    fates.extend(vec![Fate { there: 0, back: 0, loss: Loss::Request }; 3]);
    let found = (0..40).any(|shift| {
        fates.rotate_left(usize::from(shift % 2 == 1));
        run(&[0.3, 3.0], &fates, 2_000).iter().any(|leaders| leaders.len() > 1)
    });
    assert!(found, "the simulation cannot tell two leaders from one");
}

#[test]
fn somebody_leads_soon_and_stays_leader_while_nothing_fails() {
    let leaders = run(&[1.0, 1.0, 1.0], &[Fate { there: 1, back: 1, loss: Loss::None }], 400);
    assert!(leaders[8].len() == 1, "within two seconds");
    assert!(leaders[8..].iter().all(|now| *now == leaders[8]), "and for good");
}

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u32) -> Moment {
    moment(SECOND * seconds)
}

/// Returns an elector that leads, and its server.
fn leading(identity: &str) -> (Elector, Server) {
    let (mut elector, mut server) = (Elector::new(identity, Timing::default(), 0), Server::default());
    assert_eq!(elector.next(at(1)), Action::Read);
    let create = elector.outcome(at(1), Outcome::Absent).expect("an absent lease is created");
    let written = server.apply(&create);
    elector.outcome(at(1), written);
    assert!(elector.is_leader(SECOND));
    (elector, server)
}

#[test]
fn a_holder_that_hears_nothing_steps_down_by_the_renew_deadline() {
    let timing = Timing::default();
    let mut elector = Elector::new("a", timing, 0);
    let mut server = Server::default();
    assert_eq!(elector.next(at(1)), Action::Read);
    let create = elector.outcome(at(1), Outcome::Absent).expect("an absent lease is created");
    let written = server.apply(&create);
    // The response arrives three seconds late: the deadline counts from sending the write.
    assert!(elector.outcome(at(4), written).is_none());
    assert!(elector.is_leader(SECOND * 4));
    assert_eq!(elector.leads_until(), Some(SECOND + timing.renew_deadline()));
    assert!(!elector.is_leader(SECOND + timing.renew_deadline()));
}

#[test]
fn a_released_lease_is_taken_at_the_next_look() {
    let (mut first, mut server) = leading("first");
    let mut second = Elector::new("second", Timing::default(), 0);
    let term = first.term();

    assert_eq!(second.next(at(1)), Action::Read);
    let read = server.apply(&Action::Read);
    second.outcome(at(1), read);
    assert_eq!(second.holder(), "first");

    first.release();
    assert!(!first.is_leader(SECOND * 2), "not a leader from the start of the release");
    let release = first.next(at(2));
    assert!(matches!(&release, Action::Update { record, .. } if record.is_free()));
    let released = server.apply(&release);
    first.outcome(at(2), released);
    assert_eq!(first.next(at(2)), Action::Done, "a replica that released does not compete again");

    assert_eq!(second.next(at(3)), Action::Read);
    let read = server.apply(&Action::Read);
    second.outcome(at(3), read);
    let take = second.next(at(3));
    let taken = server.apply(&take);
    second.outcome(at(3), taken);
    assert!(second.is_leader(SECOND * 3));
    assert!(second.term() > term, "a new leadership has a new number");
}

#[test]
fn a_release_looks_again_when_somebody_touched_the_lease_or_a_renewal_was_never_answered() {
    let (mut elector, mut server) = leading("a");
    // A label was set: the resourceVersion changes, the record does not.
    let touched = server.lease.clone().expect("there").record;
    server.write(&touched);
    elector.release();
    let release = elector.next(at(2));
    let conflict = server.apply(&release);
    assert_eq!(conflict, Outcome::Conflict);
    elector.outcome(at(2), conflict);
    assert_eq!(elector.next(at(2)), Action::Read);
    let read = server.apply(&Action::Read);
    elector.outcome(at(2), read);
    let release = elector.next(at(2));
    let released = server.apply(&release);
    elector.outcome(at(2), released);
    assert_eq!(elector.next(at(2)), Action::Done);
    assert!(server.lease.as_ref().is_some_and(|lease| lease.record.is_free()));

    let (mut elector, mut server) = leading("a");
    let renewal = elector.next(at(4));
    server.apply(&renewal);
    elector.release();
    assert_eq!(elector.next(at(4)), Action::Read, "the renewal may have happened");
    let read = server.apply(&Action::Read);
    elector.outcome(at(4), read);
    assert!(matches!(elector.next(at(4)), Action::Update { record, .. } if record.is_free()));
}

#[test]
fn a_lease_of_another_is_not_let_go() {
    let (mut elector, mut server) = leading("a");
    server.write(&LeaseRecord { holder: "b".into(), ..LeaseRecord::default() });
    elector.release();
    let release = elector.next(at(2));
    let conflict = server.apply(&release);
    elector.outcome(at(2), conflict);
    assert_eq!(elector.next(at(2)), Action::Read);
    let read = server.apply(&Action::Read);
    elector.outcome(at(2), read);
    assert_eq!(elector.next(at(2)), Action::Done);
    assert_eq!(server.lease.expect("there").record.holder, "b");
}

#[test]
fn a_server_that_always_says_conflict_is_asked_twice_a_period_and_not_in_a_circle() {
    let mut elector = Elector::new("a", Timing::default(), 0);
    let mut requests = 0;
    let mut now = Duration::ZERO;
    while now < SECOND * 20 {
        let mut action = Some(elector.next(moment(now)));
        while let Some(request) = action.take() {
            let outcome = match request {
                Action::WaitUntil(at) => {
                    now = at;
                    break;
                }
                Action::Read => Outcome::Absent,
                _ => Outcome::Conflict,
            };
            requests += 1;
            assert!(requests < 100, "in a circle");
            action = elector.outcome(moment(now), outcome);
        }
    }
    assert!(requests > 20, "it goes on trying");
}

#[test]
fn a_lease_that_only_changes_its_version_stands_still() {
    let (_, mut server) = leading("gone");
    let mut elector = Elector::new("b", Timing::default(), 0);
    let mut now = SECOND;
    // A label is set on the lease every second.
    while !elector.is_leader(now) {
        let record = server.lease.clone().expect("there").record;
        server.write(&record);
        loop {
            match elector.next(moment(now)) {
                Action::WaitUntil(_) => break,
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
fn a_try_to_take_over_that_fails_is_repeated_without_waiting_for_the_lease_to_stand_still_again() {
    let (_, mut server) = leading("gone");
    let mut elector = Elector::new("b", Timing::default(), 0);
    let mut first_try = None;
    let mut now = SECOND;
    while !elector.is_leader(now) {
        match elector.next(moment(now)) {
            Action::Update { .. } if first_try.is_none() => {
                first_try = Some(now);
                elector.outcome(moment(now), Outcome::Failed);
            }
            Action::WaitUntil(at) => now = at,
            request => {
                let outcome = server.apply(&request);
                elector.outcome(moment(now), outcome);
            }
        }
    }
    let waited = now.saturating_sub(first_try.expect("it tried"));
    assert!(waited <= Timing::default().retry_period(), "took {waited:?}");
}

#[test]
fn a_lease_that_was_deleted_and_made_again_is_another_though_it_says_the_same() {
    let (_, mut server) = leading("holder");
    let record = server.lease.clone().expect("there").record;
    let mut elector = Elector::new("b", Timing::default(), 0);
    let mut now = SECOND;
    let mut is_remade = false;
    while !elector.is_leader(now) {
        // The holder's wall clock is stopped and its last write was not answered, so the holder writes the
        // same record again.
        if !is_remade && now >= SECOND * 10 {
            (server.lease, is_remade) = (None, true);
            server.write(&record);
        }
        match elector.next(moment(now)) {
            Action::WaitUntil(at) => now = at,
            request => {
                let outcome = server.apply(&request);
                elector.outcome(moment(now), outcome);
            }
        }
    }
    assert!(
        now >= SECOND * 25,
        "taken {now:?} after the start, and 15 s after it was made again at the earliest"
    );
}

#[test]
fn one_that_has_stepped_down_waits_for_a_time_to_come_and_not_for_one_that_is_over() {
    let (mut elector, _) = leading("a");
    let mut now = SECOND;
    while now < SECOND * 60 {
        match elector.next(moment(now)) {
            Action::WaitUntil(at) => {
                assert!(at > now, "at {now:?} it waits until {at:?}");
                now = at;
            }
            _ => {
                elector.outcome(moment(now), Outcome::Failed);
            }
        }
    }
    assert_eq!(elector.leads_until(), None);
}

#[test]
fn those_who_wait_to_lead_try_again_within_the_last_quarter_of_the_period_and_the_leader_after_all_of_it() {
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
            let Action::WaitUntil(next) = elector.next(moment(now)) else { panic!("it waits") };
            let pause = next.saturating_sub(now);
            (earliest, latest, now) = (earliest.min(pause), latest.max(pause), next);
        }
    }
    assert!(earliest >= period.mul_f64(0.75) && latest <= period, "{earliest:?} to {latest:?}");
    assert!(earliest < period.mul_f64(0.8) && latest > period.mul_f64(0.95), "{earliest:?} to {latest:?}");

    let (mut leader, mut server) = leading("leader");
    let Action::WaitUntil(renewal) = leader.next(at(0)) else { panic!("it waits") };
    let request = leader.next(moment(renewal));
    let outcome = server.apply(&request);
    leader.outcome(moment(renewal), outcome);
    assert_eq!(leader.next(moment(renewal)), Action::WaitUntil(renewal + period));
}

#[test]
fn a_response_to_a_write_that_names_another_holder_ends_the_leadership() {
    let of_another = |version: &str| {
        let record = LeaseRecord { holder: "b".into(), ..LeaseRecord::default() };
        Outcome::Written(Observed { record, uid: "1".into(), resource_version: version.into() })
    };
    let mut elector = Elector::new("a", Timing::default(), 0);
    assert_eq!(elector.next(at(0)), Action::Read);
    let create = elector.outcome(at(0), Outcome::Absent);
    assert!(matches!(create, Some(Action::Create(_))), "{create:?}");
    elector.outcome(at(0), of_another("1"));
    assert!(!elector.is_leader(Duration::ZERO));
    assert_eq!((elector.holder(), elector.leads_until()), ("b", None));

    let (mut elector, _) = leading("a");
    let renewal = elector.next(at(4));
    assert!(matches!(renewal, Action::Update { .. }), "{renewal:?}");
    elector.outcome(at(4), of_another("2"));
    assert!(!elector.is_leader(SECOND * 4));
    assert_eq!((elector.holder(), elector.leads_until()), ("b", None));
}
