//! Loading of a configuration.

use std::{fmt, path::PathBuf};

use super::{ClientConfig, ConfigError, Environment, Kubeconfig, in_cluster, select};

/// A loader of a configuration, with the choice of file, context and environment.
///
/// Without an explicit source, the order is: the files of `KUBECONFIG` if it is set, `~/.kube/config` if it
/// exists, the service account of a pod. A source that exists but is broken is an error and is never skipped,
/// because a program must not connect to a different cluster than its user intended.
#[doc(alias = "ClientConfigLoadingRules")]
#[derive(Clone)]
#[must_use]
#[doc(alias = "merge")]
pub struct Loader {
    source: Source,
    environment: Environment,
    pub(super) choice: Choice,
}

#[derive(Clone)]
enum Source {
    Search,
    File(PathBuf),
    Given(Box<Kubeconfig>),
    Pod,
}

/// Overrides of the kubeconfig's own values.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    pub(super) context: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) user: Option<String>,
}

impl Loader {
    /// Creates a loader that searches the default locations, in the environment of this process.
    pub fn new() -> Self {
        Self { source: Source::Search, environment: Environment::of_process(), choice: Choice::default() }
    }

    /// Loads this file only. It must exist.
    #[doc(alias = "ExplicitPath")]
    #[doc(alias = "from_kubeconfig")]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Source::File(path.into());
        self
    }

    /// Loads this kubeconfig.
    pub fn kubeconfig(mut self, kubeconfig: Kubeconfig) -> Self {
        self.source = Source::Given(Box::new(kubeconfig));
        self
    }

    /// Loads the service account of the pod.
    pub fn in_cluster(mut self) -> Self {
        self.source = Source::Pod;
        self
    }

    /// Sets the environment. Defaults to that of the process.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Selects a context. Defaults to the current context.
    #[doc(alias = "ConfigOverrides")]
    #[doc(alias = "KubeConfigOptions")]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.choice.context = Some(name.into());
        self
    }

    /// Selects a cluster. Defaults to the cluster of the context.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.choice.cluster = Some(name.into());
        self
    }

    /// Selects a user. Defaults to the user of the context.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.choice.user = Some(name.into());
        self
    }

    /// Returns the merged kubeconfig, for example to list its contexts. Returns `None` if the configuration
    /// is that of a pod.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the kubeconfig cannot be read, or if no configuration exists.
    pub fn read(&self) -> Result<Option<Kubeconfig>, ConfigError> {
        match &self.source {
            Source::File(path) => Kubeconfig::from_file(path).map(Some),
            Source::Given(kubeconfig) => Ok(Some((**kubeconfig).clone())),
            Source::Pod => Ok(None),
            Source::Search => self.search(),
        }
    }

    /// Loads the configuration of a client. Files are read once, on the current thread.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if no configuration exists, or if it cannot be used.
    #[doc(alias = "BuildConfigFromFlags")]
    pub fn load(&self) -> Result<ClientConfig, ConfigError> {
        match self.read()? {
            Some(kubeconfig) => select::select(&kubeconfig, &self.choice, &self.environment),
            None => in_cluster::load(&self.environment),
        }
    }

    fn search(&self) -> Result<Option<Kubeconfig>, ConfigError> {
        if let Some(list) = self.environment.variable("KUBECONFIG") {
            let paths: Vec<_> =
                std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect();
            if !paths.is_empty() {
                return Kubeconfig::from_files(&paths).map(Some);
            }
        }
        let home = self.environment.home().map(|home| home.join(".kube").join("config"));
        match home.as_deref().map(Kubeconfig::from_file) {
            None | Some(Err(ConfigError::Missing { .. })) => {
                in_cluster::check(&self.environment).map_err(|error| ConfigError::NothingFound {
                    home: home.unwrap_or_else(|| "~/.kube/config".into()),
                    in_cluster: Box::new(error),
                })?;
                Ok(None)
            }
            Some(found) => found.map(Some),
        }
    }
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source: &dyn fmt::Debug = match &self.source {
            Source::Search => &"the usual places",
            Source::File(path) => path,
            Source::Given(kubeconfig) => kubeconfig,
            Source::Pod => &"the service account of the pod",
        };
        f.debug_struct("Loader").field("source", source).field("choice", &self.choice).finish_non_exhaustive()
    }
}
