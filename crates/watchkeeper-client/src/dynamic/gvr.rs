//! Names of resources: group, version and plural.

use std::{fmt, str::FromStr};

use kube_core::{GroupVersion, GroupVersionKind};

/// The API group, version and plural name that identify a resource.
///
/// Prints and parses as `apps/v1/deployments`, or `v1/pods` for the core group, whose name is empty. That is
/// the resource's URL below `/apis/` or `/api/`. Parsing checks the number of parts only. A part that is invalid in a
/// URL is rejected when a request is built.
///
/// ```
/// use watchkeeper_client::dynamic::GroupVersionResource;
///
/// let deployments: GroupVersionResource = "apps/v1/deployments".parse()?;
/// assert_eq!(deployments, GroupVersionResource::new("apps", "v1", "deployments"));
/// assert_eq!(GroupVersionResource::new("", "v1", "pods").to_string(), "v1/pods");
/// # Ok::<(), watchkeeper_client::dynamic::ParseResourceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "GroupVersionResources")]
pub struct GroupVersionResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural name, as in URLs.
    pub resource: String,
}

impl GroupVersionResource {
    /// Creates the name of `resource` in `version` of `group`, which is empty for the core group.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// Returns the group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::gv(&self.group, &self.version)
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.resource)
    }
}

/// The error returned when a text is not a valid resource name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} does not name a resource; write group/version/resource, or version/resource for the core group"
)]
pub struct ParseResourceError {
    text: String,
}

impl FromStr for GroupVersionResource {
    type Err = ParseResourceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            parts if parts.iter().any(|part| part.is_empty()) => {
                Err(ParseResourceError { text: text.into() })
            }
            [version, resource] => Ok(Self::new("", *version, *resource)),
            [group, version, resource] => Ok(Self::new(*group, *version, *resource)),
            _ => Err(ParseResourceError { text: text.into() }),
        }
    }
}

impl From<kube_core::gvk::GroupVersionResource> for GroupVersionResource {
    fn from(other: kube_core::gvk::GroupVersionResource) -> Self {
        Self { group: other.group, version: other.version, resource: other.resource }
    }
}

impl From<&kube_core::ApiResource> for GroupVersionResource {
    fn from(resource: &kube_core::ApiResource) -> Self {
        Self::new(&resource.group, &resource.version, &resource.plural)
    }
}

/// The kind stays empty: requests need the resource name only, and objects carry their kind.
impl From<&GroupVersionResource> for kube_core::ApiResource {
    fn from(resource: &GroupVersionResource) -> Self {
        let kind_unknown = GroupVersionKind::gvk(&resource.group, &resource.version, "");
        Self::from_gvk_with_plural(&kind_unknown, &resource.resource)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_without_exactly_two_or_three_parts_is_rejected() {
        for text in ["", "pods", "/v1/pods", "v1/", "apps//deployments", "apps/v1/deployments/scale", "//"] {
            let error = text.parse::<GroupVersionResource>().unwrap_err();
            assert!(error.to_string().contains("group/version/resource"), "{error}");
        }
    }

    #[test]
    fn kube_names_convert() {
        let kube = kube_core::gvk::GroupVersionResource::gvr("apps", "v1", "deployments");
        assert_eq!(GroupVersionResource::from(kube).to_string(), "apps/v1/deployments");
        let pods = kube_core::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        assert_eq!(GroupVersionResource::from(&pods).to_string(), "v1/pods");
    }

    proptest! {
        #[test]
        fn a_printed_name_parses_back(group in "[^/]{0,20}", version in "[^/]{1,8}", resource in "[^/]{1,20}") {
            let name = GroupVersionResource { group, version, resource };
            prop_assert_eq!(name.to_string().parse::<GroupVersionResource>(), Ok(name));
        }
    }
}
