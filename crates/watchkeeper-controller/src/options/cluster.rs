//! Command-line flags that select a cluster.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use watchkeeper_client::{
    config::{ClientConfig, Loader},
    transport::ExecPolicy,
};

use super::ArgsError;

/// Command-line flags that select a cluster and decide which credential plugins of its kubeconfig may run.
///
/// Part of [`ManagerArgs`](super::ManagerArgs); programs without a manager flatten this type into their own arguments.
///
/// ```
/// use clap::Parser;
/// use watchkeeper_controller::options::ClusterArgs;
///
/// #[derive(Parser)]
/// struct Args {
///     #[command(flatten)]
///     cluster: ClusterArgs,
/// }
///
/// let args = Args::parse_from(["report", "--credential-plugin-policy=Allowlist", "--credential-plugin-allowlist=aws"]);
/// assert_eq!(args.cluster.exec_policy()?.to_string(), "Allowlist");
/// # Ok::<(), watchkeeper_controller::options::ArgsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
// Without this, clap takes the documentation above for the description of the whole program.
#[command(about = None, long_about = None)]
#[non_exhaustive]
#[doc(alias = "BindOverrideFlags")]
#[doc(alias = "RegisterFlags")]
pub struct ClusterArgs {
    /// Read this kubeconfig, instead of KUBECONFIG, ~/.kube/config or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Use this context of the kubeconfig, instead of its current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Allow or deny the exec credential plugins of the kubeconfig
    #[arg(
        long,
        value_name = "POLICY",
        ignore_case = true,
        default_value = "AllowAll",
        env = "WATCHKEEPER_CREDENTIAL_PLUGIN_POLICY"
    )]
    pub credential_plugin_policy: CredentialPluginPolicy,

    /// Allow these plugins under the policy Allowlist: names to find in PATH or absolute paths, separated by commas
    #[arg(
        long,
        value_name = "PROGRAMS",
        value_delimiter = ',',
        value_parser = allowlist_entry,
        env = "WATCHKEEPER_CREDENTIAL_PLUGIN_ALLOWLIST"
    )]
    pub credential_plugin_allowlist: Vec<PathBuf>,
}

/// The policy for exec credential plugins, by the names that kubectl's kuberc file uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[non_exhaustive]
pub enum CredentialPluginPolicy {
    /// Every plugin may run.
    #[default]
    #[value(name = "AllowAll")]
    AllowAll,
    /// Plugins are denied.
    #[value(name = "DenyAll")]
    DenyAll,
    /// Only the plugins of --credential-plugin-allowlist may run.
    #[value(name = "Allowlist")]
    Allowlist,
}

impl ClusterArgs {
    /// Loads the configuration of the cluster. The flags take precedence over the environment and the default
    /// files.
    ///
    /// # Errors
    /// Returns an [`ArgsError`] if no configuration exists, if it cannot be used, or if the flags contradict
    /// each other.
    pub fn client_config(&self) -> Result<ClientConfig, ArgsError> {
        let policy = self.exec_policy()?;
        let mut loader = Loader::new();
        if let Some(file) = &self.kubeconfig {
            loader = loader.file(file);
        }
        if let Some(context) = &self.context {
            loader = loader.context(context);
        }
        Ok(loader.load()?.exec_policy(policy))
    }

    /// Returns the policy for exec credential plugins.
    ///
    /// # Errors
    /// Returns an [`ArgsError`] for an allow-list without the policy Allowlist, and for the policy without an
    /// allow-list. As in kubectl, neither is ignored, because one of the two is a mistake.
    pub fn exec_policy(&self) -> Result<ExecPolicy, ArgsError> {
        let allowlist = &self.credential_plugin_allowlist;
        match self.credential_plugin_policy {
            CredentialPluginPolicy::Allowlist if allowlist.is_empty() => Err(ArgsError::NoAllowlist),
            CredentialPluginPolicy::Allowlist => Ok(ExecPolicy::Allowlist(allowlist.clone())),
            _ if !allowlist.is_empty() => Err(ArgsError::UnusedAllowlist),
            CredentialPluginPolicy::AllowAll => Ok(ExecPolicy::AllowAll),
            CredentialPluginPolicy::DenyAll => Ok(ExecPolicy::DenyAll),
        }
    }
}

/// Parses an allow-list entry: a name without a slash, or an absolute path.
fn allowlist_entry(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    let is_name = path.file_name() == Some(path.as_os_str());
    if is_name || path.is_absolute() {
        Ok(path.to_owned())
    } else {
        Err(format!("{text:?} is neither a program name without a slash nor an absolute path"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        cluster: ClusterArgs,
    }

    fn parse(flags: &[&str]) -> Result<ClusterArgs, clap::Error> {
        Program::try_parse_from(std::iter::once("program").chain(flags.iter().copied())).map(|it| it.cluster)
    }

    fn policy(flags: &[&str]) -> Result<ExecPolicy, ArgsError> {
        parse(flags).unwrap().exec_policy()
    }

    #[test]
    fn credential_plugins_are_allowed_unless_a_flag_restricts_them() {
        let list = |entries: &[&str]| ExecPolicy::Allowlist(entries.iter().map(PathBuf::from).collect());
        for (flags, expected) in [
            (&[][..], ExecPolicy::AllowAll),
            (&["--credential-plugin-policy=AllowAll"], ExecPolicy::AllowAll),
            (&["--credential-plugin-policy=DenyAll"], ExecPolicy::DenyAll),
            (&["--credential-plugin-policy=denyall"], ExecPolicy::DenyAll),
            (
                &[
                    "--credential-plugin-policy=Allowlist",
                    "--credential-plugin-allowlist=aws,/opt/bin/kubelogin",
                ],
                list(&["aws", "/opt/bin/kubelogin"]),
            ),
        ] {
            assert_eq!(policy(flags).unwrap(), expected, "{flags:?}");
        }
    }

    #[test]
    fn an_allow_list_and_the_allowlist_policy_require_each_other() {
        assert!(matches!(policy(&["--credential-plugin-policy=Allowlist"]), Err(ArgsError::NoAllowlist)));
        for flags in [
            &["--credential-plugin-allowlist=aws"][..],
            &["--credential-plugin-allowlist=aws", "--credential-plugin-policy=DenyAll"],
        ] {
            assert!(matches!(policy(flags), Err(ArgsError::UnusedAllowlist)), "{flags:?}");
        }
    }

    #[test]
    fn an_entry_that_depends_on_the_current_directory_is_rejected() {
        for entry in ["", "./aws", "bin/aws", "..", "aws,", "aws/"] {
            let flag = format!("--credential-plugin-allowlist={entry}");
            assert!(parse(&[&flag]).is_err(), "{entry:?}");
        }
    }

    #[test]
    fn a_kubeconfig_that_is_named_must_exist() {
        let args = parse(&["--kubeconfig=/nowhere/at/all"]).unwrap();
        let missing = args.client_config();
        assert!(matches!(
            missing,
            Err(ArgsError::Config(watchkeeper_client::config::ConfigError::Missing { .. }))
        ));
    }
}
