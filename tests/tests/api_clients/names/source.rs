//! The public items and the search aliases of the crates, read from formatted source text.

use std::collections::{BTreeMap, BTreeSet};

/// The items and aliases of all files that were read.
#[derive(Debug, Default)]
pub(super) struct Source {
    items: BTreeMap<String, Vec<Item>>,
    /// Names and aliases as the search of rustdoc compares them.
    searched: BTreeSet<String>,
    pub(super) aliases: Vec<Alias>,
}

#[derive(Debug, PartialEq, Eq)]
struct Item {
    /// The type that the item is a member of.
    owner: Option<String>,
    /// The crate and the modules that contain the item.
    modules: Vec<String>,
}

/// An attribute `#[doc(alias = "…")]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Alias {
    pub(super) place: String,
    /// The name, or `None` if the attribute is written in another form.
    pub(super) name: Option<String>,
}

/// The block that contains the current line.
enum Block {
    None,
    /// Public functions and fields are members.
    Type(String),
    /// Every function and type is a member.
    Trait(String),
    /// Every variant is a member.
    Enum(String),
}

impl Source {
    /// Reads one file: `path` is relative to the folder `src` of the crate.
    pub(super) fn read(&mut self, crate_name: &str, path: &str, text: &str) {
        let modules: Vec<String> = [crate_name]
            .into_iter()
            .chain(path.trim_end_matches(".rs").split('/'))
            .filter(|module| !matches!(*module, "lib" | "mod"))
            .map(str::to_owned)
            .collect();
        if path == "lib.rs" {
            let item = Item { owner: None, modules: Vec::new() };
            self.items.entry(crate_name.to_owned()).or_default().push(item);
        }
        let mut block = Block::None;
        for (index, line) in text.lines().enumerate() {
            let (code, indent) = (line.trim_start(), line.len() - line.trim_start().len());
            if let Some(attribute) = code.strip_prefix("#[doc(alias") {
                self.add_alias(format!("{crate_name}/{path}:{}", index + 1), attribute);
            }
            if indent == 0 {
                block = Block::after(block, line);
            }
            let (name, owner) = match &block {
                _ if indent == 0 => (public_item(code), None),
                Block::Enum(owner) if indent == 4 && code.starts_with(char::is_uppercase) => {
                    (Some(word(code)), Some(owner))
                }
                Block::Trait(owner) if indent == 4 => (item(code), Some(owner)),
                Block::Type(owner) => (public_item(code).or_else(|| public_field(code)), Some(owner)),
                _ => (None, None),
            };
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let item = Item { owner: owner.cloned(), modules: modules.clone() };
                self.items.entry(name.to_owned()).or_default().push(item);
                self.searched.insert(searched(name));
            }
        }
    }

    fn add_alias(&mut self, place: String, attribute: &str) {
        let name = attribute
            .strip_prefix(" = \"")
            .and_then(|rest| rest.strip_suffix("\")]"))
            .filter(|name| !name.contains('"'))
            .map(str::to_owned);
        self.searched.extend(name.as_deref().map(searched));
        self.aliases.push(Alias { place, name });
    }

    /// Whether a path such as `Store::add`, `wait::exists` or `controller::Controller::run` is a public item, or a module of the
    /// facade such as `watchkeeper::client::rest` is one of ours.
    pub(super) fn contains(&self, path: &str) -> bool {
        let path = path.strip_prefix("watchkeeper::").unwrap_or(path);
        let mut parents: Vec<&str> = path.split("::").collect();
        let Some(items) = parents.pop().and_then(|name| self.items.get(name)) else { return false };
        let owner = parents.pop_if(|parent| parent.starts_with(char::is_uppercase));
        items.iter().any(|item| {
            item.owner.as_deref() == owner
                && parents.iter().all(|parent| item.modules.iter().any(|module| module == parent))
        })
    }

    /// Whether the search of rustdoc finds an item by this name or alias. The search ignores case and underscores.
    pub(super) fn finds(&self, name: &str) -> bool {
        self.searched.contains(&searched(name))
    }
}

impl Block {
    /// The block after a line that is not indented.
    fn after(self, line: &str) -> Self {
        let public = line.strip_prefix("pub ").unwrap_or_default();
        if let Some(rest) = public.strip_prefix("trait ") {
            Self::Trait(word(rest).to_owned())
        } else if let Some(rest) = public.strip_prefix("enum ") {
            Self::Enum(word(rest).to_owned())
        } else if let Some(rest) = public.strip_prefix("struct ") {
            Self::Type(word(rest).to_owned())
        } else if line.starts_with("impl") {
            implemented(line).map_or(Self::None, |name| Self::Type(name.to_owned()))
        } else if line.starts_with(|c: char| c == '}' || c.is_alphabetic() && !line.starts_with("where")) {
            Self::None
        } else {
            self
        }
    }
}

/// The type of the first line of an `impl` block. None for the implementation of a trait.
fn implemented(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|&(at, c)| {
            match c {
                '<' => depth += 1,
                '>' if !rest[..at].ends_with('-') => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        rest = &rest[end.0 + 1..];
    }
    if rest.contains(" for ") {
        return None;
    }
    let path = rest.trim_start().split(['<', ' ']).next()?;
    path.rsplit("::").next().filter(|name| !name.is_empty())
}

/// The name of an item that is declared with `pub`.
fn public_item(code: &str) -> Option<&str> {
    item(code.strip_prefix("pub ")?)
}

fn item(mut code: &str) -> Option<&str> {
    while let Some(rest) = ["async ", "const fn", "unsafe "].iter().find_map(|prefix| {
        let rest = code.strip_prefix(prefix)?;
        Some(if *prefix == "const fn" { &code["const ".len()..] } else { rest })
    }) {
        code = rest;
    }
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "mod ", "const ", "static "];
    kinds.iter().find_map(|kind| code.strip_prefix(kind)).map(word)
}

fn public_field(code: &str) -> Option<&str> {
    let name = word(code.strip_prefix("pub ")?);
    code["pub ".len() + name.len()..].starts_with(": ").then_some(name)
}

/// The identifier at the start of a text.
fn word(code: &str) -> &str {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// A name as the search of rustdoc compares it.
fn searched(name: &str) -> String {
    name.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
/// Returns the next key.
#[doc(alias = "Interface")]
pub struct Queue<K> {
    pub name: String,
    size: usize,
}

impl<K: Fn() -> bool> Queue<K>
where
    K: Clone,
{
    #[doc(alias = "AddAfter")]
    pub async fn add_after(&self) {}

    pub const fn len(&self) -> usize { 0 }

    fn private(&self) {}

    pub(crate) fn of_the_crate(&self) {}
}

pub const LIMIT: usize = 1;

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {}
}

#[doc(alias("A", "B"))]
pub enum Next {
    Stop,
    After { time: u8 },
}

pub trait Limiter {
    fn delay(&self);
}

enum Hidden {
    Variant,
}

pub fn free() {
    pub_like: loop {}
}
"#;

    fn source() -> Source {
        let mut source = Source::default();
        source.read("workqueue", "queue/mod.rs", FILE);
        source
    }

    #[test]
    fn public_items_and_their_members_are_found() {
        let source = source();
        for path in [
            "Queue",
            "queue::Queue",
            "workqueue::queue::Queue",
            "Queue::name",
            "Queue::add_after",
            "queue::Queue::len",
            "LIMIT",
            "Next::Stop",
            "Next::After",
            "Limiter::delay",
            "free",
        ] {
            assert!(source.contains(path), "{path}");
        }
    }

    #[test]
    fn modules_of_the_facade_are_crates_and_their_modules() {
        let mut source = source();
        source.read("workqueue", "lib.rs", "pub mod limiter;\nmod queue;\n");
        for (path, is_public) in [
            ("watchkeeper::workqueue", true),
            ("watchkeeper::workqueue::limiter", true),
            ("watchkeeper::workqueue::queue", false),
            ("watchkeeper::other::limiter", false),
            ("watchkeeper::limiter::workqueue", false),
        ] {
            assert_eq!(source.contains(path), is_public, "{path}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        let source = source();
        for path in [
            "Queues",
            "other::Queue",
            "Queue::size",
            "Queue::private",
            "Queue::of_the_crate",
            "Queue::clone",
            "Queue::Stop",
            "Queue::LIMIT",
            "add_after",
            "Next::time",
            "Hidden",
            "Hidden::Variant",
            "",
        ] {
            assert!(!source.contains(path), "{path}");
        }
    }

    #[test]
    fn the_search_ignores_case_and_underscores() {
        let source = source();
        for name in ["Interface", "interface", "AddAfter", "add_after", "ADDAFTER", "Free"] {
            assert!(source.finds(name), "{name}");
        }
        for name in ["Add", "Hidden", "private", "A"] {
            assert!(!source.finds(name), "{name}");
        }
    }

    #[test]
    fn aliases_have_a_place_and_one_form() {
        let name =
            |alias: &Alias| alias.name.clone().unwrap_or_else(|| format!("another form in {}", alias.place));
        let names: Vec<_> = source().aliases.iter().map(name).collect();
        assert_eq!(names, ["Interface", "AddAfter", "another form in workqueue/queue/mod.rs:29"]);
    }
}
