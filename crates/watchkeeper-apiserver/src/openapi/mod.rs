//! OpenAPI: version 3 as an index of documents and one document per group and version, and version 2 as one document of
//! everything.
//!
//! The documents contain what kubectl needs: the members of a type, how lists merge, and the content types that PATCH
//! accepts. They have no descriptions of built-in types; the schemas of custom kinds are published as defined.

mod components;
mod gnostic;
mod paths;
mod v2;

use std::collections::BTreeMap;

use ring::digest;
use serde_json::{Value, json};

pub(crate) use self::{gnostic::encode, v2::document_v2};
use crate::{
    discovery::hex,
    kinds::{GroupVersion, Kinds},
};

/// Returns the index at `/openapi/v3`. The URL of a document changes with its content, so that clients may cache the
/// document.
pub(crate) fn index(kinds: &Kinds) -> Value {
    let mut paths = BTreeMap::new();
    for group in kinds.groups() {
        for version in &group.versions {
            let path = base(&group.name, &version.version);
            let url = format!("/openapi/v3/{path}?hash={}", hash(&path, version));
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Returns the document at `/openapi/v3/api/VERSION` or `/openapi/v3/apis/GROUP/VERSION`. None if the version is not served.
pub(crate) fn document(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let found = kinds.version(group, version)?;
    let base = base(group, version);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths::paths(&base, found),
        "components": {
            "schemas": components::schemas(found),
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }))
}

/// Returns the group and version in the path of a document, the part after `/openapi/v3/`.
pub(crate) fn group_version(path: &str) -> Option<(&str, &str)> {
    if let Some(version) = path.strip_prefix("api/") {
        return Some(("", version));
    }
    path.strip_prefix("apis/")?.split_once('/')
}

fn base(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Returns the hash in the URL of a document: that of the version of this crate for built-in types, that of the schemas for
/// custom types.
fn hash(path: &str, version: &GroupVersion) -> String {
    let mut context = digest::Context::new(&digest::SHA512);
    context.update(format!("{} {path}", env!("CARGO_PKG_VERSION")).as_bytes());
    for kind in &version.kinds {
        let names = format!("{} {} {:?} {:?}\n", kind.plural, kind.gvk.kind, kind.verbs, kind.subresources);
        context.update(names.as_bytes());
        if let Some(schema) = kind.custom.as_ref().and_then(|custom| custom.schema.as_ref()) {
            context.update(schema.to_string().as_bytes());
        }
    }
    hex(context.finish().as_ref())
}

#[cfg(test)]
mod tests;
