//! A follower: a process that keeps caches with one of the two libraries and responds to requests about them.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
};

use crate::{
    error::{During as _, Error, Result},
    objects::{Kind, NAMESPACE},
    process::Process,
};

/// The state of a collection: uid and resourceVersion by key.
pub(crate) type State = BTreeMap<String, Version>;

/// The identity of one state of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

/// A running follower.
pub(crate) struct Follower {
    pub(crate) name: &'static str,
    process: Process,
    requests: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    /// Starts `program` as a follower.
    pub(crate) fn start(name: &'static str, program: &Path, kubeconfig: &Path, log: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg(NAMESPACE).env("KUBECONFIG", kubeconfig).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(name, &mut command, log)?;
        let (stdin, stdout) = (process.child().stdin.take(), process.child().stdout.take());
        let (Some(requests), Some(stdout)) = (stdin, stdout) else {
            return Err(Error::Protocol { follower: name, line: "no pipes".to_owned() });
        };
        Ok(Self { name, process, requests, replies: BufReader::new(stdout).lines() })
    }

    /// Returns the cached version of the object `key`.
    pub(crate) async fn get(&mut self, kind: Kind, key: &str) -> Result<Option<Version>> {
        self.send(&format!("get {kind} {key}\n")).await?;
        let line = self.line().await?;
        if line == "absent" {
            return Ok(None);
        }
        Ok(Some(self.object(&line)?.1))
    }

    /// Returns the whole cache.
    pub(crate) async fn dump(&mut self, kind: Kind) -> Result<State> {
        self.send(&format!("dump {kind}\n")).await?;
        let mut state = State::new();
        loop {
            let line = self.line().await?;
            if line == "end" {
                return Ok(state);
            }
            let (key, version) = self.object(&line)?;
            state.insert(key, version);
        }
    }

    /// Returns the status line of the follower.
    pub(crate) async fn status(&mut self, kind: Kind) -> Result<String> {
        self.send(&format!("status {kind}\n")).await?;
        self.line().await
    }

    async fn send(&mut self, request: &str) -> Result<()> {
        self.process.check_alive()?;
        let sent = self.requests.write_all(request.as_bytes()).await;
        sent.during(|| format!("send a request to {}", self.name))
    }

    async fn line(&mut self) -> Result<String> {
        let line = self.replies.next_line().await.during(|| format!("read from {}", self.name))?;
        line.ok_or_else(|| Error::Protocol { follower: self.name, line: "end of output".to_owned() })
    }

    fn object(&self, line: &str) -> Result<(String, Version)> {
        let mut words = line.split(' ').map(str::to_owned);
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(key), Some(uid), Some(resource_version), None) => {
                Ok((key, Version { uid, resource_version }))
            }
            _ => Err(Error::Protocol { follower: self.name, line: line.to_owned() }),
        }
    }
}
