//! Why an exec plugin gave no credential.

use std::{io::ErrorKind, time::Duration};

/// Why an exec plugin gave no credential. Names the program, and nothing it was given or printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The policy does not allow the program.
    #[error(
        "exec plugin {command}: not allowed to run; if the kubeconfig is trusted, allow it with ClientConfig::exec_policy"
    )]
    Denied {
        /// The program.
        command: String,
    },
    /// The kubeconfig names no program.
    #[error("exec plugin of user {user:?}: the kubeconfig names no command")]
    NoCommand {
        /// The user entry.
        user: String,
    },
    /// The version of the protocol is not one we speak.
    #[error(
        "exec plugin {command}: apiVersion {api_version:?} is not supported; use client.authentication.k8s.io/v1 or v1beta1"
    )]
    UnsupportedVersion {
        /// The program.
        command: String,
        /// What the kubeconfig asks for.
        api_version: String,
    },
    /// The plugin insists on a terminal.
    #[error(
        "exec plugin {command}: interactiveMode is Always, and plugins run without a terminal here; use a non-interactive login"
    )]
    NeedsTerminal {
        /// The program.
        command: String,
    },
    /// The program is not there.
    #[error("exec plugin {command}: not found; install it or correct the command{}", hint(install_hint.as_deref()))]
    NotFound {
        /// The program.
        command: String,
        /// What the kubeconfig says about installing it.
        install_hint: Option<String>,
    },
    /// The program could not be started or waited for.
    #[error("exec plugin {command}: cannot be run ({kind})")]
    NotStarted {
        /// The program.
        command: String,
        /// What the operating system said.
        kind: ErrorKind,
    },
    /// The program did not finish in time and was killed.
    #[error("exec plugin {command}: still running after {}s and was killed; run it by hand to see what it waits for", after.as_secs_f32())]
    TimedOut {
        /// The program.
        command: String,
        /// The bound.
        after: Duration,
    },
    /// The program reported failure.
    #[error(
        "exec plugin {command}: failed ({status}); run it by hand to see its message, which is not repeated here because it may hold secrets"
    )]
    Failed {
        /// The program.
        command: String,
        /// Its exit status.
        status: String,
    },
    /// The program printed more than a credential can be.
    #[error("exec plugin {command}: printed more than {limit_bytes} bytes, which no credential is")]
    TooMuchOutput {
        /// The program.
        command: String,
        /// The bound.
        limit_bytes: usize,
    },
    /// What the program printed is not a credential.
    #[error(
        "exec plugin {command}: {problem}; it must print an ExecCredential object of the apiVersion the kubeconfig names"
    )]
    BadOutput {
        /// The program.
        command: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

fn hint(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(". The kubeconfig says: {text}"))
}
