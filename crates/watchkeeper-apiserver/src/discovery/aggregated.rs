//! Aggregated discovery: all groups in one document.

use serde_json::{Value, json};

use crate::kinds::{Group, GroupVersionKind, Kind, Kinds};

/// The version of the document that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoveryVersion {
    /// `apidiscovery.k8s.io/v2`, the only version that is still served.
    V2,
}

impl DiscoveryVersion {
    /// Returns the version, as in `Accept` and `Content-Type`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V2 => "v2",
        }
    }

    /// Returns the `Content-Type` of the document.
    pub(crate) fn content_type(self) -> String {
        format!("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", self.version())
    }
}

/// Returns the document of `/api` (the core group) or `/apis` (all other groups).
pub(crate) fn aggregated(kinds: &Kinds, is_core: bool, form: DiscoveryVersion) -> Value {
    let groups: Vec<Value> = kinds
        .groups()
        .iter()
        .filter(|group| group.name.is_empty() == is_core)
        .map(|group| describe(group))
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{}", form.version()),
        "metadata": {},
        "items": groups,
    })
}

fn describe(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = version.kinds.iter().map(|kind| describe_kind(kind)).collect();
            json!({"version": version.version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn describe_kind(kind: &Kind) -> Value {
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind(&kind.gvk, kind),
        "scope": if kind.is_namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    if !kind.subresources.is_empty() {
        let subresources = kind.subresources.iter().map(|subresource| {
            json!({
                "subresource": subresource.name,
                "responseKind": response_kind(&subresource.gvk, kind),
                "verbs": subresource.verbs,
            })
        });
        resource["subresources"] = subresources.collect();
    }
    resource
}

/// Returns the `responseKind`. Built-in kinds omit the group and version that they are listed under; custom kinds do not.
fn response_kind(gvk: &GroupVersionKind, of: &Kind) -> Value {
    let is_own = (&gvk.group, &gvk.version) == (&of.gvk.group, &of.gvk.version) && of.custom.is_none();
    let (group, version) = if is_own { ("", "") } else { (gvk.group.as_str(), gvk.version.as_str()) };
    json!({"group": group, "version": version, "kind": gvk.kind})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{discovery::etag, kinds::Registry};

    #[test]
    fn the_two_aggregated_documents_list_every_resource_once() {
        let kinds = Registry::new().kinds();
        let count = |document: &Value| -> usize {
            let groups = document["items"].as_array().unwrap().iter();
            let versions = groups.flat_map(|group| group["versions"].as_array().unwrap());
            versions.map(|version| version["resources"].as_array().unwrap().len()).sum()
        };
        let (core, others) =
            (aggregated(&kinds, true, DiscoveryVersion::V2), aggregated(&kinds, false, DiscoveryVersion::V2));
        assert_eq!((count(&core), count(&others)), (17, 55));
    }

    #[test]
    fn equal_documents_have_equal_etags() {
        let document = || aggregated(&Registry::new().kinds(), false, DiscoveryVersion::V2).to_string();
        let tag = etag(document().as_bytes());
        assert_eq!(tag, etag(document().as_bytes()));
        assert_ne!(tag, etag(b""));
        assert_eq!(tag.len(), 130);
    }
}
