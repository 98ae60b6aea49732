//! The environment that a configuration depends on, as a value.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

/// The environment variables that determine the origin of a configuration and the path to a server. No other
/// variables are kept.
const VARIABLES: [&str; 10] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "NO_PROXY",
    "PATH",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

const SERVICE_ACCOUNT_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The environment in which a configuration is loaded: a few environment variables, the home directory, the
/// directory of a pod's service account, and the name of the program.
///
/// Programs use [`Environment::of_process`]; tests build their own and never depend on the process.
#[derive(Clone)]
#[non_exhaustive]
#[doc(alias = "RecommendedConfigPathFlag")]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    home: Option<PathBuf>,
    service_account: PathBuf,
    program: Option<String>,
}

impl Environment {
    /// Creates an empty environment.
    pub fn empty() -> Self {
        Self {
            variables: BTreeMap::new(),
            home: None,
            service_account: PathBuf::from(SERVICE_ACCOUNT_DIRECTORY),
            program: None,
        }
    }

    /// Returns the current environment of this process.
    pub fn of_process() -> Self {
        let variables = VARIABLES
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
            .collect();
        let program = std::env::args_os().next().and_then(|argument| {
            let name = Path::new(&argument).file_name()?;
            Some(name.to_string_lossy().into_owned())
        });
        Self { variables, home: std::env::home_dir(), program, ..Self::empty() }
    }

    /// Sets a variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the home directory.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the directory of a pod's service account files.
    #[must_use]
    pub fn with_service_account_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.service_account = directory.into();
        self
    }

    /// Sets the program name, the last word of the default `User-Agent`.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<String>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Returns a variable if it is set and not empty; Kubernetes tools treat empty as unset.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(crate) fn service_account(&self) -> &Path {
        &self.service_account
    }

    pub(crate) fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }
}

impl fmt::Debug for Environment {
    /// Formats the names of variables only, because a proxy URL may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("home", &self.home)
            .field("service_account", &self.service_account)
            .field("program", &self.program)
            .finish()
    }
}
