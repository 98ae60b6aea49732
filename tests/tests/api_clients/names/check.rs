//! What has to hold between lists, tables and source. Each check returns one line per mistake.

use std::collections::BTreeSet;

use super::{
    lists::Listed,
    source::Source,
    tables::{Row, code},
};

/// Crates whose items can stand in a table: they are not searched.
const FOREIGN: [&str; 6] = ["http", "k8s_openapi", "kube_client", "kube_core", "std", "tokio"];

pub(super) fn nothing(subject: &str, mistakes: &[String]) {
    assert!(mistakes.is_empty(), "{subject}: {} mistakes\n{}", mistakes.len(), mistakes.join("\n"));
}

/// The listed names that have neither a row nor an alias. A member always needs a row, because many types have a member of its name.
pub(super) fn missing(list: &[Listed], rows: &[Row], source: &Source) -> Vec<String> {
    let in_rows: BTreeSet<(&str, &str)> = rows
        .iter()
        .flat_map(|row| row.names.iter().map(|name| (row.package.as_str(), name.as_str())))
        .collect();
    list.iter()
        .filter(|listed| !in_rows.contains(&(&listed.package, &listed.name)))
        .filter(|listed| listed.name.contains('.') || !source.finds(&listed.name))
        .map(|listed| format!("{}.{} has neither a row nor an alias", listed.package, listed.name))
        .collect()
}

/// The names in rows that are in no list, or in two rows.
pub(super) fn unlisted(list: &[Listed], rows: &[Row]) -> Vec<String> {
    let mut open: BTreeSet<(&str, &str)> =
        list.iter().map(|listed| (listed.package.as_str(), listed.name.as_str())).collect();
    rows.iter()
        .flat_map(|row| row.names.iter().map(move |name| (row, name)))
        .filter(|(row, name)| !open.remove(&(row.package.as_str(), name.as_str())))
        .map(|(row, name)| {
            format!("line {}: {}.{name} is not in the list, or has a row above", row.line, row.package)
        })
        .collect()
}

/// The paths in rows that are not public items of ours, and the cells that name nothing.
pub(super) fn unresolved(rows: &[Row], source: &Source) -> Vec<String> {
    let is_known = |path: &str| is_foreign(path) || source.contains(path);
    let mut mistakes = Vec::new();
    for row in rows {
        let mut paths = code(&row.here).peekable();
        if paths.peek().is_none() && !matches!(row.here.as_str(), "none" | "not yet" | "same") {
            mistakes.push(format!(
                "line {}: no path, and not `none`, `not yet` or `same`: {}",
                row.line, row.here
            ));
        }
        let remarks =
            code(&row.differs).filter(|text| text.contains("::") && text.split("::").all(is_identifier));
        for path in paths.chain(remarks).filter(|path| !is_known(path)) {
            mistakes.push(format!("line {}: {path} is not a public item", row.line));
        }
    }
    mistakes
}

/// The modules of the facade that a text names and that do not exist.
pub(super) fn unresolved_modules(text: &str, source: &Source) -> Vec<String> {
    let is_known = |path: &str| is_foreign(path) || source.contains(path);
    code(text)
        .filter(|path| path.strip_prefix("watchkeeper::").is_some_and(|rest| !is_known(rest)))
        .map(|path| format!("{path} is not a public module"))
        .collect()
}

/// The rows with an item of ours whose first name the search of rustdoc does not find.
pub(super) fn not_found_by_search(rows: &[Row], source: &Source) -> Vec<String> {
    rows.iter()
        .filter(|row| code(&row.here).any(|path| !is_foreign(path)))
        .filter_map(|row| Some((row, row.names.first()?.rsplit('.').next()?)))
        .filter(|(_, name)| !source.finds(name))
        .map(|(row, name)| format!("line {}: {name} is not the alias of an item ({})", row.line, row.here))
        .collect()
}

/// The aliases that are in no list, and those that are not written as `#[doc(alias = "…")]`.
pub(super) fn bad_aliases(listed: &[&Listed], source: &Source) -> Vec<String> {
    let words: BTreeSet<&str> = listed.iter().flat_map(|listed| listed.words()).collect();
    source
        .aliases
        .iter()
        .filter_map(|alias| match &alias.name {
            None => Some(format!("{}: not in the form #[doc(alias = \"…\")]", alias.place)),
            Some(name) if !words.contains(name.as_str()) => {
                Some(format!("{}: {name} is in no list", alias.place))
            }
            Some(_) => None,
        })
        .collect()
}

fn is_foreign(path: &str) -> bool {
    path.split("::").next().is_some_and(|first| FOREIGN.contains(&first))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{lists, tables};

    fn source() -> Source {
        let mut source = Source::default();
        source.read(
            "informer",
            "store.rs",
            "#[doc(alias = \"Indexer\")]\npub struct Store {\n    pub size: u8,\n}\n",
        );
        source
    }

    fn rows(rows: &str) -> Vec<Row> {
        tables::parse(&format!("## cache\n| their name | here | what differs |\n|---|---|---|\n{rows}\n"))
            .unwrap()
    }

    #[test]
    fn a_name_needs_a_row_in_its_own_section_or_an_alias_or_an_item_of_that_name() {
        let list =
            lists::parse("cache.Indexer\ncache.Store\ncache.Heap\ncache.Heap.Add\nother.Heap").unwrap();
        assert_eq!(
            missing(&list, &rows("| `Heap` | none | Not needed. |"), &source()),
            ["cache.Heap.Add has neither a row nor an alias", "other.Heap has neither a row nor an alias",]
        );
    }

    #[test]
    fn a_name_in_a_row_is_listed_and_has_one_row() {
        let list = lists::parse("cache.Heap\ncache.Store").unwrap();
        assert_eq!(
            unlisted(&list, &rows("| `Heap` `Haep` | none | a |\n| `Store` `Heap` | none | b |")),
            [
                "line 4: cache.Haep is not in the list, or has a row above",
                "line 5: cache.Heap is not in the list, or has a row above",
            ]
        );
    }

    #[test]
    fn paths_are_public_items_of_ours_or_of_known_crates() {
        let rows = rows(
            "| `A` | `Store`, `store::Store::size`, `std::sync::Arc` | See `Store::size` and `f(a::b)`. |\n\
             | `B` | `Store::add` | `Store::remove` |\n| `C` | unknown | c |\n| `D` | not yet | `kube_core::Resource` |",
        );
        assert_eq!(
            unresolved(&rows, &source()),
            [
                "line 5: Store::add is not a public item",
                "line 5: Store::remove is not a public item",
                "line 6: no path, and not `none`, `not yet` or `same`: unknown",
            ]
        );
    }

    #[test]
    fn modules_of_the_facade_in_the_text_are_public() {
        let mut source = source();
        source.read("informer", "lib.rs", "pub mod status;\nmod store;\n");
        let text = "`watchkeeper::informer` and `watchkeeper::informer::store`, `watchkeeper::kube_core`, `watchkeeper`.";
        assert_eq!(
            unresolved_modules(text, &source),
            ["watchkeeper::informer::store is not a public module"]
        );
    }

    #[test]
    fn the_first_name_of_a_row_with_an_item_of_ours_needs_an_alias() {
        let rows = rows(
            "| `Indexer` `Other` | `Store` | a |\n| `KeyLister.ListKeys` | `Store` | b |\n| `Heap` | none | c |",
        );
        assert_eq!(
            not_found_by_search(&rows, &source()),
            ["line 5: ListKeys is not the alias of an item (`Store`)"]
        );
    }

    #[test]
    fn an_alias_is_a_listed_name_in_the_one_form() {
        let mut source = source();
        source.read(
            "informer",
            "lib.rs",
            "#[doc(alias = \"Indxer\")]\n#[doc(alias(\"Store\", \"Indexer\"))]\n",
        );
        let list = lists::parse("cache.Indexer.Store").unwrap();
        let listed: Vec<&Listed> = list.iter().collect();
        assert_eq!(
            bad_aliases(&listed, &source),
            [
                "informer/lib.rs:1: Indxer is in no list",
                "informer/lib.rs:2: not in the form #[doc(alias = \"…\")]",
            ]
        );
    }
}
