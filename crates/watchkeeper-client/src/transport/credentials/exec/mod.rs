//! Exec credential plugins: programs that print a credential.
//!
//! A kubeconfig can name any program, which then runs with the permissions of this process. Kubeconfigs that the user
//! names, and the default ones, are trusted with that, as kubectl trusts them; an [`ExecPolicy`] restricts which
//! programs run. The arguments, environment and output of a plugin are secrets: no error, log line or `Debug`
//! representation contains them.

mod error;
mod output;
mod plugin;
mod policy;
mod runner;

pub use error::ExecError;
pub(crate) use plugin::ExecPlugin;
pub use policy::ExecPolicy;
pub(crate) use runner::ExecRunner;
