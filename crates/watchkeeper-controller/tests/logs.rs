//! What is logged. A program of its own, because a subscriber is the whole program's.

use std::{io, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_controller::{
    Action, Cause, Context, Controller, ReconcileError, Request, Triggers, runnable::Runnable as _,
};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

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

#[tokio::test(start_paused = true)]
async fn logs_say_which_key_and_why_and_a_conflict_is_not_worth_a_warning() {
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(written.clone())
        .with_ansi(false)
        .without_time()
        .with_max_level(tracing::Level::INFO)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
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
    triggers.send("shop/stale".parse().unwrap(), Cause::Other("test".into()));
    triggers.send("shop/bad".parse().unwrap(), Cause::Other("webhook".into()));
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(reconcile_loop.run(stop.clone()), stopping);
    ended.unwrap();
    let log = String::from_utf8(written.0.lock().clone()).unwrap();
    let span = "reconcile{controller=\"maps\" controller_kind=\"ConfigMap\" namespace=\"shop\" name=\"bad\" reconcile_id=";
    let lines: Vec<_> = log.lines().filter(|line| line.contains(span)).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        lines[0].contains("causes=webhook failures=0") && lines[0].ends_with("said by the reconciler"),
        "{log}"
    );
    assert!(lines[1].trim_start().starts_with("WARN") && lines[1].contains("error=no luck"), "{log}");
    assert!(!log.contains("stale"), "{log}");
}
