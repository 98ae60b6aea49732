//! The labs as processes, and a server that simulates a cluster.

use std::{process::Stdio, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::mpsc,
    task::JoinSet,
};
use watchkeeper::{apiserver::ApiServer, client::config::ClientConfig, prelude::*};

/// The time after which a lab counts as stuck. Generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The output and exit code of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

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
    let command = Command::new(program)
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output =
        tokio::time::timeout(PATIENCE, command).await.expect("the lab ends").expect("the lab starts");
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
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
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
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
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("it prints something").unwrap().expect("it still runs")
    }

    /// Stops the lab as Ctrl-C does, and returns its exit code. The output is read, so that the lab does not block on a full
    /// pipe.
    pub(crate) async fn interrupt(mut self) -> Option<i32> {
        let id = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(id, Signal::INT).unwrap();
        let ending = async {
            while self.lines.next_line().await.unwrap().is_some() {}
            self.child.wait().await.unwrap().code()
        };
        tokio::time::timeout(PATIENCE, ending).await.expect("it ends when it is asked to")
    }
}

/// Returns a page of the endpoints of a lab that listens on this port, or `None` if the request fails.
pub(crate) async fn page(port: u16, path: &str) -> Option<String> {
    let config = ClientConfig::new(&format!("http://127.0.0.1:{port}")).unwrap();
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    config.into_client().unwrap().kube().request_text(request).await.ok()
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
