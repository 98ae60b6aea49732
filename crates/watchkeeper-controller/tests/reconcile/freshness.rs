//! A reconcile starts only after the caches show earlier writes of its key.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use parking_lot::Mutex;
use serde_json::json;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::kube_client::api::{DeleteParams, PostParams};
use watchkeeper_client::{Client, limits::Limits, list_watch::ListWatch, rest::Deadlines};
use watchkeeper_controller::{
    Action, Context, Controller, Freshness, ReconcileError, Request, Triggers, Watch,
};
use watchkeeper_informer::{SharedIndexInformer, SharedInformerFactory, controller::Config, factory::Scope};

use crate::support::*;

type Configure = fn(Controller<ConfigMap>) -> Controller<ConfigMap>;

/// The first write of a reconcile of `default/a`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Write {
    Change,
    ChangeUntracked,
    ChangeTried,
    Create,
    Delete,
    CreateAndDelete,
    ChangeUnwatched,
    Nothing,
}

async fn write(what: Write, ctx: &Context) -> Result<(), ReconcileError> {
    let maps = maps(&ctx.client());
    let change = json!({"data": {"k": "new"}});
    match what {
        Write::Change => {
            patch(&maps, "a", change).await;
        }
        Write::ChangeUntracked => {
            patch(&crate::support::maps(&ctx.untracked_client()), "a", change).await;
        }
        Write::ChangeTried => {
            let params =
                watchkeeper_client::kube_client::api::PatchParams { dry_run: true, ..Default::default() };
            maps.patch("a", &params, &watchkeeper_client::kube_client::api::Patch::Merge(change)).await?;
        }
        Write::Create => _ = create(&maps, &map("b")).await,
        Write::Delete => _ = maps.delete("a", &DeleteParams::default()).await?,
        Write::CreateAndDelete => {
            create(&maps, &map("b")).await;
            maps.delete("b", &DeleteParams::default()).await?;
        }
        Write::ChangeUnwatched => {
            let secrets = ctx.client().resource::<Secret>().namespace("default");
            let secret = serde_json::from_value(json!({"metadata": {"name": "s"}}))?;
            secrets.create(&PostParams::default(), &secret).await?;
        }
        Write::Nothing => {}
    }
    Ok(())
}

/// A reconcile of `default/a`: its time, its freshness, and whether the caches had `a` with the new data,
/// and `b`.
#[derive(Debug, PartialEq)]
struct Look {
    at: u128,
    freshness: Freshness,
    a: Option<bool>,
    has_b: bool,
}

struct Scene {
    /// The server, whose watches end when it is dropped.
    server: ApiServer,
    triggers: Triggers,
    reconciles: Arc<Mutex<Vec<Look>>>,
    log: Log,
    start: Arc<Mutex<Duration>>,
    running: Running,
}

impl Scene {
    /// Creates a controller of config maps whose cache lags by `delay`, and whose first reconcile of
    /// `default/a` writes.
    async fn new(
        delay: Duration,
        what: Write,
        configure: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>,
    ) -> Self {
        let server = server();
        let client = server.client();
        create(&maps(&client), &map("a")).await;
        let (source, late) = late_maps(&client);
        let factory = SharedInformerFactory::builder(client.clone()).source::<ConfigMap>(source).build();
        let triggers = Triggers::new();
        let reconciles = Arc::new(Mutex::new(Vec::new()));
        let log = Log::new();
        let start = Arc::new(Mutex::new(Duration::ZERO));
        let (recorder, clock, origin) = (Arc::clone(&reconciles), log.clone(), Arc::clone(&start));
        let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
            clock.note(&request);
            let (recorder, clock, origin) = (Arc::clone(&recorder), clock.clone(), Arc::clone(&origin));
            async move {
                let start = *origin.lock();
                if request.name() != "a" || start.is_zero() {
                    return Ok::<_, ReconcileError>(Action::done());
                }
                let a = request.object.as_ref();
                let look = Look {
                    at: clock.since(start),
                    freshness: ctx.freshness(),
                    a: a.map(|a| a.data.as_ref().is_some_and(|data| data["k"] == "new")),
                    has_b: ctx.lister::<ConfigMap>()?.get("default/b").is_ok(),
                };
                let is_first = {
                    let mut reconciles = recorder.lock();
                    reconciles.push(look);
                    reconciles.len() == 1
                };
                if is_first {
                    write(what, &ctx).await?;
                }
                Ok(Action::done())
            }
        };
        let controller = configure(Controller::<ConfigMap>::on(&factory).channel(&triggers));
        let running = started(controller.reconcile_with(reconcile)).await;
        *late.lock() = delay;
        *start.lock() = log.now();
        Self { server, triggers, reconciles, log, start, running }
    }

    /// Enqueues `default/a` now and again 100 ms later; returns the reconciles since then.
    async fn play(self, time: Duration) -> Vec<Look> {
        self.log.take();
        self.triggers.send(key("default/a"), because("first"));
        tokio::time::sleep(ms(100)).await;
        self.triggers.send(key("default/a"), because("second"));
        self.triggers.send(key("default/other"), because("of another key"));
        tokio::time::sleep(time).await;
        let others: Vec<_> =
            self.log.take().into_iter().filter(|logged| logged.key == "default/other").collect();
        let start = *self.start.lock();
        let others: Vec<_> = others.into_iter().map(|logged| millis_between(start, logged.at)).collect();
        assert_eq!(others, [100], "the worker processes other keys");
        self.running.stop().await;
        drop(self.server);
        std::mem::take(&mut *self.reconciles.lock())
    }
}

fn is_as_late(look: &Look, delay: u64) -> bool {
    // The cache is polled at doubling intervals, and the event itself enqueues the key too.
    let Freshness::Waited(waited) = look.freshness else { return false };
    look.at >= u128::from(delay) && waited.as_millis() + 100 == look.at
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_after_a_change_waits_until_the_cache_shows_it() {
    let reconciles =
        Scene::new(ms(2_000), Write::Change, |controller| controller).await.play(ms(10_000)).await;
    assert_eq!(reconciles[0], Look { at: 0, freshness: Freshness::Fresh, a: Some(false), has_b: false });
    assert_eq!(reconciles.len(), 2, "the wait and its event share one reconcile: {reconciles:?}");
    assert!(is_as_late(&reconciles[1], 2_000), "{reconciles:?}");
    assert_eq!(reconciles[1].a, Some(true));
    assert!(reconciles[1].at <= 2_010, "enqueued by the event, not by the next check: {reconciles:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_after_a_change_whose_event_is_filtered_waits_too() {
    let configure = |controller: Controller<ConfigMap>| {
        controller.filter(|change: watchkeeper_controller::Change<'_, ConfigMap>| change.before().is_none())
    };
    let reconciles = Scene::new(ms(2_000), Write::Change, configure).await.play(ms(10_000)).await;
    assert_eq!(reconciles.len(), 2, "{reconciles:?}");
    assert!(is_as_late(&reconciles[1], 2_000) && reconciles[1].at <= 2_600, "{reconciles:?}");
    assert_eq!(reconciles[1].a, Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_after_a_creation_waits_until_the_cache_shows_it() {
    let reconciles =
        Scene::new(ms(2_000), Write::Create, |controller| controller).await.play(ms(10_000)).await;
    assert_eq!(reconciles.len(), 2, "{reconciles:?}");
    assert!(is_as_late(&reconciles[1], 2_000), "{reconciles:?}");
    assert!(reconciles[1].has_b);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_after_a_deletion_waits_until_the_cache_shows_it() {
    let reconciles =
        Scene::new(ms(2_000), Write::Delete, |controller| controller).await.play(ms(10_000)).await;
    assert_eq!(reconciles.len(), 2, "{reconciles:?}");
    assert!(is_as_late(&reconciles[1], 2_000), "{reconciles:?}");
    assert_eq!(reconciles[1].a, None);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_not_observed_before_the_creation() {
    let reconciles = Scene::new(ms(1_000), Write::CreateAndDelete, |c| c).await.play(ms(10_000)).await;
    assert_eq!(reconciles.len(), 2, "{reconciles:?}");
    // The creation is observed after one second, the deletion after two.
    assert!(is_as_late(&reconciles[1], 2_000), "{reconciles:?}");
    assert!(!reconciles[1].has_b);
}

#[tokio::test(start_paused = true)]
async fn the_wait_times_out_and_the_context_reports_it() {
    let configure = |controller: Controller<ConfigMap>| controller.freshness_timeout(ms(1_500));
    let reconciles = Scene::new(ms(60_000), Write::Change, configure).await.play(ms(30_000)).await;
    assert_eq!(reconciles.len(), 2, "{reconciles:?}");
    let Freshness::TimedOut(waited) = reconciles[1].freshness else { panic!("{reconciles:?}") };
    assert!((1_500..1_510).contains(&waited.as_millis()), "{reconciles:?}");
    assert_eq!(reconciles[1].a, Some(false));
}

#[tokio::test(start_paused = true)]
async fn writes_that_no_cache_shows_and_untracked_writes_are_not_waited_for() {
    let cases: [(Write, Configure); 6] = [
        (Write::Nothing, |controller| controller),
        (Write::ChangeTried, |controller| controller),
        (Write::ChangeUnwatched, |controller| controller),
        (Write::ChangeUntracked, |controller| controller),
        (Write::Change, Controller::without_freshness),
        (Write::Change, |controller| controller.without_freshness().without_hot_loops()),
    ];
    for (what, configure) in cases {
        let reconciles = Scene::new(ms(60_000), what, configure).await.play(ms(1_000)).await;
        let stale = Look { at: 100, freshness: Freshness::Fresh, a: Some(false), has_b: false };
        assert_eq!(reconciles[1..], [stale], "{what:?}");
    }
}

/// Returns the milliseconds at which `default/x` was reconciled by a controller that watches these config
/// maps, if the key is enqueued every 10 ms and each reconcile creates a config map in `default`.
async fn creating(server: &ApiServer, primary: Watch<ConfigMap>) -> Vec<u128> {
    let factory = SharedInformerFactory::new(server.client());
    let (triggers, log) = (Triggers::new(), Log::new());
    let recorder = log.clone();
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        recorder.note(&request);
        let number = recorder.all().len();
        async move {
            create(&maps(&ctx.client()), &map(&format!("m{number}"))).await;
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller = Controller::on_with(&factory, primary).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    log.take();
    let start = log.now();
    for _ in 0..3 {
        triggers.send(key("default/x"), because("test"));
        tokio::time::sleep(ms(10)).await;
    }
    running.stop().await;
    log.take().into_iter().map(|logged| millis_between(start, logged.at)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_informer_excludes_is_not_waited_for() {
    let scopes = [
        Scope::namespace("kube-system"),
        Scope::namespaces(["kube-system", "kube-public"]),
        Scope::all().labels("app=web"),
        Scope::namespace("default").labels("app in (web, shop),!other"),
        Scope::all().fields("metadata.name=web"),
        Scope::all().fields("metadata.namespace!=default"),
    ];
    for scope in scopes {
        let server = server();
        assert_eq!(creating(&server, Watch::within(scope.clone())).await, [0, 10, 20], "{scope}");
    }
    // An informer that was not created by the factory.
    let server = server();
    let maps = Client::from(server.client()).resource::<ConfigMap>().namespace("kube-system");
    let informer = SharedIndexInformer::new(Config::new("maps", ListWatch::new(&maps)));
    assert_eq!(creating(&server, Watch::informer(&informer)).await, [0, 10, 20], "standalone");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_moves_an_object_out_of_the_selector_is_waited_for_until_the_cache_drops_it() {
    let server = server();
    let client = server.client();
    create(&maps(&client), &map("a")).await;
    patch(&maps(&client), "a", json!({"metadata": {"labels": {"app": "web"}}})).await;
    let collection = Client::from(client.clone()).resource::<ConfigMap>();
    let delay = Arc::new(Mutex::new(Duration::ZERO));
    let source = Delayed { source: ListWatch::new(&collection).labels("app=web"), delay: Arc::clone(&delay) };
    let factory = SharedInformerFactory::builder(client).source::<ConfigMap>(source).build();
    let (triggers, reconciles) = (Triggers::new(), Arc::new(Mutex::new(Vec::new())));
    let recorder = Arc::clone(&reconciles);
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        let recorder = Arc::clone(&recorder);
        async move {
            let has_object = request.object.is_some();
            recorder.lock().push((has_object, ctx.freshness()));
            if has_object && request.causes.to_string() == "leave" {
                patch(&maps(&ctx.client()), "a", json!({"metadata": {"labels": null}})).await;
            }
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let controller = Controller::<ConfigMap>::on(&factory).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    reconciles.lock().clear();
    *delay.lock() = ms(2_000);
    triggers.send(key("default/a"), because("leave"));
    tokio::time::sleep(ms(100)).await;
    triggers.send(key("default/a"), because("again"));
    tokio::time::sleep(ms(10_000)).await;
    running.stop().await;
    let reconciles = reconciles.lock();
    let [(true, Freshness::Fresh), (false, Freshness::Waited(waited))] = reconciles.as_slice() else {
        panic!("{reconciles:?}")
    };
    assert!((1_900..2_600).contains(&waited.as_millis()), "{reconciles:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_field_selector_may_exclude_costs_one_timeout() {
    let server = server();
    let client = server.client();
    create(&maps(&client), &map("a")).await;
    let pods = Client::from(client.clone()).resource::<Pod>().namespace("default");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    create(&pods, &serde_json::from_value(pod).unwrap()).await;
    let factory = SharedInformerFactory::new(client);
    let (triggers, waits) = (Triggers::new(), Arc::new(Mutex::new(Vec::new())));
    let recorder = Arc::clone(&waits);
    let reconcile = move |request: Request<ConfigMap>, ctx: Context| {
        let recorder = Arc::clone(&recorder);
        async move {
            recorder.lock().push(ctx.freshness());
            let pods = ctx.client().resource::<Pod>().namespace("default");
            let text = request.causes.to_string();
            patch(&pods, "p", json!({"metadata": {"annotations": {"because": text}}})).await;
            Ok::<_, ReconcileError>(Action::done())
        }
    };
    let on_node = Watch::<Pod>::within(Scope::all().fields("spec.nodeName=node-1"));
    let controller = Controller::<ConfigMap>::on(&factory).owns_with(on_node).channel(&triggers);
    let running = started(controller.reconcile_with(reconcile)).await;
    for number in 0..4 {
        triggers.send(key("default/a"), because(&number.to_string()));
        tokio::time::sleep(ms(10_000)).await;
    }
    running.stop().await;
    let waits = waits.lock();
    let [Freshness::Fresh, Freshness::TimedOut(_), rest @ ..] = waits.as_slice() else { panic!("{waits:?}") };
    assert_eq!(rest, [Freshness::Fresh; 3]);
}

#[tokio::test(start_paused = true)]
async fn the_client_of_a_context_has_the_settings_of_the_controllers_client() {
    let (mut limits, mut deadlines) = (Limits::default(), Deadlines::default());
    (limits.object_bytes, deadlines.request) = (4096, ms(1234));
    let server = server();
    let client = Client::from(server.client()).with_limits(limits.clone()).with_deadlines(deadlines);
    create(&maps(&client), &map("a")).await;
    // Converted to kube's client, the settings are found again with the first request.
    for given in [client.clone(), Client::from(client.kube())] {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let settings = Arc::clone(&logged);
        let reconcile = move |_: Request<ConfigMap>, ctx: Context| {
            let settings = Arc::clone(&settings);
            async move {
                for client in [ctx.client(), ctx.untracked_client()] {
                    client.resource::<ConfigMap>().namespace("default").get("a").await?;
                    settings.lock().push((client.limits().clone(), client.deadlines()));
                }
                Ok::<_, ReconcileError>(Action::done())
            }
        };
        let running = started(Controller::<ConfigMap>::new(given).reconcile_with(reconcile)).await;
        running.stop().await;
        assert_eq!(*logged.lock(), [(limits.clone(), deadlines), (limits.clone(), deadlines)]);
    }
}
