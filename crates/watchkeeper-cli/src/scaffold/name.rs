//! Validation of the names of crates, kinds and groups.

use std::{fmt, str::FromStr};

/// Names with a special meaning in Rust or Cargo, which a crate cannot have.
const RESERVED: [&str; 58] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "virtual",
    "watchkeeper",
    "where",
    "while",
];

/// The name of a crate, which is also the name of its folder, binary and service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CrateName(String);

impl CrateName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as a Rust identifier.
    pub(super) fn identifier(&self) -> String {
        self.0.replace('-', "_")
    }

    /// Returns the name in upper camel case: `CoffeeShop` for `coffee-shop`.
    pub(super) fn kind(&self) -> String {
        let capitalised = |word: &str| {
            let mut chars = word.chars();
            chars
                .next()
                .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
                .unwrap_or_default()
        };
        self.0.split('-').map(capitalised).collect()
    }
}

impl FromStr for CrateName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A DNS label that begins with a letter is a crate, an identifier, an account and a folder.
        let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_label = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(is_inside)
            && !text.ends_with('-')
            && !text.contains("--")
            && text.len() <= 40;
        if !is_label {
            return Err(
                "a name is up to 40 lower-case letters, digits and single dashes, and begins with a letter"
                    .to_owned(),
            );
        }
        if RESERVED.contains(&text) {
            return Err(format!("{text:?} is reserved in Rust or Cargo; choose another name"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for CrateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses a kind: upper camel case, and not a name that the template imports.
pub(super) fn kind(text: &str) -> Result<String, String> {
    let is_kind = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
        && text.len() <= 60;
    if !is_kind {
        return Err("a kind consists of letters and digits, and begins with a capital letter".to_owned());
    }
    if TAKEN.contains(&text) {
        return Err(format!("{text:?} is a name that the template imports; choose another kind"));
    }
    Ok(text.to_owned())
}

/// The names that the template imports.
const TAKEN: &[&str] = &[
    "Action",
    "ApiServer",
    "Arc",
    "Arguments",
    "BTreeMap",
    "CancellationToken",
    "Cause",
    "Client",
    "ClientConfig",
    "Command",
    "ConfigMap",
    "Context",
    "Controller",
    "CustomResource",
    "CustomResourceDefinition",
    "CustomResourceExt",
    "Deserialize",
    "Duration",
    "EnvFilter",
    "Error",
    "Event",
    "EventType",
    "ExitCode",
    "Fault",
    "JsonSchema",
    "Manager",
    "ManagerArgs",
    "ManagerError",
    "ObjectMeta",
    "Option",
    "Parser",
    "Patch",
    "Recorder",
    "Request",
    "Requests",
    "Resource",
    "Result",
    "Scope",
    "Self",
    "Serialize",
    "Subcommand",
    "Verb",
];

/// Parses an API group: a domain name with at least one dot.
pub(super) fn group(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !text.contains('.') || text.len() > 200 || !text.split('.').all(is_label) {
        return Err("a group is a domain, such as shop.example.com".to_owned());
    }
    if text.ends_with(".k8s.io") || text.ends_with(".kubernetes.io") {
        return Err(
            "the groups of k8s.io and kubernetes.io are reserved for Kubernetes; use a domain of your own"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_invalid_for_cargo_rust_or_file_systems_are_rejected() {
        for bad in [
            "", "Shop", "1shop", "-shop", "shop-", "a--b", "../shop", "shop/x", "shop x", "shöp", "fn",
            "test", "std",
        ] {
            assert!(bad.parse::<CrateName>().is_err(), "{bad:?}");
        }
        for good in ["shop", "coffee-shop", "a", "x2"] {
            assert!(good.parse::<CrateName>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn the_default_kind_is_the_name_in_upper_camel_case() {
        for (name, wanted) in [("shop", "Shop"), ("coffee-shop", "CoffeeShop"), ("x2", "X2")] {
            let name: CrateName = name.parse().unwrap();
            assert_eq!(name.kind(), wanted);
            assert_eq!(kind(&name.kind()), Ok(wanted.to_owned()));
        }
        for bad in ["shop", "", "Sh op", "Shop-x", "Request", "Verb", "1"] {
            assert!(kind(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn groups_are_domains_outside_kubernetes() {
        assert!(group("shop.example.com").is_ok());
        for bad in ["", "shop", "a..b", "Shop.example.com", "-a.b", "apps.k8s.io", "x.kubernetes.io", "a b.c"]
        {
            assert!(group(bad).is_err(), "{bad:?}");
        }
    }
}
