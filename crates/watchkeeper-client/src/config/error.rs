//! Why a configuration could not be used.

use std::{io::ErrorKind, path::PathBuf};

use crate::transport::{CredentialError, ExecError, HeaderError, ProxyError, TransportError};

/// Why a configuration could not be loaded, or no client made from it.
///
/// Says which file or entry and what to do about it, never what a secret is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no kubeconfig and this is not a pod.
    #[error("no cluster configuration: KUBECONFIG is not set, {} does not exist, and {in_cluster}; set KUBECONFIG or pass a path", home.display())]
    NothingFound {
        /// The kubeconfig that would have been used.
        home: PathBuf,
        /// Why the configuration of a pod could not be used.
        in_cluster: Box<ConfigError>,
    },
    /// This is not a pod.
    #[error("not in a pod ({variable} is not set)")]
    NotInCluster {
        /// The variable that a pod would have.
        variable: &'static str,
    },
    /// A kubeconfig named by the caller does not exist.
    #[error("kubeconfig {}: no such file; check the path", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// None of the files that `KUBECONFIG` lists exists.
    #[error("KUBECONFIG: none of its files exists ({}); correct or unset it", list(paths))]
    AllMissing {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// A kubeconfig could not be read.
    #[error("kubeconfig {}: cannot be read ({kind}); check its permissions", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        kind: ErrorKind,
    },
    /// A kubeconfig is larger than one can be.
    #[error("kubeconfig {origin}: larger than {limit_bytes} bytes; check the path")]
    TooLarge {
        /// The file.
        origin: String,
        /// The bound.
        limit_bytes: usize,
    },
    /// A kubeconfig has nothing in it.
    #[error("kubeconfig {origin}: empty; write one with kubectl config, or remove it")]
    Empty {
        /// The file.
        origin: String,
    },
    /// A kubeconfig is not text.
    #[error("kubeconfig {origin}: neither UTF-8 nor UTF-16 text; check the path")]
    NotText {
        /// The file.
        origin: String,
    },
    /// A kubeconfig is not YAML, or not in the form of a kubeconfig.
    #[error(
        "kubeconfig {origin}: not a kubeconfig in YAML (line {line}, column {column}); the text is not repeated here because it may hold secrets"
    )]
    Malformed {
        /// The file.
        origin: String,
        /// Where reading stopped.
        line: u64,
        /// Where reading stopped.
        column: u64,
    },
    /// A kubeconfig unfolds to more than one can be.
    #[error(
        "kubeconfig {origin}: nested too deeply, or grows too large through aliases (line {line}, column {column}); refused as a likely attack"
    )]
    YamlBomb {
        /// The file.
        origin: String,
        /// Where the bound was passed.
        line: u64,
        /// Where the bound was passed.
        column: u64,
    },
    /// A file is something else than a kubeconfig.
    #[error("kubeconfig {origin}: {field} is {found:?}, expected {expected:?}; check the path")]
    WrongKind {
        /// The file.
        origin: String,
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// What it says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// Two entries of one file have the same name.
    #[error("kubeconfig {origin}: two entries of {section} are named {name:?}; rename or remove one")]
    DuplicateName {
        /// The file.
        origin: String,
        /// `clusters`, `users` or `contexts`.
        section: &'static str,
        /// The name.
        name: String,
    },
    /// A relative path next to a kubeconfig whose own path is not Unicode.
    #[error("kubeconfig {}: relative paths in it cannot be resolved because its directory is not Unicode; use absolute paths", path.display())]
    PathNotUnicode {
        /// The file.
        path: PathBuf,
    },
    /// No context was chosen.
    #[error("kubeconfig {origin}: no current-context; name one of: {}", names(known))]
    NoCurrentContext {
        /// The file or files.
        origin: String,
        /// The contexts there are.
        known: Vec<String>,
    },
    /// The chosen context is not there.
    #[error("kubeconfig {origin}: no context {name:?}; there are: {}", names(known))]
    UnknownContext {
        /// The file or files.
        origin: String,
        /// The context asked for.
        name: String,
        /// The contexts there are.
        known: Vec<String>,
    },
    /// A context names a cluster that is not there.
    #[error(
        "kubeconfig {origin}: context {context:?} names cluster {name:?}, which has no entry under clusters; there are: {}",
        names(known)
    )]
    UnknownCluster {
        /// The file or files.
        origin: String,
        /// The context.
        context: String,
        /// The cluster it names.
        name: String,
        /// The clusters there are.
        known: Vec<String>,
    },
    /// A context names a user that is not there.
    #[error(
        "kubeconfig {origin}: context {context:?} names user {name:?}, which has no entry under users; there are: {}",
        names(known)
    )]
    UnknownUser {
        /// The file or files.
        origin: String,
        /// The context.
        context: String,
        /// The user it names.
        name: String,
        /// The users there are.
        known: Vec<String>,
    },
    /// The address of the API server cannot be used.
    #[error("server of {origin}: {problem}; expected something like https://host:6443")]
    BadServer {
        /// The cluster entry, or what else named it.
        origin: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A `-data` field is not base64.
    #[error(
        "{origin}: not base64; a -data field holds the base64 of a PEM file, a path goes into the field without -data"
    )]
    BadBase64 {
        /// The field and its entry.
        origin: String,
    },
    /// The name to look for in the server's certificate is not one.
    #[error("tls-server-name {name:?}: not a host name or an address (or TLS is not compiled in)")]
    BadServerName {
        /// The name.
        name: String,
    },
    /// A certificate authority together with a flag that ignores it.
    #[error(
        "cluster {cluster:?}: insecure-skip-tls-verify and a certificate authority exclude each other; remove the flag"
    )]
    InsecureWithAuthority {
        /// The cluster entry.
        cluster: String,
    },
    /// A password and a token at once.
    #[error("user {user:?}: has both a password and a token; remove one")]
    ConflictingCredentials {
        /// The user entry.
        user: String,
    },
    /// Half of a client certificate.
    #[error(
        "user {user:?}: a client certificate needs both a certificate and a key; one of the two is missing"
    )]
    HalfIdentity {
        /// The user entry.
        user: String,
    },
    /// A way of logging in that Kubernetes has replaced with exec plugins.
    #[error(
        "user {user:?}: auth-provider {provider:?} is not supported; use the exec plugin that replaces it"
    )]
    AuthProviderUnsupported {
        /// The user entry.
        user: String,
        /// The provider.
        provider: String,
    },
    /// An untrusted kubeconfig asks for something only a trusted one may.
    #[error(
        "untrusted kubeconfig: {entry} uses {field}, which only a trusted one may; only data fields are accepted"
    )]
    NotTrusted {
        /// The cluster or user entry.
        entry: String,
        /// The field.
        field: &'static str,
    },
    /// The proxy cannot be used.
    #[error("proxy of {origin}: {source}")]
    BadProxy {
        /// The cluster entry or the variable that names it.
        origin: String,
        /// What is wrong with it.
        #[source]
        source: ProxyError,
    },
    /// An impersonated name, or the user agent, cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A token, certificate or key cannot be used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// TLS cannot be set up with it.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// HTTP/2 is asked for and not part of this build.
    #[error("HTTP/2 is not compiled in; turn on the feature `http2` of watchkeeper-client")]
    Http2NotCompiledIn,
    /// A client is made outside a tokio runtime.
    #[error("a client needs a tokio runtime: make it inside one, for example under #[tokio::main]")]
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
