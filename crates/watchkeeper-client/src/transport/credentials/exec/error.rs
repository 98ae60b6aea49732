//! Failures of exec credential plugins.

use std::{io::ErrorKind, time::Duration};

/// A failure to obtain a credential from an exec plugin.
///
/// Messages name the program and never contain its arguments, environment or output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The policy denies every plugin.
    #[error(
        "exec plugin {command}: not allowed to run, the policy for credential plugins is DenyAll; if the kubeconfig is trusted, allow it with --credential-plugin-policy or ClientConfig::exec_policy"
    )]
    Denied {
        /// The command of the plugin.
        command: String,
    },
    /// The allow-list does not contain the program.
    #[error(
        "exec plugin {command}: not allowed to run, {path} is not on the allow-list for credential plugins; if the program is trusted, add it with --credential-plugin-allowlist or ExecPolicy::Allowlist"
    )]
    NotAllowlisted {
        /// The command in the kubeconfig.
        command: String,
        /// The path that the command resolves to.
        path: String,
    },
    /// The kubeconfig names no program.
    #[error("exec plugin of user {user:?}: the kubeconfig names no command")]
    NoCommand {
        /// The user entry.
        user: String,
    },
    /// The version of the plugin protocol is not supported.
    #[error(
        "exec plugin {command}: apiVersion {api_version:?} is not supported; use client.authentication.k8s.io/v1 or v1beta1"
    )]
    UnsupportedVersion {
        /// The command of the plugin.
        command: String,
        /// The `apiVersion` in the kubeconfig.
        api_version: String,
    },
    /// The plugin requires a terminal.
    #[error(
        "exec plugin {command}: interactiveMode is Always, and plugins run without a terminal here; use a non-interactive login"
    )]
    NeedsTerminal {
        /// The command of the plugin.
        command: String,
    },
    /// The program does not exist, or `PATH` does not lead to it.
    #[error("exec plugin {command}: not found; install it or correct the command{}", hint(install_hint.as_deref()))]
    NotFound {
        /// The command of the plugin.
        command: String,
        /// The `installHint` of the kubeconfig, in printable form.
        install_hint: Option<String>,
    },
    /// The program could not be started or waited for.
    #[error("exec plugin {command}: cannot be run ({kind})")]
    NotStarted {
        /// The command of the plugin.
        command: String,
        /// The kind of the operating system's error.
        kind: ErrorKind,
    },
    /// The program did not finish in time and was killed.
    #[error("exec plugin {command}: still running after {}s and was killed; run it by hand to see what it waits for", after.as_secs_f32())]
    TimedOut {
        /// The command of the plugin.
        command: String,
        /// The time limit.
        after: Duration,
    },
    /// The program exited with a failure.
    #[error(
        "exec plugin {command}: failed ({status}); run it by hand to see its message, which is not repeated here because it may contain secrets"
    )]
    Failed {
        /// The command of the plugin.
        command: String,
        /// The exit status of the plugin.
        status: String,
    },
    /// The output of the program is larger than any credential.
    #[error("exec plugin {command}: printed more than {limit_bytes} bytes, which no credential is")]
    TooMuchOutput {
        /// The command of the plugin.
        command: String,
        /// The size limit of the output, in bytes.
        limit_bytes: usize,
    },
    /// The output of the program is not a credential.
    #[error(
        "exec plugin {command}: {problem}; it must print an ExecCredential object of the apiVersion the kubeconfig names"
    )]
    BadOutput {
        /// The command of the plugin.
        command: String,
        /// The problem with the output.
        problem: &'static str,
    },
}

fn hint(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(". Install hint of the kubeconfig: {text}"))
}
