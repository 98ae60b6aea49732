//! What a kubeconfig says about an exec plugin.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use kube_client::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use secrecy::SecretString;
use serde_json::json;

use super::{ExecError, ExecPolicy};

pub(super) const V1: &str = "client.authentication.k8s.io/v1";
const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// Longer hints are cut: the text comes from a file and ends up in logs.
const HINT_CHARACTERS: usize = 512;

/// An exec plugin, checked as far as it can be without running it.
#[derive(Clone)]
pub(crate) struct ExecPlugin {
    pub(super) command: String,
    pub(super) arguments: Vec<SecretString>,
    pub(super) variables: Vec<(String, SecretString)>,
    pub(super) api_version: String,
    pub(super) install_hint: Option<String>,
    pub(super) cluster: Option<ExecAuthCluster>,
    search_path: Option<OsString>,
}

impl ExecPlugin {
    /// Reads the `exec` section of `user`. `cluster` is passed on to the plugin if the section asks for it.
    pub(crate) fn from_kubeconfig(
        user: &str,
        section: &ExecConfig,
        cluster: impl FnOnce() -> ExecAuthCluster,
        search_path: Option<OsString>,
    ) -> Result<Self, ExecError> {
        let command = section.command.clone().filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| ExecError::NoCommand { user: user.to_owned() })?;
        let api_version = section.api_version.clone().unwrap_or_default();
        if api_version != V1 && api_version != V1BETA1 {
            return Err(ExecError::UnsupportedVersion { command, api_version });
        }
        if section.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(ExecError::NeedsTerminal { command });
        }
        let variable = |entry: &std::collections::HashMap<String, String>| {
            Some((entry.get("name")?.clone(), SecretString::from(entry.get("value")?.clone())))
        };
        Ok(Self {
            command,
            arguments: section.args.iter().flatten().cloned().map(SecretString::from).collect(),
            variables: section.env.iter().flatten().filter_map(variable).collect(),
            api_version,
            install_hint: section.install_hint.as_deref().map(one_line),
            cluster: section.provide_cluster_info.then(cluster),
            search_path,
        })
    }

    /// The program to run, if `policy` allows it.
    ///
    /// What is compared with the policy is what is run: a path, never a name that could lead elsewhere later.
    pub(crate) fn program(&self, policy: &ExecPolicy) -> Result<PathBuf, ExecError> {
        let denied = || ExecError::Denied { command: self.command.clone() };
        if *policy == ExecPolicy::Deny {
            return Err(denied());
        }
        let program = self.resolve(Path::new(&self.command)).ok_or_else(|| ExecError::NotFound {
            command: self.command.clone(),
            install_hint: self.install_hint.clone(),
        })?;
        match policy {
            ExecPolicy::AllowList(allowed)
                if !allowed.iter().any(|entry| self.resolve(entry).as_ref() == Some(&program)) =>
            {
                Err(denied())
            }
            _ => Ok(program),
        }
    }

    /// The value of `KUBERNETES_EXEC_INFO`.
    pub(super) fn exec_info(&self) -> String {
        let mut spec = json!({ "interactive": false });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = json!(cluster);
        }
        json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec }).to_string()
    }

    /// An absolute path, through `PATH` if `program` is a bare name.
    fn resolve(&self, program: &Path) -> Option<PathBuf> {
        let is_bare = program.components().count() == 1 && !program.is_absolute();
        let candidate = if is_bare {
            std::env::split_paths(self.search_path.as_ref()?)
                // An empty or relative entry means "wherever this process happens to be", which is how a
                // program in a downloaded directory gets run by accident.
                .filter(|directory| directory.is_absolute())
                .map(|directory| directory.join(program))
                .find(|candidate| candidate.is_file())?
        } else {
            std::path::absolute(program).ok()?
        };
        candidate.is_file().then_some(candidate)
    }
}

impl fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecPlugin")
            .field("command", &self.command)
            .field("api_version", &self.api_version)
            .finish_non_exhaustive()
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(HINT_CHARACTERS).collect()
}
