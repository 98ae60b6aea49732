//! The replay server: an API server of varied pods that are rendered beforehand, a Go program under
//! `peers/client-go/replay`.
//!
//! Each run starts its own server, through the environment that the harness sets: `REPLAY_PROGRAM` is the program, and
//! `REPLAY_CPU` the CPU it is bound to. The run itself is bound to another CPU, so that neither takes the other's time.

use std::env;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as StdCommand, Stdio};

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::cli::Plan;
use crate::error::BenchError;
use crate::go;
use crate::suite::RunFailure;

const PROGRAM: &str = "REPLAY_PROGRAM";
const CPU: &str = "REPLAY_CPU";
const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

/// The program of the server, for the runs of a plan.
#[derive(Debug)]
pub(crate) struct Replay {
    program: PathBuf,
    /// Whether server and client are bound to a CPU each.
    is_bound: bool,
}

impl Replay {
    /// Builds the server if the plan needs it.
    pub(crate) fn prepare(plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<Option<Self>, BenchError> {
        if !plan.suite.against_replay {
            return Ok(None);
        }
        let module = go::build()?.ok_or(BenchError::NoReplay { suite: plan.suite.name })?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let has_taskset = StdCommand::new("taskset").arg("-V").output().is_ok();
        let is_bound = cpus > 1 && has_taskset;
        say(if is_bound {
            "the server runs on CPU 0, and the client on CPU 1"
        } else {
            "server and client share the CPUs: there is only one, or no taskset on PATH"
        });
        Ok(Some(Self { program: module.replay(), is_bound }))
    }

    /// Returns the command that runs a client of the server.
    pub(crate) fn client(&self, program: &Path) -> Command {
        let mut command = if self.is_bound {
            let mut bound = Command::new("taskset");
            bound.args(["-c", CLIENT_CPU]).arg(program).env(CPU, SERVER_CPU);
            bound
        } else {
            Command::new(program)
        };
        command.env(PROGRAM, &self.program);
        command
    }
}

/// The process of the server of one run. Dropping the value ends the process.
#[derive(Debug)]
pub(crate) struct ReplayServer {
    child: Child,
    address: String,
}

/// The response of the server to an order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// The resourceVersion of the last change.
    pub(crate) resource_version: String,
}

impl ReplayServer {
    /// Starts a server of this many pods, and waits until it listens. `encodings` are `json`, `protobuf` or both.
    pub(crate) fn start(pods: u64, encodings: &str) -> Result<Self, RunFailure> {
        let program = env::var_os(PROGRAM).ok_or("REPLAY_PROGRAM is not set; the harness sets it")?;
        let mut command = match env::var_os(CPU) {
            Some(cpu) => {
                let mut bound = StdCommand::new("taskset");
                bound.arg("-c").arg(cpu).arg(program);
                bound
            }
            None => StdCommand::new(program),
        };
        command.args(["-pods", &pods.to_string(), "-encodings", encodings]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take().ok_or("the server's process has no output")?;
        let mut server = Self { child, address: String::new() };
        BufReader::new(said).read_line(&mut server.address)?;
        server.address.truncate(server.address.trim_end().len());
        if server.address.is_empty() {
            return Err("the server ended before it listened".into());
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Gives an order, such as `/trigger?events=10`, and returns the answer when it is carried out.
    pub(crate) async fn order(&self, path: &str) -> Result<Answer, RunFailure> {
        // A request by hand, because the client under test must not share a connection with it.
        let mut socket = TcpStream::connect(&self.address).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        socket.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        socket.read_to_string(&mut response).await?;
        let (head, body) = response.split_once("\r\n\r\n").ok_or("the server sent no response")?;
        if !head.lines().next().is_some_and(|status| status.contains(" 200 ")) {
            return Err(format!("{path}: {body}").into());
        }
        Ok(serde_json::from_str(body)?)
    }

    /// Ends the server, and waits for it.
    fn stop(&mut self) -> io::Result<()> {
        self.child.kill()?;
        // Waited for, so that its CPU time counts as the run's own and not as that of others.
        self.child.wait().map(|_| ())
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        // A server that has ended already needs nothing.
        let _ = self.stop();
    }
}
