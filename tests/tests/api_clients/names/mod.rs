//! The tables of names in `docs/` against the lists in `docs/names/` and against the public items and search aliases of the crates.

mod check;
mod lists;
mod source;
mod tables;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::{lists::Listed, source::Source, tables::Row};

/// The libraries with a table and a list.
const LIBRARIES: [&str; 4] = ["client-go", "controller-runtime", "kube-rs", "articles"];

struct Documents {
    source: Source,
    libraries: [Library; 4],
}

struct Library {
    name: &'static str,
    list: Vec<Listed>,
    text: String,
    rows: Vec<Row>,
}

fn documents() -> Documents {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut source = Source::default();
    for crate_folder in entries(&root.join("crates")) {
        let name = crate_folder.file_name().unwrap().to_str().unwrap().replace("watchkeeper-", "");
        let folder = crate_folder.join("src");
        for file in rust_files(&folder) {
            let path = file.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
            source.read(&name, &path, &fs::read_to_string(&file).unwrap());
        }
    }
    let libraries = LIBRARIES.map(|name| {
        let list = fs::read_to_string(root.join(format!("docs/names/{name}.txt"))).unwrap();
        let text = fs::read_to_string(root.join(format!("docs/{name}.md"))).unwrap();
        Library { name, list: lists::parse(&list).unwrap(), rows: tables::parse(&text).unwrap(), text }
    });
    Documents { source, libraries }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_listed_name_has_a_row_or_an_alias() {
    let Documents { source, libraries } = documents();
    for library in &libraries {
        check::nothing(library.name, &check::missing(&library.list, &library.rows, &source));
    }
}

#[test]
fn every_name_of_a_table_is_in_its_list() {
    for library in &documents().libraries {
        check::nothing(library.name, &check::unlisted(&library.list, &library.rows));
    }
}

#[test]
fn every_path_in_a_table_is_a_public_item() {
    let Documents { source, libraries } = documents();
    for library in &libraries {
        check::nothing(library.name, &check::unresolved(&library.rows, &source));
        check::nothing(library.name, &check::unresolved_modules(&library.text, &source));
    }
}

#[test]
fn the_first_name_of_a_row_is_found_by_the_search_of_rustdoc() {
    let Documents { source, libraries } = documents();
    for library in &libraries {
        check::nothing(library.name, &check::not_found_by_search(&library.rows, &source));
    }
}

#[test]
fn every_alias_is_a_listed_name_in_an_attribute_of_its_own() {
    let Documents { source, libraries } = documents();
    let listed: Vec<&Listed> = libraries.iter().flat_map(|library| &library.list).collect();
    check::nothing("aliases", &check::bad_aliases(&listed, &source));
}
