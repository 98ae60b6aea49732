//! A complete program: two controllers on one factory, with finalizers, owner references and events, in
//! replicas with leader election.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use kube_core::params::{DeleteParams, ListParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::kube_client::Api;
use watchkeeper_controller::{
    Action, Context, Controller, ReconcileError, Request,
    events::{EventType, Recorder},
    leader::{LeaderElection, Leadership},
    manager::{Manager, ManagerError},
    objects::{
        apply::{Applied, Applier},
        finalizer::{self, finalize},
        owner,
    },
    rbac::Verb,
    time::Time,
};

use crate::faults::Faults;

const SECOND: Duration = Duration::from_secs(1);
const FINALIZER: &str = "shop.example.com/cleanup";

/// The actions of the replicas, by identity.
type Log = Arc<Mutex<Vec<String>>>;

/// Creates a secret for each config map, and an event when the config map is deleted.
async fn keep_secret(
    request: Request<ConfigMap>,
    context: Context,
    replica: &'static str,
    log: Log,
) -> Result<Action, ReconcileError> {
    let Some(config) = request.object else { return Ok(Action::done()) };
    let namespace = request.key.namespace().unwrap_or_default().to_owned();
    let applied = finalize(&context, FINALIZER, config, |event| async {
        let (recorder, applier) = (context.get::<Recorder>(), context.get::<Applier>());
        match event {
            finalizer::Event::Apply(config) => {
                let name = config.metadata.name.clone().unwrap_or_default();
                let mut secret: Secret = serde_json::from_value(json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": "Opaque",
                }))
                .unwrap();
                owner::set_controller(&*config, &mut secret)?;
                let cached =
                    context.lister::<Secret>().unwrap().namespace(namespace.as_str()).get_opt(&name).unwrap();
                let applied = applier.unwrap().apply(&context, &secret, cached.as_deref()).await;
                if let Applied::Changed(_) = applied? {
                    log.lock().push(format!("{replica} made {name}"));
                    recorder.unwrap().event(
                        &*config,
                        EventType::Normal,
                        "Made",
                        "Apply",
                        "its secret was made",
                    );
                }
            }
            finalizer::Event::Cleanup(config) => {
                log.lock().push(format!(
                    "{replica} cleaned up {}",
                    config.metadata.name.clone().unwrap_or_default()
                ));
            }
        }
        Ok::<_, ReconcileError>(Action::done())
    });
    Ok(applied.await?)
}

struct Replica {
    leadership: Leadership,
    stop: CancellationToken,
    tasks: JoinSet<Result<(), ManagerError>>,
    faults: Faults,
}

fn start(server: &ApiServer, name: &'static str, log: &Log) -> Replica {
    let faults = Faults::none();
    let mut manager = Manager::builder(faults.client(server))
        .time(Time::starting_at("2026-01-02T03:04:05Z".parse().unwrap()))
        .leader_election(LeaderElection::new("default", "shop.example.com").identity(name))
        .build();
    let shared = Arc::clone(log);
    let keeper = Controller::<ConfigMap>::on(manager.factory())
        .named("keeper")
        .owns::<Secret>()
        .uses::<Secret>(&[Verb::Patch])
        .with(manager.recorder("keeper"))
        .with(Applier::new("keeper"))
        .reconcile_with(move |request, context| keep_secret(request, context, name, Arc::clone(&shared)));
    let counter = Controller::<ConfigMap>::on(manager.factory()).named("counter").reconcile_with(
        |_: Request<ConfigMap>, _: Context| async { Ok::<_, ReconcileError>(Action::done()) },
    );
    manager.add(keeper).unwrap().add(counter).unwrap();
    let (leadership, stop) = (manager.leadership().unwrap(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(manager.run_until(stop.clone()));
    Replica { leadership, stop, tasks, faults }
}

impl Replica {
    async fn end(&mut self) {
        self.stop.cancel();
        self.tasks.join_next().await.unwrap().unwrap().unwrap();
    }
}

async fn make(server: &ApiServer, name: &str) {
    let config = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<ConfigMap>::default_namespaced(server.client())
        .create(&PostParams::default(), &config)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_replicas_process_every_object_once_and_hand_over() {
    let (server, log) = (ApiServer::in_process(), Log::default());
    let (configs, secrets) = (
        Api::<ConfigMap>::default_namespaced(server.client()),
        Api::<Secret>::default_namespaced(server.client()),
    );
    let mut first = start(&server, "first", &log);
    first.leadership.acquired().await;
    let mut second = start(&server, "second", &log);
    make(&server, "a").await;
    tokio::time::sleep(SECOND * 3).await;
    assert_eq!(*log.lock(), ["first made a"]);
    let secret = secrets.get("a").await.unwrap();
    assert!(owner::is_controlled_by(&secret, &configs.get("a").await.unwrap()));
    let events =
        Api::<Event>::default_namespaced(server.client()).list(&ListParams::default()).await.unwrap();
    assert_eq!(events.items.iter().filter(|event| event.reason.as_deref() == Some("Made")).count(), 1);

    // Two controllers share one watch per kind, and the standby replica has the watches too.
    for replica in [&first, &second] {
        let requests = replica.faults.requests();
        let lists = requests.iter().filter(|request| request.ends_with(" /api/v1/configmaps")).count();
        assert_eq!(lists, 1, "{requests:?}");
    }
    let writes = |replica: &Replica| {
        let requests = replica.faults.requests();
        let is_write = |request: &&String| !request.starts_with("GET") && !request.contains("reviews");
        requests.iter().filter(is_write).count()
    };
    assert_eq!(writes(&second), 0, "who stands by writes nothing: {:?}", second.faults.requests());

    // A key in its desired state causes no request, whatever enqueues it.
    let before = writes(&first);
    let patch = kube_core::params::Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
    secrets.patch("a", &kube_core::params::PatchParams::default(), &patch).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let renewals = writes(&first) - before;
    assert!(renewals <= 1, "only the lease was written: {:?}", first.faults.requests());

    first.end().await;
    make(&server, "b").await;
    second.leadership.acquired().await;
    tokio::time::sleep(SECOND * 3).await;
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(SECOND * 3).await;
    // The second replica does not know what the first has applied. It applies once more, which changes
    // nothing.
    assert_eq!(*log.lock(), ["first made a", "second made b", "second cleaned up a"]);
    assert!(configs.get_opt("a").await.unwrap().is_none());
    assert!(secrets.get_opt("a").await.unwrap().is_none(), "collected with its owner");
    second.end().await;
}
