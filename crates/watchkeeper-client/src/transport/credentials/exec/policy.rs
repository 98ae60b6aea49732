//! The policy for exec credential plugins.

use std::{fmt, path::PathBuf};

/// The policy for exec credential plugins: which programs a kubeconfig may run.
///
/// The model is the `credentialPluginPolicy` of kubectl 1.35. Set with
/// [`ClientConfig::exec_policy`](crate::config::ClientConfig::exec_policy). A kubeconfig read with
/// [`Kubeconfig::from_untrusted_text`](crate::config::Kubeconfig::from_untrusted_text) runs no plugin under any policy.
///
/// ```
/// use watchkeeper_client::transport::ExecPolicy;
///
/// let policy = ExecPolicy::Allowlist(vec!["aws".into(), "/usr/local/bin/kubelogin".into()]);
/// assert_eq!(policy.to_string(), "Allowlist");
/// assert_eq!(ExecPolicy::default(), ExecPolicy::AllowAll);
/// ```
#[doc(alias = "credentialPluginPolicy")]
#[doc(alias = "PluginPolicy")]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ExecPolicy {
    /// Every plugin that the kubeconfig names may run. The default.
    #[default]
    AllowAll,
    /// Plugins are denied. A configuration that needs one is rejected when the client is created.
    DenyAll,
    /// Only the listed programs may run. An entry without a slash is resolved through `PATH`; any other entry must be
    /// an absolute path. The plugin's command is resolved in the same way, and the two paths must be equal: an entry
    /// `aws` does not allow `/tmp/aws`. Symbolic links are not followed.
    Allowlist(Vec<PathBuf>),
}

impl fmt::Display for ExecPolicy {
    /// Writes the name of the policy, without the entries of the list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllowAll => "AllowAll",
            Self::DenyAll => "DenyAll",
            Self::Allowlist(_) => "Allowlist",
        })
    }
}
