//! The `exec` section of a kubeconfig user.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use kube_client::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use secrecy::SecretString;
use serde_json::json;

use super::{ExecError, ExecPolicy};
use crate::error::Printable;

pub(super) const V1: &str = "client.authentication.k8s.io/v1";
const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// The maximum number of characters of an `installHint` in an error.
const HINT_CHARACTERS: usize = 512;
/// The maximum number of characters of a command in an error or log line.
const NAME_CHARACTERS: usize = 256;

/// An exec plugin, validated as far as possible without running it.
#[derive(Clone)]
pub(crate) struct ExecPlugin {
    command: String,
    /// The command in a printable form, for errors and logs.
    pub(super) name: String,
    pub(super) arguments: Vec<SecretString>,
    pub(super) variables: Vec<(String, SecretString)>,
    pub(super) api_version: String,
    pub(super) install_hint: Option<String>,
    pub(super) cluster: Option<ExecAuthCluster>,
    search_path: Option<OsString>,
}

impl ExecPlugin {
    /// Reads the `exec` section of `user`. `cluster` is passed on to the plugin if the section sets
    /// `provideClusterInfo`.
    pub(crate) fn from_kubeconfig(
        user: &str,
        section: &ExecConfig,
        cluster: impl FnOnce() -> ExecAuthCluster,
        search_path: Option<OsString>,
    ) -> Result<Self, ExecError> {
        let command = section.command.clone().filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| ExecError::NoCommand { user: user.to_owned() })?;
        let name = Printable { text: &command, chars: NAME_CHARACTERS }.to_string();
        let api_version = section.api_version.clone().unwrap_or_default();
        if api_version != V1 && api_version != V1BETA1 {
            return Err(ExecError::UnsupportedVersion { command: name, api_version });
        }
        if section.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(ExecError::NeedsTerminal { command: name });
        }
        let variable = |entry: &std::collections::HashMap<String, String>| {
            Some((entry.get("name")?.clone(), SecretString::from(entry.get("value")?.clone())))
        };
        Ok(Self {
            command,
            name,
            arguments: section.args.iter().flatten().cloned().map(SecretString::from).collect(),
            variables: section.env.iter().flatten().filter_map(variable).collect(),
            api_version,
            install_hint: section.install_hint.as_deref().and_then(printable_hint),
            cluster: section.provide_cluster_info.then(cluster),
            search_path,
        })
    }

    /// Returns the absolute path of the program to run, if `policy` allows it.
    ///
    /// The path that was compared with the policy is the path that runs, so a later change of `PATH` has no effect.
    pub(crate) fn program(&self, policy: &ExecPolicy) -> Result<PathBuf, ExecError> {
        let command = || self.name.clone();
        if *policy == ExecPolicy::DenyAll {
            return Err(ExecError::Denied { command: command() });
        }
        let program = self.resolve(Path::new(&self.command)).ok_or_else(|| self.not_found())?;
        match policy {
            ExecPolicy::Allowlist(allowed)
                if !allowed.iter().any(|entry| self.resolve_entry(entry).as_ref() == Some(&program)) =>
            {
                let path = program.display().to_string();
                let path = Printable { text: &path, chars: NAME_CHARACTERS }.to_string();
                Err(ExecError::NotAllowlisted { command: command(), path })
            }
            _ => Ok(program),
        }
    }

    pub(super) fn not_found(&self) -> ExecError {
        ExecError::NotFound { command: self.name.clone(), install_hint: self.install_hint.clone() }
    }

    /// Returns the value of `KUBERNETES_EXEC_INFO`.
    pub(super) fn exec_info(&self) -> String {
        let mut spec = json!({ "interactive": false });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = json!(cluster);
        }
        json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec }).to_string()
    }

    /// Resolves an entry of the allow-list. A relative path matches nothing, because it would depend on the
    /// current directory.
    fn resolve_entry(&self, entry: &Path) -> Option<PathBuf> {
        if is_bare(entry) || entry.is_absolute() { self.resolve(entry) } else { None }
    }

    /// Returns the absolute path of an executable file, searched for in `PATH` if `program` is a bare name.
    fn resolve(&self, program: &Path) -> Option<PathBuf> {
        if is_bare(program) {
            std::env::split_paths(self.search_path.as_ref()?)
                // An empty or relative entry refers to the current directory, whose content may have been
                // downloaded.
                .filter(|directory| directory.is_absolute())
                .map(|directory| directory.join(program))
                .find(|candidate| is_executable(candidate))
        } else {
            std::path::absolute(program).ok().filter(|candidate| candidate.is_file())
        }
    }
}

/// Returns whether `program` is looked up in `PATH`, as in a shell: a name without a directory.
fn is_bare(program: &Path) -> bool {
    program.file_name() == Some(program.as_os_str())
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

impl fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecPlugin")
            .field("command", &self.name)
            .field("api_version", &self.api_version)
            .finish_non_exhaustive()
    }
}

fn printable_hint(text: &str) -> Option<String> {
    Some(Printable { text, chars: HINT_CHARACTERS }.to_string()).filter(|hint| !hint.is_empty())
}
