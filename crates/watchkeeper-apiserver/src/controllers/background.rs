//! The background task of the controllers.

use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::watch, task::JoinSet};

use super::{ControllerOptions, Controllers, driver, feed::StoreFeed};
use crate::http::Api;

/// The task that runs the controllers of a server. Starts with the first use of the server, because a server can be created
/// outside of a runtime, and ends with the server.
#[derive(Debug)]
pub(crate) struct Background {
    options: ControllerOptions,
    stop: watch::Receiver<bool>,
    start: Once,
    tasks: Mutex<JoinSet<()>>,
    trusted: watch::Sender<Arc<str>>,
}

impl Background {
    /// Creates the controllers. They run until `stop` becomes true or its sender is dropped.
    pub(crate) fn new(options: ControllerOptions, stop: watch::Receiver<bool>) -> Self {
        Self {
            options,
            stop,
            start: Once::new(),
            tasks: Mutex::default(),
            trusted: watch::Sender::new(Arc::from("")),
        }
    }

    /// Starts the controllers on the first call within a runtime. Later calls have no effect.
    pub(crate) fn start(&self, api: &Arc<Api>) {
        if self.start.is_completed() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        self.start.call_once(|| {
            let (api, stop, trusted) = (Arc::clone(api), self.stop.clone(), self.trusted.subscribe());
            let controllers = Controllers::new(self.options);
            let run = async move {
                let feed = StoreFeed::new(Arc::clone(&api), trusted);
                driver::run(controllers, &api.rest, feed, &*api.rest.clock, stop).await;
            };
            self.tasks.lock().spawn_on(run, &runtime);
        });
    }

    /// Publishes another certificate authority of the server, in PEM.
    pub(crate) fn trust(&self, authority: &str) {
        self.trusted.send_modify(|trusted| *trusted = format!("{trusted}{authority}").into());
    }

    /// Waits until the controllers have ended. Does not return before `stop` is true.
    pub(crate) async fn join(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }
}
