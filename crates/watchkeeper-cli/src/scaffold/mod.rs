//! `watchkeeper new`: creates an operator from a template.

mod name;
mod templates;
mod tree;

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use self::{
    name::CrateName,
    tree::{Origin, SourceTree},
};
use crate::exit::Failure;

/// The arguments of `new`.
#[derive(Debug, Clone, clap::Args)]
pub struct NewArguments {
    /// The name of the operator and of its folder: lower-case letters, digits and dashes.
    name: CrateName,
    /// The kind of the custom resource. Defaults to the name in upper camel case.
    #[arg(long, value_parser = name::kind)]
    kind: Option<String>,
    /// The API group of the custom resource.
    #[arg(long, default_value = "example.com", value_parser = name::group)]
    group: String,
    /// The folder in which the new folder is created.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    directory: PathBuf,
    /// The source tree of Watchkeeper to depend on. Defaults to the tree that this program was built from.
    #[arg(long, value_name = "FOLDER")]
    watchkeeper: Option<PathBuf>,
}

/// Creates the crate. Existing files are never overwritten.
///
/// # Errors
/// Returns an error if the folder exists or cannot be created, or if no source tree of Watchkeeper is found.
pub fn new(arguments: &NewArguments) -> Result<(), Failure> {
    let folder = arguments.directory.join(arguments.name.as_str());
    let source = SourceTree::find(arguments.watchkeeper.as_deref(), &Origin::of_this_program())?;
    let kind = arguments.kind.clone().unwrap_or_else(|| arguments.name.kind());
    let values =
        templates::Values { name: &arguments.name, kind: &kind, group: &arguments.group, source: &source };

    // Created first and atomically, so that existing folders and concurrent runs cannot interfere.
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::Other(format!("{} exists; choose another name", path.display()))
            }
            _ => Failure::File { path, source },
        }
    };
    fs::create_dir(&folder).map_err(failed(&folder))?;
    for (path, text) in templates::files(&values) {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        fs::write(&path, text).map_err(failed(&path))?;
    }
    // The dependency versions that the source tree is tested with.
    if let Some(lock) = source.lock_file() {
        fs::copy(&lock, folder.join("Cargo.lock")).map_err(failed(&lock))?;
    }
    let mut out = anstream::stdout();
    writeln!(
        out,
        "created {}, an operator for the kind {kind} of the group {}",
        folder.display(),
        arguments.group
    )?;
    writeln!(out, "next:")?;
    writeln!(out, "  cd {}", folder.display())?;
    writeln!(out, "  cargo test        # runs the operator on an API server in the same process")?;
    writeln!(out, "  cargo run -- crd  # prints the definition to install; see README.md")?;
    Ok(())
}
