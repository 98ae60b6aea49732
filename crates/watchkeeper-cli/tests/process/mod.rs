//! Programs as processes, for the tests of this program and of the labs.

use std::{fmt::Display, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufRead, Lines},
    process::{Child, Command},
};
use watchkeeper::client::config::ClientConfig;

/// The time after which a program counts as stuck. Generous, for busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The output and exit code of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Returns a command that does not depend on the machine: without a cluster, log filters or a terminal.
pub(crate) fn isolated(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
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

/// Returns the next line of a running program.
pub(crate) async fn next_line(lines: &mut Lines<impl AsyncBufRead + Unpin>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
    line.expect("the program prints a line").unwrap().expect("the program is running")
}

/// Sends a signal to a program.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(id, signal).unwrap();
}

/// Waits until a program ends, and returns its exit code.
pub(crate) async fn ended(mut child: Child, mut lines: Lines<impl AsyncBufRead + Unpin>) -> Option<i32> {
    let ending = async {
        // The output is read, so that the program does not block on a full pipe.
        while lines.next_line().await.unwrap().is_some() {}
        child.wait().await.unwrap().code()
    };
    tokio::time::timeout(PATIENCE, ending).await.expect("the program ends after a signal")
}

/// Returns a page of the endpoints of a program that listens on this port, or `None` if the request fails.
pub(crate) async fn page(port: impl Display, path: &str) -> Option<String> {
    let config = ClientConfig::new(&format!("http://127.0.0.1:{port}")).unwrap();
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    config.into_client().unwrap().kube().request_text(request).await.ok()
}
