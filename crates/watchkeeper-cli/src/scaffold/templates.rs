//! The files of a new crate.

use super::{name::CrateName, tree::SourceTree};

/// The values of the placeholders.
#[derive(Debug)]
pub(super) struct Values<'a> {
    pub(super) name: &'a CrateName,
    pub(super) kind: &'a str,
    pub(super) group: &'a str,
    pub(super) source: &'a SourceTree,
}

const FILES: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    (".gitignore", "/target\n"),
    ("README.md", include_str!("template/README.md.txt")),
    ("example.yaml", include_str!("template/example.yaml.txt")),
    ("src/lib.rs", include_str!("template/lib.rs.txt")),
    ("src/main.rs", include_str!("template/main.rs.txt")),
    ("src/resource.rs", include_str!("template/resource.rs.txt")),
    ("src/reconcile.rs", include_str!("template/reconcile.rs.txt")),
    ("tests/operator.rs", include_str!("template/operator.rs.txt")),
];

/// Returns the path and the text of each file.
pub(super) fn files(values: &Values<'_>) -> Vec<(&'static str, String)> {
    let watchkeeper = values.source.dependency(&["clap", "latest"]);
    let watchkeeper_dev = values.source.dependency(&["apiserver"]);
    let identifier = values.name.identifier();
    let replacements = [
        ("{{name}}", values.name.as_str()),
        ("{{crate}}", &identifier),
        ("{{Kind}}", values.kind),
        ("{{group}}", values.group),
        ("{{watchkeeper}}", &watchkeeper),
        ("{{watchkeeper_dev}}", &watchkeeper_dev),
    ];
    let filled = |template: &str| {
        replacements.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    FILES.iter().map(|(path, template)| (*path, filled(template))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaffold::tree::Origin;

    #[test]
    fn templates_contain_no_unreplaced_placeholders() {
        let name: CrateName = "coffee-shop".parse().unwrap();
        let source = SourceTree::find(None, &Origin::of_this_program()).unwrap();
        let values = Values { name: &name, kind: "CoffeeShop", group: "shop.example.com", source: &source };
        for (path, text) in files(&values) {
            for placeholder in ["{{name}}", "{{crate}}", "{{Kind}}", "{{group}}", "{{watchkeeper"] {
                assert!(!text.contains(placeholder), "{path} has {placeholder}");
            }
        }
    }
}
