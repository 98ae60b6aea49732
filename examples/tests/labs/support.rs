//! The labs as processes, and a server that simulates a cluster.

use std::process::Stdio;

use k8s_openapi::api::core::v1::Pod;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout},
    sync::mpsc,
    task::JoinSet,
};
use watchkeeper::{apiserver::ApiServer, prelude::*};

use crate::process;
pub(crate) use crate::process::{Ended, PATIENCE, page};

impl Ended {
    /// Returns the lines of standard output, after a successful exit.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<&str> {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out.lines().collect()
    }
}

/// Runs a lab to its end.
pub(crate) async fn run(program: &str, arguments: &[&str]) -> Ended {
    process::finish(process::isolated(program, arguments)).await
}

/// A lab that runs until it is interrupted.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: mpsc::UnboundedReceiver<String>,
    /// The task that reads the log, so that the lab does not block on a full pipe.
    _reading: JoinSet<()>,
}

impl Running {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = process::isolated(program, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut written = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, log) = mpsc::unbounded_channel();
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Ok(Some(line)) = written.next_line().await {
                sender.send(line).ok();
            }
        });
        Self { child, lines, log, _reading: reading }
    }

    /// Returns the port in the first line of the log that contains this text.
    pub(crate) async fn port(&mut self, text: &str) -> u16 {
        let reading = async {
            loop {
                let line = self.log.recv().await.expect("it still runs");
                if let Some((_, address)) = line.split_once("address=").filter(|_| line.contains(text)) {
                    return address.trim().parse::<std::net::SocketAddr>().unwrap().port();
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("it logs where it listens")
    }

    /// Returns the next line of standard output.
    pub(crate) async fn line(&mut self) -> String {
        process::next_line(&mut self.lines).await
    }

    /// Stops the lab as Ctrl-C does, and returns its exit code. The output is read, so that the lab does not block on a full
    /// pipe.
    pub(crate) async fn interrupt(self) -> Option<i32> {
        process::signal(&self.child, Signal::INT);
        process::ended(self.child, self.lines).await
    }
}

/// A listening server with a kubeconfig.
pub(crate) struct Listening {
    pub(crate) client: Client,
    _server: ApiServer,
    folder: TempDir,
}

impl Listening {
    pub(crate) async fn start() -> Self {
        let server = ApiServer::in_process();
        let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), endpoint.kubeconfig(None)).unwrap();
        Self { client: Client::from(server.client()), _server: server, folder }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        self.folder.path().join("config").to_str().unwrap().to_owned()
    }

    /// Runs a lab on this server to its end.
    pub(crate) async fn run(&self, program: &str, arguments: &[&str]) -> Ended {
        let kubeconfig = self.kubeconfig();
        run(program, &[arguments, &["--kubeconfig", &kubeconfig]].concat()).await
    }

    pub(crate) fn pods(&self, namespace: &str) -> ResourceClient<Pod> {
        self.client.resource().namespace(namespace)
    }

    pub(crate) async fn add_pod(&self, name: &str, phase: &str) {
        let pod: Pod = serde_json::from_value(pod(name)).unwrap();
        let pods = self.pods("default");
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let status = Patch::Merge(json!({"status": {"phase": phase}}));
        pods.patch_status(name, &PatchParams::default(), &status).await.unwrap();
    }

    /// Returns the names of the pods in the namespace `default`.
    pub(crate) async fn pod_names(&self) -> Vec<String> {
        let pods = self.pods("default").list_all(&ListParams::default()).await.unwrap();
        pods.iter().map(ResourceExt::name_any).collect()
    }
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": "worker-7", "containers": [{"name": "main", "image": "nginx"}]}})
}
