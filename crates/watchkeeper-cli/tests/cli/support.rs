//! The program as a process, and a server that stands for a cluster.

use std::{path::PathBuf, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines},
    process::{Child, Command},
};
use watchkeeper::{apiserver::ApiServer, client::config::ClientConfig, prelude::*};

/// The time after which a program counts as stuck. Generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The output and exit code of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
    // Independent of the machine: no cluster, no colours.
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs the program to its end.
pub(crate) async fn run(arguments: &[&str]) -> Ended {
    finish(command(arguments)).await
}

/// Runs a command to its end.
pub(crate) async fn finish(mut command: Command) -> Ended {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("the program ends").expect("the program starts");
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A program that runs until it is stopped.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
}

impl Running {
    /// Starts this program and reads its standard output.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        Self { child, lines: BufReader::new(Box::new(output) as _).lines() }
    }

    /// Starts another program and reads its log on standard error.
    pub(crate) fn logging(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let log = child.stderr.take().unwrap();
        Self { child, lines: BufReader::new(Box::new(log) as _).lines() }
    }

    /// Returns the next line.
    pub(crate) async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("it prints something").unwrap().expect("it still runs")
    }

    /// Returns the next line that contains this text.
    pub(crate) async fn line_with(&mut self, part: &str) -> String {
        loop {
            let line = self.line().await;
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Stops the program as Ctrl-C does, and returns its exit code.
    pub(crate) async fn interrupt(self) -> Option<i32> {
        self.signal(Signal::INT);
        self.ended().await
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Waits until the program ends, and returns its exit code.
    pub(crate) async fn ended(mut self) -> Option<i32> {
        let ending = async {
            // The output is read, so that the program does not block on a full pipe.
            while self.lines.next_line().await.unwrap().is_some() {}
            self.child.wait().await.unwrap().code()
        };
        tokio::time::timeout(PATIENCE, ending).await.expect("it ends when it is asked to")
    }
}

/// Returns a page of the endpoints of an operator that listens on this port, or `None` if the request fails.
pub(crate) async fn page(port: &str, path: &str) -> Option<String> {
    let config = ClientConfig::new(&format!("http://127.0.0.1:{port}")).unwrap();
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    config.into_client().unwrap().kube().request_text(request).await.ok()
}

/// A server that listens, with a kubeconfig for it.
pub(crate) struct Listening {
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    server: ApiServer,
}

impl Listening {
    pub(crate) async fn start() -> Self {
        Self::of(ApiServer::in_process(), None).await
    }

    /// Starts a server with users, whose kubeconfig contains this token.
    pub(crate) async fn with_users(token: &str) -> Self {
        let tokens = "admin-token,admin,1,\"system:masters\"\nnobody-token,nobody,2,\"nobodies\"\n";
        let server = ApiServer::builder().rbac(true).tokens(tokens).unwrap().build();
        Self::of(server, Some(token)).await
    }

    async fn of(server: ApiServer, token: Option<&str>) -> Self {
        let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), endpoint.kubeconfig(token)).unwrap();
        Self { client: Client::from(server.client()), folder, url: endpoint.url(), server }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        self.path("config").to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program on this server to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        let kubeconfig = self.kubeconfig();
        run(&[arguments, &["--kubeconfig", &kubeconfig]].concat()).await
    }

    pub(crate) async fn shut_down(&self) {
        self.server.shutdown().await;
    }
}
