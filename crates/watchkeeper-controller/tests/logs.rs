//! What is logged.

use std::{io, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    filter::filter_fn,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_controller::{
    Action, Cause, Context, Controller, ReconcileError, Request, Triggers, runnable::Runnable as _,
};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

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

/// Runs a controller with a key that conflicts once and one that fails once, after it has said something.
async fn run() {
    let server = ApiServer::in_process();
    let triggers = Triggers::new();
    let reconcile = |request: Request<ConfigMap>, _: Context| async move {
        let conflict = || {
            let status =
                kube_core::Status::failure("the object has been modified", "Conflict").with_code(409);
            kube_client::Error::Api(Box::new(status))
        };
        match (request.name(), request.failures) {
            ("stale", _) if request.causes.adds() < 2 => Err(conflict().into()),
            ("bad", 0) => {
                tracing::info!("said by the reconciler");
                Err(ReconcileError::new("no luck"))
            }
            _ => Ok(Action::done()),
        }
    };
    let controller = Controller::<ConfigMap>::new(server.client()).named("maps").channel(&triggers);
    let reconcile_loop = controller.reconcile_with(reconcile);
    triggers.send("shop/stale".parse().expect("a key"), Cause::Other("test".into()));
    triggers.send("shop/bad".parse().expect("a key"), Cause::Other("webhook".into()));
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(reconcile_loop.run(stop.clone()), stopping);
    ended.expect("it was asked to stop");
}

const OF_BAD: &str = "reconcile{controller=\"maps\" controller_kind=\"ConfigMap\" namespace=\"shop\" name=\"bad\" reconcile_id=";

#[tokio::test(start_paused = true)]
async fn logs_say_which_key_and_why_and_a_conflict_is_not_worth_a_warning() {
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(written.clone())
        .with_ansi(false)
        .without_time()
        .with_max_level(Level::INFO)
        .finish();
    let _subscribed = tracing::subscriber::set_default(subscriber);
    run().await;
    let log = written.text();
    let lines: Vec<_> = log.lines().filter(|line| line.contains(OF_BAD)).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        lines[0].contains("causes=webhook failures=0") && lines[0].ends_with("said by the reconciler"),
        "{log}"
    );
    assert!(lines[1].trim_start().starts_with("WARN") && lines[1].contains("error=no luck"), "{log}");
    assert!(!log.contains("stale"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn who_wants_warnings_only_but_the_spans_of_reconciles_gets_both() {
    let written = Written::default();
    let is_wanted = |metadata: &Metadata<'_>| {
        metadata.is_span() && metadata.name() == "reconcile" || *metadata.level() <= Level::WARN
    };
    let lines = fmt::layer().with_writer(written.clone()).with_ansi(false).without_time();
    let subscriber = tracing_subscriber::registry().with(lines).with(filter_fn(is_wanted));
    let _subscribed = tracing::subscriber::set_default(subscriber);
    run().await;
    let log = written.text();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(OF_BAD) && log.contains("error=no luck"), "{log}");
}
