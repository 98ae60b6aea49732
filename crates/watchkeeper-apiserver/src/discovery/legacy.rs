//! Unaggregated discovery: one document per group and version.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::digest;
use serde_json::{Value, json};

use crate::kinds::{Group, GroupVersionKind, Kind, Kinds};

/// Returns the document of `/api`, the versions of the core group. `address` is the address of this server.
pub(crate) fn api_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// Returns the document of `/apis`, all groups except the core group.
pub(crate) fn groups(kinds: &Kinds) -> Value {
    let groups: Vec<Value> =
        kinds.groups().iter().filter(|group| !group.name.is_empty()).map(|group| describe(group)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the document of `/apis/GROUP`.
pub(crate) fn group(kinds: &Kinds, name: &str) -> Option<Value> {
    let mut group = kinds.group(name).filter(|group| !group.name.is_empty()).map(describe)?;
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

fn describe(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({"groupVersion": format!("{}/{}", group.name, version.version), "version": version.version})
        })
        .collect();
    let preferred = versions.first().cloned();
    json!({"name": group.name, "versions": versions, "preferredVersion": preferred})
}

/// Returns the document of `/api/VERSION` or `/apis/GROUP/VERSION`: the kinds and their subresources.
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let found = kinds.version(group, version)?;
    let resources: Vec<Value> = found.kinds.iter().flat_map(|kind| describe_kind(kind)).collect();
    Some(if group.is_empty() {
        json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
    } else {
        let group_version = format!("{group}/{version}");
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    })
}

fn describe_kind(kind: &Kind) -> Vec<Value> {
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.gvk.kind,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    // Kinds that are never stored, such as reviews, have no storage version.
    if kind.allows("watch") {
        resource["storageVersionHash"] = storage_version_hash(&kind.storage, kind.custom.is_some()).into();
    }
    let subresources = kind.subresources.iter().map(|subresource| {
        let mut described = json!({
            "name": format!("{}/{}", kind.plural, subresource.name),
            "singularName": "",
            "namespaced": kind.is_namespaced,
            "kind": subresource.gvk.kind,
            "verbs": subresource.verbs,
        });
        if (&subresource.gvk.group, &subresource.gvk.version) != (&kind.gvk.group, &kind.gvk.version) {
            described["group"] = subresource.gvk.group.clone().into();
            described["version"] = subresource.gvk.version.clone().into();
        }
        described
    });
    std::iter::once(resource).chain(subresources).collect()
}

/// Kinds that a 1.37 server stores in a version it no longer serves. Clients see that version only through the hash.
const STORED_OLDER: [(&str, &str); 5] = [
    ("ClusterTrustBundle", "v1beta1"),
    ("CustomResourceDefinition", "v1beta1"),
    ("DeviceTaintRule", "v1beta2"),
    ("PodCertificateRequest", "v1beta1"),
    ("StorageVersionMigration", "v1beta1"),
];

/// Returns the storage version hash, which is the same on every server.
fn storage_version_hash(storage: &GroupVersionKind, is_custom: bool) -> String {
    let older = STORED_OLDER.iter().find(|(kind, _)| *kind == storage.kind && !is_custom);
    let version = older.map_or(storage.version.as_str(), |(_, version)| version);
    let text = format!("{}/{version}/{}", storage.group, storage.kind);
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    STANDARD.encode(hash.as_ref().get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Registry;

    #[test]
    fn the_core_group_is_absent_from_apis_and_has_its_own_resource_list() {
        let kinds = Registry::new().kinds();
        let all = groups(&kinds);
        assert_eq!(all["groups"].as_array().unwrap().len(), 21);
        assert_eq!(all["groups"][0]["name"], "apiregistration.k8s.io");
        assert!(group(&kinds, "").is_none());
        let core = resources(&kinds, "", "v1").unwrap();
        assert_eq!(core.get("apiVersion"), None);
        assert_eq!(core["resources"].as_array().unwrap().len(), 39);
    }

    #[test]
    fn the_newest_version_is_preferred() {
        let kinds = Registry::new().kinds();
        let autoscaling = group(&kinds, "autoscaling").unwrap();
        assert_eq!(autoscaling["preferredVersion"]["groupVersion"], "autoscaling/v2");
        assert_eq!(autoscaling["versions"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn storage_version_hashes_equal_those_of_kube_apiserver() {
        let kinds = Registry::new().kinds();
        let hash = |group: &str, version: &str, plural: &str| {
            let list = resources(&kinds, group, version).unwrap();
            let found =
                list["resources"].as_array().unwrap().iter().find(|found| found["name"] == plural).cloned();
            found.unwrap().get("storageVersionHash").cloned()
        };
        assert_eq!(hash("", "v1", "configmaps"), Some("qFsyl6wFWjQ=".into()));
        assert_eq!(hash("apps", "v1", "deployments"), Some("8aSe+NMegvE=".into()));
        assert_eq!(hash("autoscaling", "v1", "horizontalpodautoscalers"), Some("qwQve8ut294=".into()));
        assert_eq!(hash("events.k8s.io", "v1", "events"), hash("", "v1", "events"));
        assert_eq!(
            hash("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
            Some("jfWCUB31mvA=".into())
        );
        assert_eq!(hash("", "v1", "bindings"), None);
    }

    #[test]
    fn a_subresource_of_another_group_names_that_group_and_version() {
        let kinds = Registry::new().kinds();
        let apps = resources(&kinds, "apps", "v1").unwrap();
        let scale =
            apps["resources"].as_array().unwrap().iter().find(|found| found["name"] == "deployments/scale");
        assert_eq!(
            *scale.unwrap(),
            json!({
                "name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
                "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]
            })
        );
    }
}
