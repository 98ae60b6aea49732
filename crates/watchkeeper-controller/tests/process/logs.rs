//! Log lines of a controller.

use std::{io, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{Level, Metadata, subscriber::DefaultGuard};
use tracing_subscriber::{
    filter::filter_fn,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::kube_client::api::{Patch, PatchParams};
use watchkeeper_controller::{
    Action, Cause, Context, Controller, ReconcileError, Request, Triggers, Watch, manager::Runnable as _,
};
use watchkeeper_informer::{SharedInformerFactory, factory::Scope};

/// A writer that keeps its input.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Captures the log up to a level while the guard is held.
pub(crate) fn subscribe(level: Level) -> (Written, DefaultGuard) {
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(written.clone())
        .with_ansi(false)
        .without_time()
        .with_max_level(level)
        .finish();
    (written, tracing::subscriber::set_default(subscriber))
}

/// Runs a controller with three keys: one conflicts once, one fails once after logging a line, and one is
/// rejected by the server twice.
async fn run() {
    let server = ApiServer::in_process();
    let triggers = Triggers::new();
    let reconcile = |request: Request<ConfigMap>, _: Context| async move {
        let rejected = |message: &str, reason: &str, code: u16| {
            let status = kube_core::Status::failure(message, reason).with_code(code);
            watchkeeper_client::kube_client::Error::Api(Box::new(status))
        };
        match (request.name(), request.failures) {
            ("stale", _) if request.causes.adds() < 2 => {
                Err(rejected("the object has been modified", "Conflict", 409).into())
            }
            ("rejected", 0..2) => Err(rejected("quota exceeded", "Forbidden", 403).into()),
            ("bad", 0) => {
                tracing::info!("logged by the reconciler");
                Err(ReconcileError::new("no luck"))
            }
            _ => Ok(Action::done()),
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).named("maps").channel(&triggers);
    let reconcile_loop = controller.reconcile_with(reconcile);
    triggers.send("shop/stale".parse().expect("a key"), Cause::Other("test".into()));
    triggers.send("shop/bad".parse().expect("a key"), Cause::Other("webhook".into()));
    triggers.send("shop/rejected".parse().expect("a key"), Cause::Other("test".into()));
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(reconcile_loop.run(stop.clone()), stopping);
    ended.expect("a stop was requested");
}

const OF_BAD: &str = "reconcile{controller=\"maps\" controller_kind=\"ConfigMap\" namespace=\"shop\" name=\"bad\" reconcile_id=";

/// Runs the controller and returns its log.
async fn log_of_run(level: Level) -> String {
    let (written, _subscribed) = subscribe(level);
    run().await;
    written.text()
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_logged_with_its_delay_its_attempt_and_a_summary_of_the_rejection() {
    let log = log_of_run(Level::WARN).await;
    let lines: Vec<_> = log.lines().filter(|line| line.contains("quota exceeded")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    for (line, expected) in lines.iter().zip(["retry_in=5.0ms attempt=1", "retry_in=10.0ms attempt=2"]) {
        assert!(
            line.contains("reconcile failed; retrying error=forbidden (403 Forbidden): quota exceeded"),
            "{line}"
        );
        assert!(line.contains(expected), "{line}");
        assert!(!line.contains("Status {"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn logs_contain_the_key_and_the_cause_and_no_warning_for_a_conflict() {
    let log = log_of_run(Level::INFO).await;
    let lines: Vec<_> = log.lines().filter(|line| line.contains(OF_BAD)).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        lines[0].contains("causes=webhook failures=0") && lines[0].ends_with("logged by the reconciler"),
        "{log}"
    );
    assert!(lines[1].trim_start().starts_with("WARN") && lines[1].contains("error=no luck"), "{log}");
    assert!(!log.contains("stale"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_filter_can_select_warnings_and_the_spans_of_reconciles() {
    let written = Written::default();
    let is_wanted = |metadata: &Metadata<'_>| {
        metadata.is_span() && metadata.name() == "reconcile" || *metadata.level() <= Level::WARN
    };
    let lines = fmt::layer().with_writer(written.clone()).with_ansi(false).without_time();
    let subscriber = tracing_subscriber::registry().with(lines).with(filter_fn(is_wanted));
    let _subscribed = tracing::subscriber::set_default(subscriber);
    run().await;
    let log = written.text();
    assert_eq!(log.lines().count(), 3, "{log}");
    assert!(log.contains(OF_BAD) && log.contains("error=no luck"), "{log}");
}

/// Runs a controller that creates an object that the informer does not select, which the controller cannot
/// know.
async fn miss() {
    let server = ApiServer::in_process();
    let reconcile = |_: Request<ConfigMap>, context: Context| async move {
        let pods = context.client().resource::<Pod>().namespace("default");
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        pods.patch("p", &PatchParams::apply("test"), &Patch::Apply(with_type(pod))).await?;
        Ok::<_, ReconcileError>(Action::done())
    };
    let factory = SharedInformerFactory::new(server.client());
    let on_node = Watch::<Pod>::within(Scope::all().fields("spec.nodeName=node-1"));
    let triggers = Triggers::new();
    let controller = Controller::<ConfigMap>::on(&factory).named("maps").owns_with(on_node);
    let reconcile_loop = controller.channel(&triggers).reconcile_with(reconcile);
    let stop = CancellationToken::new();
    let stopping = async {
        for _ in 0..3 {
            triggers.send("shop/a".parse().expect("a key"), Cause::Other("test".into()));
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(reconcile_loop.run(stop.clone()), stopping);
    ended.expect("a stop was requested");
}

fn with_type(mut pod: Value) -> Value {
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_observed_is_logged_once_with_the_object_the_informer_and_the_remedy() {
    let (written, _subscribed) = subscribe(Level::WARN);
    miss().await;
    let log = written.text();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("not observed")).collect();
    let [line] = lines.as_slice() else { panic!("{log}") };
    assert!(line.trim_start().starts_with("WARN"), "{line}");
    for part in ["object=\"default/p\"", "fields spec.nodeName=node-1", "waited=5s", "untracked_client"] {
        assert!(line.contains(part), "{part} in {line}");
    }
}
