//! Location of k8s-openapi, and parsing of the types in its files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use syn::{Expr, ImplItem, Item, ItemImpl, Lit, Type};

use super::Error;

/// The location of the sources, and the Kubernetes versions they support.
pub(super) struct Sources {
    pub(super) workspace_root: PathBuf,
    pub(super) crate_version: String,
    /// The minor versions of Kubernetes 1.x, ascending.
    pub(super) minors: Vec<u32>,
    src: PathBuf,
}

/// The scope of a type, as in k8s-openapi's marker types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Cluster,
    Namespace,
    SubResource,
}

/// The facts of one `impl Resource`, and the other traits of the type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceFacts {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) scope: Scope,
    /// Whether the type has a list. A type without one is only sent, such as a review.
    pub(super) listable: bool,
    /// The module that exports the type, below the crate root.
    pub(super) module: String,
}

impl Sources {
    /// Locates k8s-openapi by `cargo metadata`.
    pub(super) fn locate() -> Result<Self, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .output()
            .map_err(|error| Error::Metadata(error.to_string()))?;
        if !output.status.success() {
            return Err(Error::Metadata(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| Error::Metadata(error.to_string()))?;
        Self::from_metadata(&metadata)
            .ok_or_else(|| Error::Metadata("k8s-openapi is not among the dependencies".to_owned()))
    }

    fn from_metadata(metadata: &Value) -> Option<Self> {
        let workspace_root = metadata["workspace_root"].as_str()?.into();
        let packages = metadata["packages"].as_array()?;
        let package = packages.iter().find(|package| package["name"] == "k8s-openapi")?;
        let mut minors: Vec<u32> = package["features"]
            .as_object()?
            .keys()
            .filter_map(|feature| feature.strip_prefix("v1_")?.parse().ok())
            .collect();
        minors.sort_unstable();
        let src = Path::new(package["manifest_path"].as_str()?).parent()?.join("src");
        Some(Self { workspace_root, crate_version: package["version"].as_str()?.to_owned(), minors, src })
    }

    /// Returns every type of one Kubernetes version that has a URL, in unspecified order.
    pub(super) fn resources(&self, minor: u32) -> Result<Vec<ResourceFacts>, Error> {
        let root = self.src.join(format!("v1_{minor}"));
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            let unreadable = |source| Error::Read { path: folder.clone(), source };
            for entry in fs::read_dir(&folder).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path)
                        .map_err(|source| Error::Read { path: path.clone(), source })?;
                    let module = folder.strip_prefix(&root).unwrap_or(&folder);
                    found.extend(parse(&text, &path, &module_path(module))?);
                }
            }
        }
        Ok(found)
    }
}

fn module_path(folder: &Path) -> String {
    let parts: Vec<_> = folder.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("::")
}

/// Parses the resource that a file declares, if any.
///
/// A type with an empty URL segment (a list, a discovery document) has no path on the server and is not a resource here.
/// Generic types are lists of others.
pub(super) fn parse(text: &str, path: &Path, module: &str) -> Result<Option<ResourceFacts>, Error> {
    // Most files declare no resource, so only candidates are parsed in full.
    if !text.contains("crate::Resource for") {
        return Ok(None);
    }
    let file = syn::parse_file(text).map_err(|source| Error::Parse { path: path.to_owned(), source })?;
    let impls = || {
        file.items.iter().filter_map(|item| match item {
            Item::Impl(item) if item.generics.params.is_empty() => Some(item),
            _ => None,
        })
    };
    let Some(resource) = impls().find(|item| implements(item, "Resource")) else {
        return Ok(None);
    };
    let Type::Path(self_type) = &*resource.self_ty else {
        return Ok(None);
    };
    let Some(type_name) = self_type.path.get_ident().map(ToString::to_string) else {
        return Ok(None);
    };
    let missing = |what| Error::Incomplete { path: path.to_owned(), kind: type_name.clone(), what };
    let constant = |name| string_constant(resource, name).ok_or_else(|| missing(name));

    let plural = constant("URL_PATH_SEGMENT")?;
    if plural.is_empty() {
        return Ok(None);
    }
    Ok(Some(ResourceFacts {
        group: constant("GROUP")?,
        version: constant("VERSION")?,
        kind: constant("KIND")?,
        plural,
        scope: scope(resource).ok_or_else(|| missing("Scope"))?,
        listable: impls().any(|item| implements(item, "ListableResource")),
        module: module.to_owned(),
    }))
}

fn implements(item: &ItemImpl, name: &str) -> bool {
    item.trait_
        .as_ref()
        .and_then(|implemented| implemented.0.segments.last())
        .is_some_and(|segment| segment.ident == name)
}

fn string_constant(item: &ItemImpl, name: &str) -> Option<String> {
    item.items.iter().find_map(|item| match item {
        ImplItem::Const(constant) if constant.ident == name => match &constant.expr {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

fn scope(item: &ItemImpl) -> Option<Scope> {
    item.items.iter().find_map(|item| match item {
        ImplItem::Type(alias) if alias.ident == "Scope" => match &alias.ty {
            Type::Path(path) => match path.path.segments.last()?.ident.to_string().as_str() {
                "ClusterResourceScope" => Some(Scope::Cluster),
                "NamespaceResourceScope" => Some(Scope::Namespace),
                "SubResourceScope" => Some(Scope::SubResource),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Option<ResourceFacts>, Error> {
        parse(text, Path::new("widget.rs"), "api::example::v1")
    }

    const WIDGET: &str = r#"
        pub struct Widget { pub metadata: crate::Meta }
        impl crate::Resource for Widget {
            const API_VERSION: &'static str = "example.io/v1";
            const GROUP: &'static str = "example.io";
            const KIND: &'static str = "Widget";
            const VERSION: &'static str = "v1";
            const URL_PATH_SEGMENT: &'static str = "widgets";
            type Scope = crate::NamespaceResourceScope;
        }
    "#;

    #[test]
    fn a_type_with_a_list_is_read_whole() {
        let text = format!("{WIDGET} impl crate::ListableResource for Widget {{}}");
        assert_eq!(
            parse_text(&text).unwrap(),
            Some(ResourceFacts {
                group: "example.io".into(),
                version: "v1".into(),
                kind: "Widget".into(),
                plural: "widgets".into(),
                scope: Scope::Namespace,
                listable: true,
                module: "api::example::v1".into(),
            })
        );
    }

    #[test]
    fn a_type_without_a_list_is_only_sent() {
        assert!(!parse_text(WIDGET).unwrap().unwrap().listable);
    }

    #[test]
    fn the_three_scopes_are_distinguished() {
        for (marker, scope) in
            [("ClusterResourceScope", Scope::Cluster), ("SubResourceScope", Scope::SubResource)]
        {
            let text = WIDGET.replace("NamespaceResourceScope", marker);
            assert_eq!(parse_text(&text).unwrap().unwrap().scope, scope);
        }
    }

    #[test]
    fn parts_of_specs_documents_and_lists_are_not_resources() {
        let list = WIDGET.replace("impl crate::Resource for Widget", "impl<T> crate::Resource for List<T>");
        for text in ["pub struct WidgetSpec;", &WIDGET.replace("\"widgets\"", "\"\""), &list] {
            assert_eq!(parse_text(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn an_impl_that_changed_its_shape_is_an_error_and_not_a_gap_in_the_table() {
        for (from, to) in [
            ("const GROUP", "const FAMILY"),
            ("\"Widget\"", "NAME"),
            ("NamespaceResourceScope", "GalaxyResourceScope"),
        ] {
            let error = parse_text(&WIDGET.replace(from, to)).unwrap_err();
            assert!(matches!(error, Error::Incomplete { .. }), "{error}");
        }
        let error = parse_text("impl crate::Resource for {").unwrap_err();
        assert!(error.to_string().starts_with("parsing widget.rs"), "{error}");
    }

    #[test]
    fn the_crate_and_its_kubernetes_versions_come_from_cargo() {
        let metadata = serde_json::json!({
            "workspace_root": "/somewhere",
            "packages": [{
                "name": "k8s-openapi", "version": "0.29.0", "manifest_path": "/registry/k8s-openapi/Cargo.toml",
                "features": { "v1_34": [], "v1_33": [], "latest": ["v1_34"], "schemars": [] },
            }],
        });
        let sources = Sources::from_metadata(&metadata).unwrap();
        assert_eq!(sources.minors, [33, 34]);
        assert_eq!(sources.src, Path::new("/registry/k8s-openapi/src"));
        assert!(Sources::from_metadata(&serde_json::json!({ "packages": [] })).is_none());
    }
}
