//! Configuration errors.

use std::{io::ErrorKind, path::PathBuf};

use crate::transport::{CredentialError, ExecError, HeaderError, ProxyError, TransportError};

/// The reason that a configuration cannot be loaded, or that no client can be created from it.
///
/// The message names the file or entry and the remedy, and never contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "ConfirmUsable")]
#[doc(alias = "KubeconfigError")]
pub enum ConfigError {
    /// A configuration was not found: no kubeconfig exists, and the program does not run in a pod.
    #[error("no cluster configuration: KUBECONFIG is not set, {} does not exist, and {in_cluster}; set KUBECONFIG or pass a path", home.display())]
    NothingFound {
        /// The default path of the kubeconfig.
        home: PathBuf,
        /// The reason that the configuration of a pod cannot be used.
        in_cluster: Box<ConfigError>,
    },
    /// The program does not run in a pod.
    #[error("not in a pod ({variable} is not set)")]
    NotInCluster {
        /// The variable that would be set in a pod.
        variable: &'static str,
    },
    /// A kubeconfig named by the caller does not exist.
    #[error("kubeconfig {}: no such file; check the path", path.display())]
    Missing {
        /// The path of the file.
        path: PathBuf,
    },
    /// All files that `KUBECONFIG` lists are missing.
    #[error("KUBECONFIG: none of its files exists ({}); correct or unset it", list(paths))]
    AllMissing {
        /// The paths of the files.
        paths: Vec<PathBuf>,
    },
    /// A kubeconfig could not be read.
    #[error("kubeconfig {}: cannot be read ({kind}); check its permissions", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The kind of the operating system's error.
        kind: ErrorKind,
    },
    /// A kubeconfig exceeds the size limit.
    #[error("kubeconfig {origin}: larger than {limit_bytes} bytes; check the path")]
    TooLarge {
        /// The path or origin of the kubeconfig.
        origin: String,
        /// The size limit in bytes.
        limit_bytes: usize,
    },
    /// A kubeconfig is empty.
    #[error("kubeconfig {origin}: empty; write one with kubectl config, or remove it")]
    Empty {
        /// The path or origin of the kubeconfig.
        origin: String,
    },
    /// A kubeconfig is not text.
    #[error("kubeconfig {origin}: neither UTF-8 nor UTF-16 text; check the path")]
    NotText {
        /// The path or origin of the kubeconfig.
        origin: String,
    },
    /// A kubeconfig is not valid YAML, or does not have the structure of a kubeconfig.
    #[error(
        "kubeconfig {origin}: not a kubeconfig in YAML (line {line}, column {column}); the text is not repeated here because it may contain secrets"
    )]
    Malformed {
        /// The path or origin of the kubeconfig.
        origin: String,
        /// The line of the error.
        line: u64,
        /// The column of the error.
        column: u64,
    },
    /// A kubeconfig expands beyond the limits.
    #[error(
        "kubeconfig {origin}: nested too deeply, or grows too large through aliases (line {line}, column {column}); rejected as a likely attack"
    )]
    YamlBomb {
        /// The path or origin of the kubeconfig.
        origin: String,
        /// The line at which the limit was exceeded.
        line: u64,
        /// The column at which the limit was exceeded.
        column: u64,
    },
    /// A file is not a kubeconfig.
    #[error("kubeconfig {origin}: {field} is {found:?}, expected {expected:?}; check the path")]
    WrongKind {
        /// The path or origin of the file.
        origin: String,
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// The value that was found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// Two entries of one file have the same name.
    #[error("kubeconfig {origin}: two entries of {section} are named {name:?}; rename or remove one")]
    DuplicateName {
        /// The path or origin of the kubeconfig.
        origin: String,
        /// `clusters`, `users` or `contexts`.
        section: &'static str,
        /// The duplicate name.
        name: String,
    },
    /// A kubeconfig contains a relative path, but its own path is not Unicode.
    #[error("kubeconfig {}: relative paths in it cannot be resolved because its directory is not Unicode; use absolute paths", path.display())]
    PathNotUnicode {
        /// The path of the file.
        path: PathBuf,
    },
    /// A context was not selected, and the kubeconfig has no current context.
    #[error("kubeconfig {origin}: no current-context; name one of: {}", names(known))]
    NoCurrentContext {
        /// The file or files of the kubeconfig.
        origin: String,
        /// The available contexts.
        known: Vec<String>,
    },
    /// The selected context does not exist.
    #[error("kubeconfig {origin}: no context {name:?}; there are: {}", names(known))]
    UnknownContext {
        /// The file or files of the kubeconfig.
        origin: String,
        /// The selected context.
        name: String,
        /// The available contexts.
        known: Vec<String>,
    },
    /// A context refers to a cluster that does not exist.
    #[error(
        "kubeconfig {origin}: context {context:?} names cluster {name:?}, which has no entry under clusters; there are: {}",
        names(known)
    )]
    UnknownCluster {
        /// The file or files of the kubeconfig.
        origin: String,
        /// The name of the context.
        context: String,
        /// The missing cluster.
        name: String,
        /// The available clusters.
        known: Vec<String>,
    },
    /// A context refers to a user that does not exist.
    #[error(
        "kubeconfig {origin}: context {context:?} names user {name:?}, which has no entry under users; there are: {}",
        names(known)
    )]
    UnknownUser {
        /// The file or files of the kubeconfig.
        origin: String,
        /// The name of the context.
        context: String,
        /// The missing user.
        name: String,
        /// The available users.
        known: Vec<String>,
    },
    /// The address of the API server is invalid.
    #[error("server of {origin}: {problem}; expected something like https://host:6443")]
    BadServer {
        /// The cluster entry or another origin of the address.
        origin: String,
        /// The problem with the address.
        problem: &'static str,
    },
    /// A `-data` field is not base64.
    #[error(
        "{origin}: not base64; a -data field contains the base64 of a PEM file, a path belongs in the field without -data"
    )]
    BadBase64 {
        /// The field and its entry.
        origin: String,
    },
    /// The name to verify in the server's certificate is invalid.
    #[error("tls-server-name {name:?}: not a host name or an address (or TLS is not compiled in)")]
    BadServerName {
        /// The invalid name.
        name: String,
    },
    /// A certificate authority is combined with a flag that ignores it.
    #[error(
        "cluster {cluster:?}: insecure-skip-tls-verify and a certificate authority are mutually exclusive; remove the flag"
    )]
    InsecureWithAuthority {
        /// The cluster entry.
        cluster: String,
    },
    /// The user has both a password and a token.
    #[error("user {user:?}: has both a password and a token; remove one")]
    ConflictingCredentials {
        /// The user entry.
        user: String,
    },
    /// The user has a client certificate without a key, or a key without a certificate.
    #[error(
        "user {user:?}: a client certificate needs both a certificate and a key; one of the two is missing"
    )]
    HalfIdentity {
        /// The user entry.
        user: String,
    },
    /// The user has an authentication provider, which Kubernetes has replaced with exec plugins.
    #[error(
        "user {user:?}: auth-provider {provider:?} is not supported; use the exec plugin that replaces it"
    )]
    AuthProviderUnsupported {
        /// The user entry.
        user: String,
        /// The name of the provider.
        provider: String,
    },
    /// An untrusted kubeconfig uses a field that requires trust.
    #[error(
        "untrusted kubeconfig: {entry} uses {field}, which requires a trusted kubeconfig; only data fields are accepted"
    )]
    NotTrusted {
        /// The cluster or user entry.
        entry: String,
        /// The name of the field.
        field: &'static str,
    },
    /// The proxy cannot be used.
    #[error("proxy of {origin}: {source}")]
    BadProxy {
        /// The cluster entry or the variable that names the proxy.
        origin: String,
        /// The problem with the proxy.
        #[source]
        source: ProxyError,
    },
    /// An impersonated name, or the user agent, cannot be sent as a header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A token, certificate or key cannot be used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// TLS cannot be set up with this configuration.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// HTTP/2 is enabled, but this build does not include it.
    #[error("HTTP/2 is not compiled in; enable the feature `http2` of watchkeeper-client")]
    Http2NotCompiledIn,
    /// The client is created outside a tokio runtime.
    #[error("a client needs a tokio runtime: create it inside one, for example under #[tokio::main]")]
    NoRuntime,
}

impl From<ExecError> for ConfigError {
    fn from(error: ExecError) -> Self {
        Self::Credential(error.into())
    }
}

fn names(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
