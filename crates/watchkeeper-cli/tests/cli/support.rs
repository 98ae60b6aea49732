//! The program as a process, and a server that simulates a cluster.

use std::{path::PathBuf, process::Stdio};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines},
    process::{Child, Command},
};
use watchkeeper::{apiserver::ApiServer, prelude::*};

use crate::process;
pub(crate) use crate::process::{Ended, PATIENCE, finish, page};

pub(crate) fn command(arguments: &[&str]) -> Command {
    process::isolated(env!("CARGO_BIN_EXE_watchkeeper"), arguments)
}

/// Runs the program to its end.
pub(crate) async fn run(arguments: &[&str]) -> Ended {
    finish(command(arguments)).await
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
        process::next_line(&mut self.lines).await
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
        process::signal(&self.child, signal);
    }

    /// Waits until the program ends, and returns its exit code.
    pub(crate) async fn ended(self) -> Option<i32> {
        process::ended(self.child, self.lines).await
    }
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
