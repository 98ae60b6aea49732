//! Protobuf field numbers from the tags of Go structs.
//!
//! Only the tags contain the JSON name, the protobuf number and the inlining of a field together. The `.proto` files spell
//! some names differently and do not state which messages are inlined in JSON.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{Error, module, read};

/// The properties of a JSON member in Go.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// The protobuf field numbers: that of the member, after those of the messages it is inlined from.
    pub(super) numbers: Vec<u32>,
    /// Whether the field is a pointer, so that zero is a value like any other.
    pub(super) is_pointer: bool,
    /// Whether the tag has `omitempty`: empty strings, lists and maps, 0 and false are omitted; structs are written.
    pub(super) omits_empty: bool,
    /// Whether the tag has `omitzero`: structs of zero values are omitted.
    pub(super) omits_zero: bool,
}

/// The tags of a Go struct.
#[derive(Debug, Default)]
struct Struct {
    /// The members, by JSON name.
    members: BTreeMap<String, Member>,
    /// The number and OpenAPI name of inlined structs.
    flattened: Vec<(u32, String)>,
}

/// The structs of Go packages, parsed on first use.
pub(super) struct Packages {
    from: PathBuf,
    read: BTreeMap<String, BTreeMap<String, Struct>>,
}

impl Packages {
    /// Creates a reader of packages in the Go module cache `from`.
    pub(super) fn new(from: &Path) -> Self {
        Self { from: from.to_owned(), read: BTreeMap::new() }
    }

    /// Returns the JSON members of a type with an OpenAPI name.
    pub(super) fn members(&mut self, name: &str) -> Result<BTreeMap<String, Member>, Error> {
        let found = self.find(name)?;
        let (mut members, flattened) = (found.members.clone(), found.flattened.clone());
        for (outer, part) in flattened {
            for (name, mut member) in self.members(&part)? {
                member.numbers.insert(0, outer);
                members.insert(name, member);
            }
        }
        Ok(members)
    }

    fn find(&mut self, name: &str) -> Result<&Struct, Error> {
        let unknown = |what: &str| Error::Type { name: name.to_owned(), what: what.to_owned() };
        let (package, type_name) =
            name.rsplit_once('.').ok_or_else(|| unknown("a name without a package"))?;
        if !self.read.contains_key(package) {
            let structs = read_package(&self.from, package)?;
            self.read.insert(package.to_owned(), structs);
        }
        self.read
            .get(package)
            .and_then(|structs| structs.get(type_name))
            .ok_or_else(|| unknown("no struct in its Go package"))
    }
}

fn read_package(from: &Path, package: &str) -> Result<BTreeMap<String, Struct>, Error> {
    let mut parts = package.trim_start_matches("io.k8s.").split('.');
    let mut dir = module(from, parts.next().unwrap_or_default())?;
    dir.extend(parts);
    let mut structs = BTreeMap::new();
    let entries = fs::read_dir(&dir).map_err(|source| Error::Read { path: dir.clone(), source })?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_go = path.extension().is_some_and(|extension| extension == "go");
        if is_go && !name.ends_with("_test") && !name.contains("generated") {
            read_structs(&read(&path)?, package, &mut structs);
        }
    }
    Ok(structs)
}

fn read_structs(source: &str, package: &str, structs: &mut BTreeMap<String, Struct>) {
    let mut imports: BTreeMap<&str, String> = BTreeMap::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some((alias, path)) = line.trim().strip_suffix('"').and_then(|line| line.split_once('"'))
            && let Some(path) = path.strip_prefix("k8s.io/")
        {
            let alias = Some(alias.trim()).filter(|alias| !alias.is_empty());
            let name = alias.unwrap_or_else(|| path.rsplit('/').next().unwrap_or(path));
            imports.insert(name, format!("io.k8s.{}", path.replace('/', ".")));
        }
        if let Some(name) = line.strip_prefix("type ").and_then(|line| line.strip_suffix(" struct{}")) {
            structs.insert(name.to_owned(), Struct::default());
        }
        let Some(name) = line.strip_prefix("type ").and_then(|line| line.strip_suffix(" struct {")) else {
            continue;
        };
        let mut found = Struct::default();
        for line in lines.by_ref().take_while(|line| *line != "}") {
            read_member(line.trim(), package, &imports, &mut found);
        }
        structs.insert(name.to_owned(), found);
    }
}

fn read_member(line: &str, package: &str, imports: &BTreeMap<&str, String>, found: &mut Struct) {
    let Some((declaration, tags)) = line.split_once('`') else { return };
    let Some(number) = tag(tags, "protobuf").and_then(|tag| tag.split(',').nth(1)?.parse().ok()) else {
        return;
    };
    let mut words = declaration.split_whitespace();
    let (Some(first), second) = (words.next(), words.next()) else { return };
    let mut json = tag(tags, "json").unwrap_or_default().split(',');
    let json_name = json.next().unwrap_or_default();
    if !json_name.is_empty() {
        let member = Member {
            numbers: vec![number],
            is_pointer: second.unwrap_or(first).starts_with('*'),
            omits_empty: json.clone().any(|option| option == "omitempty"),
            omits_zero: json.any(|option| option == "omitzero"),
        };
        found.members.insert(json_name.to_owned(), member);
    } else if second.is_none() {
        let full = match first.trim_start_matches('*').split_once('.') {
            Some((alias, name)) => imports.get(alias).map(|package| format!("{package}.{name}")),
            None => Some(format!("{package}.{}", first.trim_start_matches('*'))),
        };
        found.flattened.extend(full.map(|full| (number, full)));
    }
}

fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let start = tags.find(&format!("{key}:\""))? + key.len() + 2;
    tags[start..].split('"').next()
}
