//! Execution of an exec plugin.

use std::{ffi::OsStr, io::ErrorKind, path::PathBuf, process::Stdio, time::Duration};

use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret, SecretSlice};
use tokio::{
    io::{AsyncReadExt, BufReader},
    process::Command,
    time::timeout,
};

use super::{ExecError, ExecPlugin, output};
use crate::transport::credentials::{Credential, CredentialError, CredentialSource};

/// The maximum number of output bytes that are read.
const STDOUT_BYTES: usize = 1 << 20;

/// A credential source that runs a plugin for each load: without a shell or terminal, and with limits on time
/// and output. The process is killed when the load is dropped.
#[derive(Debug)]
pub(crate) struct ExecRunner {
    plugin: ExecPlugin,
    program: PathBuf,
    time_limit: Duration,
}

impl ExecRunner {
    pub(crate) fn new(plugin: ExecPlugin, program: PathBuf, time_limit: Duration) -> Self {
        Self { plugin, program, time_limit }
    }

    async fn run(&self) -> Result<SecretSlice<u8>, ExecError> {
        let name = || self.plugin.name.clone();
        let mut child = self.command().spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.plugin.not_found(),
            kind => ExecError::NotStarted { command: name(), kind },
        })?;
        let stdout = child.stdout.take();
        let finish = async {
            let mut bytes = Vec::new();
            if let Some(stdout) = stdout {
                BufReader::new(stdout)
                    .take(STDOUT_BYTES as u64 + 1)
                    .read_to_end(&mut bytes)
                    .await
                    .map_err(|error| ExecError::NotStarted { command: name(), kind: error.kind() })?;
            }
            let bytes = SecretSlice::from(bytes);
            if bytes.expose_secret().len() > STDOUT_BYTES {
                return Err(ExecError::TooMuchOutput { command: name(), limit_bytes: STDOUT_BYTES });
            }
            let status = child
                .wait()
                .await
                .map_err(|error| ExecError::NotStarted { command: name(), kind: error.kind() })?;
            if !status.success() {
                return Err(ExecError::Failed { command: name(), status: status.to_string() });
            }
            Ok(bytes)
        };
        match timeout(self.time_limit, finish).await {
            Ok(result) => result,
            Err(_) => Err(ExecError::TimedOut { command: name(), after: self.time_limit }),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(self.plugin.arguments.iter().map(|argument| OsStr::new(argument.expose_secret())))
            .envs(self.plugin.variables.iter().map(|(name, value)| (name, value.expose_secret())))
            .env("KUBERNETES_EXEC_INFO", self.plugin.exec_info())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // The standard error of a controller is its log, and a plugin may print secrets to it.
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

impl CredentialSource for ExecRunner {
    fn describe(&self) -> String {
        format!("exec plugin {}", self.plugin.name)
    }

    fn load(&self) -> BoxFuture<'_, Result<Credential, CredentialError>> {
        Box::pin(async move {
            let stdout = self.run().await?;
            output::parse(&self.plugin, stdout.expose_secret())
        })
    }
}
