//! The table of built-in types, generated from the sources of Kubernetes.
//!
//! `openapi` reads the types of the published documents, `go_types` the protobuf numbers in struct tags, `render` writes the
//! table. Only facts are used: names, types, numbers and markers; no text of the documents.

mod go_types;
mod openapi;
mod render;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// The reason why the table could not be generated, or is outdated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("writing {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("parsing {path}: {source}")]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("{dir} has no k8s.io/{module}@v*; run `go mod download k8s.io/{module}@VERSION`")]
    NoModule { dir: PathBuf, module: String },
    #[error("{name}: {what}")]
    Type { name: String, what: String },
    #[error("the documents have no type for {group}/{version} {kind} of the table of kinds")]
    NoKind { group: String, version: String, kind: String },
    #[error("{path} is outdated; run `cargo xtask apischema --from {from}` and commit the result")]
    Differs { path: PathBuf, from: PathBuf },
}

/// The types in the table that are not kinds: options, parts of lists and responses.
const ALSO: [&str; 12] = [
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
];

/// Writes the table to the file that the API server includes.
pub(crate) fn write(from: &Path) -> Result<String, Error> {
    let (path, text) = generate(from)?;
    fs::write(&path, text).map_err(|source| Error::Write { path: path.clone(), source })?;
    Ok(format!("wrote {}", path.display()))
}

/// Compares the committed table with the generated one.
pub(crate) fn check(from: &Path) -> Result<String, Error> {
    let (path, text) = generate(from)?;
    if read(&path)? == text {
        Ok(format!("{} is up to date", path.display()))
    } else {
        Err(Error::Differs { path, from: from.to_owned() })
    }
}

fn generate(from: &Path) -> Result<(PathBuf, String), Error> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates")
        .canonicalize()
        .map_err(|source| Error::Read { path: "crates".into(), source })?;
    let documents = openapi::Documents::read(&module(from, "kubernetes")?.join("api/openapi-spec/v3"))?;
    let mut roots: BTreeSet<String> = ALSO.iter().map(|name| (*name).to_owned()).collect();
    for row in read(&crates.join("watchkeeper-apiserver/src/kinds/kinds.tsv"))?
        .lines()
        .filter(|row| !row.starts_with('#'))
    {
        let mut cells = row.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        let (group, version, _plural, _singular, kind) = (cell(), cell(), cell(), cell(), cell());
        roots.insert(documents.name_of(group, version, kind)?);
    }
    let mut go = go_types::Packages::new(from);
    let text = render::render(&documents, &mut go, roots)?;
    Ok((crates.join("watchkeeper-schema/src/types.txt"), text))
}

/// Returns the newest unpacked version of a module of k8s.io in a Go module cache.
fn module(from: &Path, name: &str) -> Result<PathBuf, Error> {
    let dir = from.join("k8s.io");
    let prefix = format!("{name}@v");
    let mut found: Vec<PathBuf> = fs::read_dir(&dir)
        .map_err(|source| Error::Read { path: dir.clone(), source })?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
        .collect();
    found.sort();
    found.pop().ok_or_else(|| Error::NoModule { dir: from.to_owned(), module: name.to_owned() })
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}
