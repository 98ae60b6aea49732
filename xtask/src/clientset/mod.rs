//! The table of built-in resources, generated from the sources of k8s-openapi.
//!
//! `sources` locates the crate and parses the types in its files, `model` merges the facts of all Kubernetes versions into
//! ranges, `render` writes the table.

mod model;
mod render;
mod sources;

use std::{fs, io, path::PathBuf};

use sources::Sources;

/// The reason why the table could not be generated, or is outdated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("`cargo metadata`: {0}")]
    Metadata(String),
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("writing {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("parsing {path}: {source}")]
    Parse { path: PathBuf, source: syn::Error },
    #[error("{path}: the Resource impl of {kind} has no {what} that can be parsed")]
    Incomplete { path: PathBuf, kind: String, what: &'static str },
    #[error(
        "{group}/{kind} is a new subresource; give it a method on its parent in the \
         clientset, then add it to ON_PARENT in {file}",
        file = file!()
    )]
    UnplacedSubresource { group: String, kind: String },
    #[error("{path} is outdated; run `cargo xtask clientset` and commit the result")]
    Differs { path: PathBuf },
}

/// The types that are requests about another object, by group and kind. They have no accessor, but methods on the parent
/// (`pods.evict`, `pods.bind`, `service_accounts.create_token`) or on every resource (`scale`). `Status` is the response to
/// failed requests.
const ON_PARENT: [(&str, &str); 5] = [
    ("", "Binding"),
    ("", "Status"),
    ("authentication.k8s.io", "TokenRequest"),
    ("autoscaling", "Scale"),
    ("policy", "Eviction"),
];

/// Writes the table to the file that the clientset includes.
pub(crate) fn write() -> Result<String, Error> {
    let (path, text) = generate()?;
    fs::write(&path, text).map_err(|source| Error::Write { path: path.clone(), source })?;
    Ok(format!("wrote {}", path.display()))
}

/// Compares the committed table with the generated one.
pub(crate) fn check() -> Result<String, Error> {
    let (path, text) = generate()?;
    let committed = fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    if committed == text {
        Ok(format!("{} is up to date", path.display()))
    } else {
        Err(Error::Differs { path })
    }
}

fn generate() -> Result<(PathBuf, String), Error> {
    let sources = Sources::locate()?;
    let mut model = model::Model::new(&sources.minors);
    for &minor in &sources.minors {
        for resource in sources.resources(minor)? {
            if ON_PARENT.contains(&(resource.group.as_str(), resource.kind.as_str())) {
                continue;
            }
            model.add(minor, resource)?;
        }
    }
    let path = sources.workspace_root.join("crates/watchkeeper-client/src/clientset/generated.rs");
    Ok((path, render::render(&model, &sources.crate_version)))
}
