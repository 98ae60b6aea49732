//! Exec plugins: programs that print a credential.
//!
//! A kubeconfig can name any program to be run with this process's rights, so none is run unless the caller
//! says so with an [`ExecPolicy`]. What a plugin is given (arguments, environment) and what it prints are
//! secrets: they appear in no error, log line or `Debug` form.

mod error;
mod output;
mod plugin;
mod runner;

pub use error::ExecError;
pub(crate) use plugin::ExecPlugin;
pub(crate) use runner::ExecRunner;

use std::path::PathBuf;

/// Which exec plugins a configuration may run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ExecPolicy {
    /// None: a configuration that needs one is refused when the client is made.
    #[default]
    Deny,
    /// Whatever the kubeconfig names. For kubeconfigs that are the user's own, as kubectl treats them.
    Allow,
    /// Only these programs. A bare name stands for the program that `PATH` leads to; a plugin is compared, and
    /// run, by the path it resolves to.
    AllowList(Vec<PathBuf>),
}
