//! Where a configuration comes from.

use std::{fmt, path::PathBuf};

use super::{ClientConfig, ConfigError, Environment, Kubeconfig, in_cluster, select};

/// Finds, reads and narrows down a configuration: which file, which context, in which surroundings.
///
/// Without a choice of source, in this order: the files of `KUBECONFIG` if it is set, `~/.kube/config` if it
/// exists, the service account of a pod. A source that is there and broken is an error, never skipped for the
/// next: a program must not talk to another cluster than the one its user meant.
#[derive(Clone)]
#[must_use]
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

/// What to take from a kubeconfig instead of what it says itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    pub(super) context: Option<String>,
    pub(super) cluster: Option<String>,
    pub(super) user: Option<String>,
}

impl Loader {
    /// Looks in the usual places, in the surroundings of this process.
    pub fn new() -> Self {
        Self { source: Source::Search, environment: Environment::of_process(), choice: Choice::default() }
    }

    /// Reads this file and no other. It must exist.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Source::File(path.into());
        self
    }

    /// Takes this kubeconfig.
    pub fn kubeconfig(mut self, kubeconfig: Kubeconfig) -> Self {
        self.source = Source::Given(Box::new(kubeconfig));
        self
    }

    /// Takes the service account of the pod this runs in.
    pub fn in_cluster(mut self) -> Self {
        self.source = Source::Pod;
        self
    }

    /// Other surroundings than those of the process.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// A context other than the current one.
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.choice.context = Some(name.into());
        self
    }

    /// A cluster other than the context's.
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.choice.cluster = Some(name.into());
        self
    }

    /// A user other than the context's.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.choice.user = Some(name.into());
        self
    }

    /// The kubeconfig, merged, to list its contexts for example. `None` if the configuration is that of a pod.
    ///
    /// # Errors
    /// If it cannot be read, or if there is none.
    pub fn read(&self) -> Result<Option<Kubeconfig>, ConfigError> {
        match &self.source {
            Source::File(path) => Kubeconfig::from_file(path).map(Some),
            Source::Given(kubeconfig) => Ok(Some((**kubeconfig).clone())),
            Source::Pod => Ok(None),
            Source::Search => self.search(),
        }
    }

    /// The configuration of a client. Files are read on this thread, once.
    ///
    /// # Errors
    /// If there is none, or if it cannot be used.
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
