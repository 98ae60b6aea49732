//! Kubeconfig files: reading, validation and merging.

use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use kube_client::config::{self, AuthInfo, Cluster};

use super::{
    ConfigError,
    yaml::{self, FILE_BYTES},
};

/// A kubeconfig, or several merged into one.
///
/// The rules are those of client-go. Of entries with the same name, the one of the first file is used as a
/// whole; of single values, the first that is set. Relative paths are relative to the file that contains
/// them. In addition, a file is rejected if it exceeds 4 MiB, is nested too deeply, grows too large through
/// aliases, or contains the same name twice in one section.
#[derive(Clone)]
pub struct Kubeconfig {
    pub(super) merged: config::Kubeconfig,
    pub(super) origin: String,
    pub(super) is_trusted: bool,
}

/// A context of a kubeconfig, as listed by [`Kubeconfig::contexts`] and `kubectl config get-contexts`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextInfo {
    /// The name of the context.
    pub name: String,
    /// The name of the cluster entry to which the context refers.
    pub cluster: String,
    /// The name of the user entry to which the context refers, or `None` for requests without credentials.
    pub user: Option<String>,
    /// The namespace of requests that specify none. `None` means `default`.
    pub namespace: Option<String>,
    /// Whether this is the `current-context` of the kubeconfig.
    pub is_current: bool,
}

impl Kubeconfig {
    /// Parses a kubeconfig. Relative paths are relative to the current directory.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the text is not a kubeconfig.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        Self::parse(text, "given as text")
    }

    /// Parses a kubeconfig from an untrusted origin, which must not be able to run programs or read files.
    ///
    /// An entry that uses `exec`, a path, a proxy, an auth-provider or `insecure-skip-tls-verify` is rejected
    /// when it is selected.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the text is not a kubeconfig.
    pub fn from_untrusted_text(text: &str) -> Result<Self, ConfigError> {
        Ok(Self { is_trusted: false, ..Self::parse(text, "given as text")? })
    }

    /// Reads one file.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if the file does not exist, cannot be read or is not a kubeconfig.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        Self::read(path)?.ok_or_else(|| ConfigError::Missing { path: path.to_owned() })
    }

    /// Reads the files of a `KUBECONFIG` list and merges them. Files that do not exist are skipped.
    pub(super) fn from_files(paths: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut merged: Option<Self> = None;
        let mut seen = BTreeSet::new();
        for path in paths.iter().filter(|path| seen.insert(*path)) {
            let Some(next) = Self::read(path)? else { continue };
            merged = Some(match merged {
                Some(first) => first.merged_with(next)?,
                None => next,
            });
        }
        merged.ok_or_else(|| ConfigError::AllMissing { paths: paths.to_vec() })
    }

    /// Returns the contexts, in the order of the files.
    pub fn contexts(&self) -> Vec<ContextInfo> {
        let current = self.merged.current_context.as_deref();
        let contexts = self.merged.contexts.iter().filter_map(|named| {
            let context = named.context.as_ref()?;
            Some(ContextInfo {
                name: named.name.clone(),
                cluster: context.cluster.clone(),
                user: context.user.clone().filter(|user| !user.is_empty()),
                namespace: context.namespace.clone().filter(|namespace| !namespace.is_empty()),
                is_current: current == Some(&*named.name),
            })
        });
        contexts.collect()
    }

    /// Reads a file. Returns `None` if it does not exist.
    fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let unreadable = |kind| ConfigError::Unreadable { path: path.to_owned(), kind };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.kind())),
        };
        let origin = path.display().to_string();
        let mut bytes = Vec::new();
        file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.kind()))?;
        let text = decode(bytes).ok_or_else(|| ConfigError::NotText { origin: origin.clone() })?;
        let mut kubeconfig = Self::parse(&text, &origin)?;
        kubeconfig.resolve_paths(path)?;
        Ok(Some(kubeconfig))
    }

    fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let origin = origin.to_owned();
        if text.len() > FILE_BYTES {
            return Err(ConfigError::TooLarge { origin, limit_bytes: FILE_BYTES });
        }
        let mut merged: Option<Self> = None;
        for mut document in yaml::parse::<config::Kubeconfig>(text, &origin)? {
            check(&document, &origin)?;
            forget_empty(&mut document);
            let next = Self { merged: document, origin: origin.clone(), is_trusted: true };
            merged = Some(match merged {
                Some(first) => Self { origin: origin.clone(), ..first.merged_with(next)? },
                None => next,
            });
        }
        merged.ok_or(ConfigError::Empty { origin })
    }

    fn merged_with(self, next: Self) -> Result<Self, ConfigError> {
        // kube's merge keeps the first entry of each name and the first of each value. It fails only for
        // different kinds and versions, which have been checked and cleared.
        let origin = format!("{}, {}", self.origin, next.origin);
        let merged = self.merged.merge(next.merged);
        let merged = merged.map_err(|_| ConfigError::WrongKind {
            origin: origin.clone(),
            field: "kind",
            found: "a mixture".to_owned(),
            expected: "Config",
        })?;
        Ok(Self { merged, origin, is_trusted: self.is_trusted && next.is_trusted })
    }

    /// Makes relative paths absolute, based on the directory of `file`.
    fn resolve_paths(&mut self, file: &Path) -> Result<(), ConfigError> {
        let not_unicode = || ConfigError::PathNotUnicode { path: file.to_owned() };
        let unreadable = |kind| ConfigError::Unreadable { path: file.to_owned(), kind };
        let file_path = std::path::absolute(file).map_err(|error| unreadable(error.kind()))?;
        let directory = file_path.parent().unwrap_or(Path::new("/"));
        let resolve = |path: &mut Option<String>| {
            if let Some(relative) = path.as_deref().filter(|path| Path::new(path).is_relative()) {
                *path = Some(directory.join(relative).to_str().ok_or_else(not_unicode)?.to_owned());
            }
            Ok::<(), ConfigError>(())
        };
        for cluster in self.merged.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            resolve(&mut cluster.certificate_authority)?;
        }
        for user in self.merged.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
            resolve(&mut user.client_certificate)?;
            resolve(&mut user.client_key)?;
            resolve(&mut user.token_file)?;
            // A bare name is looked up in PATH, as in a shell.
            if let Some(exec) = user.exec.as_mut()
                && exec.command.as_deref().is_some_and(|command| command.contains(std::path::is_separator))
            {
                resolve(&mut exec.command)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Kubeconfig {
    /// Formats names only, because entries contain tokens, keys and arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: Vec<&str>| names.join(", ");
        f.debug_struct("Kubeconfig")
            .field("origin", &self.origin)
            .field("is_trusted", &self.is_trusted)
            .field("current_context", &self.merged.current_context)
            .field("contexts", &names(self.merged.contexts.iter().map(|named| &*named.name).collect()))
            .field("clusters", &names(self.merged.clusters.iter().map(|named| &*named.name).collect()))
            .field("users", &names(self.merged.auth_infos.iter().map(|named| &*named.name).collect()))
            .finish_non_exhaustive()
    }
}

/// Decodes UTF-8 with or without a byte order mark, or UTF-16 with one, as written by some Windows editors.
fn decode(bytes: Vec<u8>) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| unit(*pair));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| rest.is_empty())
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => std::str::from_utf8(rest).ok().map(ToOwned::to_owned),
        _ => String::from_utf8(bytes).ok(),
    }
}

/// Performs the checks that client-go performs when it decodes a file.
fn check(document: &config::Kubeconfig, origin: &str) -> Result<(), ConfigError> {
    for (field, found, expected) in
        [("apiVersion", &document.api_version, "v1"), ("kind", &document.kind, "Config")]
    {
        if let Some(found) = found.as_ref().filter(|found| !found.is_empty() && *found != expected) {
            let (origin, found) = (origin.to_owned(), found.clone());
            return Err(ConfigError::WrongKind { origin, field, found, expected });
        }
    }
    let clusters = document.clusters.iter().map(|named| &named.name);
    let users = document.auth_infos.iter().map(|named| &named.name);
    let contexts = document.contexts.iter().map(|named| &named.name);
    no_name_twice("clusters", clusters, origin)?;
    no_name_twice("users", users, origin)?;
    no_name_twice("contexts", contexts, origin)
}

fn no_name_twice<'a>(
    section: &'static str,
    names: impl Iterator<Item = &'a String>,
    origin: &str,
) -> Result<(), ConfigError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(ConfigError::DuplicateName {
                origin: origin.to_owned(),
                section,
                name: name.clone(),
            });
        }
    }
    Ok(())
}

/// Replaces empty values by absent ones. An empty `current-context` must not hide the one of the next file,
/// an empty path must not become the directory of the file, and an empty bundle must not become an empty
/// trust store.
fn forget_empty(document: &mut config::Kubeconfig) {
    let text = |value: &mut Option<String>| {
        value.take_if(|value| value.is_empty());
    };
    text(&mut document.current_context);
    document.kind = None;
    document.api_version = None;
    for cluster in document.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        let Cluster {
            server,
            certificate_authority,
            certificate_authority_data,
            proxy_url,
            tls_server_name,
            ..
        } = cluster;
        for value in [server, certificate_authority, certificate_authority_data, proxy_url, tls_server_name] {
            text(value);
        }
    }
    for user in document.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        let AuthInfo {
            username,
            password,
            token,
            token_file,
            client_certificate,
            client_certificate_data,
            client_key,
            client_key_data,
            impersonate,
            impersonate_uid,
            ..
        } = user;
        for value in [
            username,
            token_file,
            client_certificate,
            client_certificate_data,
            client_key,
            impersonate,
            impersonate_uid,
        ] {
            text(value);
        }
        for secret in [password, token, client_key_data] {
            secret.take_if(|secret| secrecy::ExposeSecret::expose_secret(secret).is_empty());
        }
    }
    for context in document.contexts.iter_mut().filter_map(|named| named.context.as_mut()) {
        text(&mut context.user);
        text(&mut context.namespace);
    }
}
