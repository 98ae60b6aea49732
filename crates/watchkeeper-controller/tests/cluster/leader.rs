//! Electors against an embedded server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube_core::params::{DeleteParams, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::Client;
use watchkeeper_client::kube_client::Api;
use watchkeeper_controller::{
    leader::{LeadError, LeaderElection, LeaderElector, LeaderMetrics, Leadership, NotLeading, Term},
    time::Time,
};
use watchkeeper_workqueue::{Clock, Sleep, TokioClock};

use crate::faults::{Fate, Faults};

const SECOND: Duration = Duration::from_secs(1);

fn time() -> Time {
    Time::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

fn elector(client: impl Into<Client>, identity: &str) -> LeaderElector {
    let election = LeaderElection::new("default", "lock.example.com").identity(identity);
    LeaderElector::with(client, election, time(), &LeaderMetrics::default())
}

fn leases(server: &ApiServer) -> Api<Lease> {
    Api::namespaced(server.client(), "default")
}

/// A replica that competes for the lease in a task.
struct Replica {
    leadership: Leadership,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), LeadError>>,
    work: Arc<AtomicUsize>,
}

impl Replica {
    fn start(client: impl Into<Client>, identity: &str) -> Self {
        Self::working(client, identity, |term: Term| async move { term.stop.cancelled().await })
    }

    fn working<F>(
        client: impl Into<Client>,
        identity: &str,
        work: impl FnOnce(Term) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let elector = elector(client, identity);
        let (leadership, stop) = (elector.leadership(), CancellationToken::new());
        let (mut tasks, running) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
        let (token, counted) = (stop.clone(), Arc::clone(&running));
        tasks.spawn(async move {
            let work = |term| async move {
                let _counted = Counted::new(&counted);
                work(term).await;
            };
            elector.lead(token, work).await
        });
        Self { leadership, stop, tasks, work: running }
    }

    fn is_leader(&self) -> bool {
        self.leadership.is_leader()
    }

    fn is_working(&self) -> bool {
        self.work.load(Ordering::SeqCst) > 0
    }

    async fn leads(&mut self) {
        assert!(self.leadership.acquired().await, "the elector ended");
    }

    /// Aborts the replica, as if its process were killed.
    async fn crash(mut self) {
        self.tasks.shutdown().await;
    }

    async fn end(&mut self) -> Result<(), LeadError> {
        self.stop.cancel();
        self.ended().await
    }

    async fn ended(&mut self) -> Result<(), LeadError> {
        self.tasks.join_next().await.expect("started").expect("no panic")
    }
}

struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_replica_leads_and_the_lease_has_the_fields_that_kubernetes_expects() {
    let server = ApiServer::in_process();
    let mut first = Replica::start(server.client(), "first");
    first.leads().await;
    let lease = leases(&server).get("lock.example.com").await.unwrap();
    let spec = lease.spec.clone().unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("first"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert!(spec.acquire_time.is_some() && spec.acquire_time == spec.renew_time);

    let version = lease.metadata.resource_version;
    tokio::time::sleep(SECOND * 60).await;
    let renewed = leases(&server).get("lock.example.com").await.unwrap();
    let renewed_spec = renewed.spec.unwrap();
    assert_ne!(renewed.metadata.resource_version, version);
    assert_eq!(renewed_spec.acquire_time, spec.acquire_time, "the term is the same");
    assert!(renewed_spec.renew_time.unwrap().0 > spec.renew_time.unwrap().0);
    assert!(first.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_request_or_two_after_another_write_of_the_lease() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let mut first = Replica::start(faults.client(&server), "first");
    first.leads().await;
    tokio::time::sleep(SECOND).await;
    let before = faults.requests().len();
    tokio::time::sleep(SECOND * 10).await;
    let renewals = &faults.requests()[before..];
    assert_eq!(renewals.len(), 5);
    assert!(renewals.iter().all(|request| request.starts_with("PUT ")), "{renewals:?}");

    // Fields that others set survive.
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "shop"}}}));
    leases(&server).patch("lock.example.com", &PatchParams::default(), &label).await.unwrap();
    let before = faults.requests().len();
    tokio::time::sleep(SECOND * 2).await;
    let kinds: Vec<String> = faults.requests()[before..]
        .iter()
        .map(|request| request.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["PUT", "GET", "PUT"]);
    let lease = leases(&server).get("lock.example.com").await.unwrap();
    assert_eq!(lease.metadata.labels.unwrap()["team"], "shop");
    assert!(first.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_replaced_when_its_lease_expires() {
    let server = ApiServer::in_process();
    let mut first = Replica::start(server.client(), "first");
    first.leads().await;
    let mut second = Replica::start(server.client(), "second");
    tokio::time::sleep(SECOND * 60).await;
    assert!(!second.is_leader());
    assert_eq!(second.leadership.holder(), "first");
    let term = first.leadership.term().unwrap();
    let crash = Instant::now();
    first.crash().await;
    second.leads().await;
    let took = crash.elapsed();
    assert!(took >= SECOND * 13, "the last renewal was two seconds old at most: {took:?}");
    assert!(took <= SECOND * 17, "lease duration and retry period: {took:?}");
    assert!(second.leadership.term().unwrap() > term);
}

#[tokio::test(start_paused = true)]
async fn a_clean_shutdown_hands_over_within_the_retry_period_after_the_work_has_ended() {
    let server = ApiServer::in_process();
    let slow = |term: Term| async move {
        term.stop.cancelled().await;
        tokio::time::sleep(SECOND * 40).await;
    };
    let mut first = Replica::working(server.client(), "first", slow);
    first.leads().await;
    let second = Replica::start(server.client(), "second");
    tokio::time::sleep(SECOND * 5).await;
    let stop_requested = Instant::now();
    first.stop.cancel();
    // Far longer than the lease duration: the lease is renewed while the work shuts down.
    while !second.is_leader() {
        assert!(!(second.is_working() && first.is_working()), "two replicas work at the same time");
        tokio::time::sleep(SECOND / 10).await;
    }
    let took = stop_requested.elapsed();
    assert!(took >= SECOND * 40 && took <= SECOND * 42 + SECOND / 2, "{took:?}");
    assert_eq!(first.ended().await, Ok(()));
    assert_eq!(second.leadership.holder(), "second");
}

#[tokio::test(start_paused = true)]
async fn every_replica_observes_the_holder_and_its_changes() {
    let server = ApiServer::in_process();
    let mut first = Replica::start(server.client(), "first");
    let mut second = Replica::start(server.client(), "second");
    assert_eq!(second.leadership.holder_other_than("").await.as_deref(), Some("first"));
    first.end().await.unwrap();
    assert_eq!(second.leadership.holder_other_than("first").await.as_deref(), Some("second"));
    second.end().await.unwrap();
    assert_eq!(
        first.leadership.holder_other_than("").await,
        None,
        "an elector that has ended observes no changes"
    );
}

#[tokio::test(start_paused = true)]
async fn without_release_the_lease_expires() {
    let server = ApiServer::in_process();
    let election = LeaderElection::new("default", "lock.example.com")
        .identity("first")
        .label("app.kubernetes.io/name", "shop")
        .release(false);
    let elector = LeaderElector::with(server.client(), election, time(), &LeaderMetrics::default());
    let (mut leadership, stop) = (elector.leadership(), CancellationToken::new());
    let lead = elector.lead(stop.clone(), |term: Term| async move { term.stop.cancelled().await });
    let (result, ()) = tokio::join!(lead, async {
        leadership.acquired().await;
        stop.cancel();
    });
    assert_eq!(result, Ok(()));
    let lease = leases(&server).get("lock.example.com").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("first"));
    assert_eq!(lease.metadata.labels.unwrap()["app.kubernetes.io/name"], "shop");
    assert!(!leadership.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_at_the_renew_deadline() {
    for fate in [Fate::Lost, Fate::Hangs, Fate::AnswerHangs, Fate::Slow(SECOND * 30, SECOND)] {
        let (server, faults) = (ApiServer::in_process(), Faults::none());
        let mut first = Replica::start(faults.client(&server), "first");
        first.leads().await;
        tokio::time::sleep(SECOND).await;
        let (fails, broken) = (fate.clone(), Instant::now());
        // One more renewal may be about to succeed; if responses are lost, its outcome is unknown.
        faults.plan(move |_, _| fails.clone());
        first.leadership.lost().await;
        tokio::time::sleep(SECOND / 1000).await;
        let took = broken.elapsed();
        assert!(took <= SECOND * 10, "{fate:?}: {took:?}");
        assert!(!first.is_leader() && !first.is_working(), "{fate:?}");
        let error = first.ended().await.unwrap_err();
        assert!(matches!(&error, LeadError::Lost { identity, .. } if identity == "first"), "{error}");
        assert!(broken.elapsed() <= SECOND * 15, "{fate:?}: the release is abandoned eventually");
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_that_hangs_does_not_lose_the_lease() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let mut first = Replica::start(faults.client(&server), "first");
    first.leads().await;
    let mut left = 1;
    faults.plan(move |_, _| {
        left -= 1;
        if left == 0 { Fate::Hangs } else { Fate::Pass }
    });
    tokio::time::sleep(SECOND * 60).await;
    assert!(first.is_leader());
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_after_a_lost_lease_is_dropped_before_another_replica_starts() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let stubborn = |_: Term| std::future::pending::<()>();
    let mut first = Replica::working(faults.client(&server), "first", stubborn);
    first.leads().await;
    let second = Replica::start(server.client(), "second");
    tokio::time::sleep(SECOND * 3).await;
    faults.plan(|_, _| Fate::Lost);
    while !second.is_working() {
        tokio::time::sleep(SECOND / 10).await;
    }
    assert!(!first.is_working(), "two replicas work at the same time");
    assert!(first.ended().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_stops_the_work_at_the_next_renewal() {
    let server = ApiServer::in_process();
    let mut first = Replica::start(server.client(), "first");
    first.leads().await;
    let theft = Patch::Merge(json!({"spec": {"holderIdentity": "thief"}}));
    leases(&server).patch("lock.example.com", &PatchParams::default(), &theft).await.unwrap();
    let stolen = Instant::now();
    let error = first.ended().await.unwrap_err();
    assert!(stolen.elapsed() <= SECOND * 2);
    assert!(error.to_string().contains("thief holds the lease"), "{error}");
    let spec = leases(&server).get("lock.example.com").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("thief"), "a lease of another replica is not released");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_again_by_its_holder() {
    let server = ApiServer::in_process();
    let mut first = Replica::start(server.client(), "first");
    first.leads().await;
    let second = Replica::start(server.client(), "second");
    tokio::time::sleep(SECOND * 5).await;
    let term = first.leadership.term();
    leases(&server).delete("lock.example.com", &DeleteParams::default()).await.unwrap();
    for _ in 0..300 {
        tokio::time::sleep(SECOND / 10).await;
        assert!(first.is_leader() && !second.is_leader());
    }
    assert_eq!(first.leadership.term(), term, "the term is the same");
    let spec = leases(&server).get("lock.example.com").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("first"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_retried_with_the_usual_delay() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let election = LeaderElection::new("later", "lock.example.com").identity("first");
    let elector = LeaderElector::with(faults.client(&server), election, time(), &LeaderMetrics::default());
    let (mut leadership, stop) = (elector.leadership(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(elector.lead(stop.clone(), |term: Term| async move { term.stop.cancelled().await }));
    tokio::time::sleep(SECOND * 20).await;
    assert!(!leadership.is_leader());
    assert!(faults.requests().len() <= 40, "{}", faults.requests().len());
    assert!(
        leadership.last_error().is_some_and(|error| error.contains("later")),
        "{:?}",
        leadership.last_error()
    );
    let namespace = serde_json::from_value(json!({"metadata": {"name": "later"}})).unwrap();
    Api::<k8s_openapi::api::core::v1::Namespace>::all(server.client())
        .create(&kube_core::params::PostParams::default(), &namespace)
        .await
        .unwrap();
    assert!(leadership.acquired().await);
    assert_eq!(leadership.last_error(), None);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_never_led_ends_immediately_without_a_write() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let mut first = Replica::start(server.client(), "first");
    first.leads().await;
    let mut second = Replica::start(faults.client(&server), "second");
    tokio::time::sleep(SECOND * 5).await;
    let stop_requested = Instant::now();
    assert_eq!(second.end().await, Ok(()));
    assert_eq!(stop_requested.elapsed(), Duration::ZERO);
    assert!(faults.requests().iter().all(|request| request.starts_with("GET ")), "{:?}", faults.requests());
}

#[tokio::test(start_paused = true)]
async fn a_release_does_not_wait_for_a_request_that_hangs_and_reads_its_effect() {
    let (server, faults) = (ApiServer::in_process(), Faults::none());
    let mut first = Replica::start(faults.client(&server), "first");
    first.leads().await;
    let mut is_next = true;
    faults.plan(move |_, _| if std::mem::take(&mut is_next) { Fate::AnswerHangs } else { Fate::Pass });
    tokio::time::sleep(SECOND * 3).await;
    let stop_requested = Instant::now();
    assert_eq!(first.end().await, Ok(()));
    assert_eq!(stop_requested.elapsed(), Duration::ZERO);
    let spec = leases(&server).get("lock.example.com").await.unwrap().spec.unwrap();
    assert_eq!(
        spec.holder_identity.as_deref(),
        Some(""),
        "the lease is released although the renewal had no response"
    );
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_was_suspended_longer_than_the_lease_sends_no_write() {
    let server = ApiServer::in_process();
    let mut first = Replica::start(server.client(), "first");
    first.leads().await;
    let plain: Client = server.client().into();
    let fenced = first.leadership.fence(&plain);
    let config = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let configs = Api::<k8s_openapi::api::core::v1::ConfigMap>::default_namespaced(fenced.kube());
    let params = kube_core::params::PostParams::default();
    configs.create(&params, &config("while-leading")).await.unwrap();

    // The clock advances while no task of the replica runs, as under SIGSTOP.
    tokio::time::advance(SECOND * 20).await;
    let error = configs.create(&params, &config("late")).await.unwrap_err();
    let watchkeeper_client::kube_client::Error::Service(source) = &error else { panic!("{error}") };
    assert!(source.downcast_ref::<NotLeading>().is_some_and(|error| error.identity == "first"), "{error}");
    assert!(configs.get_opt("late").await.unwrap().is_none(), "reads pass, and nothing was written");
    let unfenced = Api::<k8s_openapi::api::core::v1::ConfigMap>::default_namespaced(plain.kube());
    unfenced.create(&params, &config("late")).await.unwrap();
}

/// A clock that runs faster than tokio's.
#[derive(Debug, Clone)]
struct Skewed {
    clock: TokioClock,
    rate: f64,
}

impl Clock for Skewed {
    fn now(&self) -> Duration {
        self.clock.now().mul_f64(self.rate)
    }

    fn wall_time(&self) -> SystemTime {
        self.clock.wall_time()
    }

    fn sleep_until(&self, at: Duration) -> Sleep {
        // Slightly later, because the quotient may be rounded down and the sleeper must find that the time
        // has come.
        let at = if at == Duration::MAX { at } else { at.div_f64(self.rate) + Duration::from_micros(1) };
        self.clock.sleep_until(at)
    }
}

/// Runs one schedule: two replicas with different clocks, whose requests are slow, lost, or executed without
/// a response. The second replica starts late, and each is stopped or crashes at some time. Returns the
/// number of leaderships.
async fn schedule(seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let server = ApiServer::builder().seed(seed).controllers(false).build();
    let working: Arc<Mutex<Vec<usize>>> = Arc::default();
    let led = Arc::new(AtomicUsize::new(0));
    let mut leaderships = Vec::new();
    let mut tasks = JoinSet::new();
    for number in 0..2 {
        let mut fate_of = random.fork();
        let trouble = random.f64() * 0.4;
        let faults = Faults::planned(move |_, _| {
            let seconds = |random: &mut fastrand::Rng| Duration::from_millis(random.u64(0..12_000));
            if fate_of.f64() > trouble {
                return Fate::Slow(
                    Duration::from_millis(fate_of.u64(0..300)),
                    Duration::from_millis(fate_of.u64(0..300)),
                );
            }
            match fate_of.u8(0..5) {
                0 => Fate::Lost,
                1 => Fate::AnswerLost,
                2 => Fate::Hangs,
                3 => Fate::AnswerHangs,
                _ => Fate::Slow(seconds(&mut fate_of), seconds(&mut fate_of)),
            }
        });
        let clock = Skewed {
            clock: TokioClock::starting_at(SystemTime::UNIX_EPOCH),
            rate: 1.0 + random.f64() * 0.49,
        };
        let time = Time::new(clock);
        let election =
            LeaderElection::new("default", "lock.example.com").identity(format!("replica-{number}"));
        let client = faults.client(&server);
        let start_after = Duration::from_millis(random.u64(0..20_000));
        let wind_down = Duration::from_millis(random.u64(0..4_000));
        let ends_after = SECOND * random.u32(10..90);
        let crashes = random.bool();
        let elector = LeaderElector::with(client, election, time, &LeaderMetrics::default());
        let mut leadership = elector.leadership();
        leaderships.push(leadership.clone());
        let (working, led) = (Arc::clone(&working), Arc::clone(&led));
        tasks.spawn(async move {
            tokio::time::sleep(start_after).await;
            let work = move |term: Term| async move {
                led.fetch_add(1, Ordering::SeqCst);
                working.lock().push(number);
                let _working = Working(Arc::clone(&working), number);
                term.stop.cancelled().await;
                // After a stop request, the work may continue for as long as the replica leads.
                tokio::select! {
                    () = tokio::time::sleep(wind_down) => {}
                    () = leadership.lost() => {}
                }
            };
            let stop = CancellationToken::new();
            let lead = elector.lead(stop.clone(), work);
            let end = async {
                tokio::time::sleep(ends_after).await;
                stop.cancel();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                _ = lead => {}
                () = end, if !crashes => {}
                () = tokio::time::sleep(ends_after), if crashes => {}
            }
        });
    }
    for _ in 0..1_000 {
        tokio::time::sleep(SECOND / 10).await;
        let leaders = leaderships.iter().filter(|leadership| leadership.is_leader()).count();
        assert!(leaders <= 1, "seed {seed}: two lead");
        let at_work = working.lock().clone();
        assert!(at_work.len() <= 1, "seed {seed}: two work");
    }
    led.load(Ordering::SeqCst)
}

struct Working(Arc<Mutex<Vec<usize>>>, usize);

impl Drop for Working {
    fn drop(&mut self) {
        let mut working = self.0.lock();
        let place = working.iter().position(|number| *number == self.1);
        place.map(|place| working.remove(place));
    }
}

#[tokio::test(start_paused = true)]
async fn two_replicas_on_a_faulty_server_never_lead_or_work_together_in_300_schedules() {
    let mut led = 0;
    let mut handed_over = 0;
    for seed in 0..300 {
        let times = schedule(seed).await;
        led += times;
        handed_over += usize::from(times > 1);
    }
    // The schedules are useful: most have a leader, and many have consecutive leaders.
    assert!(led > 300, "{led}");
    assert!(handed_over > 90, "{handed_over}");
}
