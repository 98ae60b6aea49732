//! The merge of the facts of several Kubernetes versions into one table.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Error,
    sources::{ResourceFacts, Scope},
};

/// A contiguous range of Kubernetes minor versions. `None` is an open end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    pub(super) from: Option<u32>,
    pub(super) to: Option<u32>,
}

/// A group and version, with the names of its accessor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupVersion {
    /// The accessor, such as `apps_v1`.
    pub(super) accessor: String,
    /// The name of the type, such as `AppsV1`.
    pub(super) type_name: String,
    /// The API version, such as `apps/v1`.
    pub(super) api_version: String,
    /// The module in k8s-openapi, such as `api::apps::v1`.
    pub(super) module: String,
}

/// All resources by group-version, each with the Kubernetes versions that have it.
pub(super) struct Model {
    minors: Vec<u32>,
    groups: BTreeMap<GroupVersion, BTreeMap<ResourceFacts, BTreeSet<u32>>>,
}

impl Model {
    pub(super) fn new(minors: &[u32]) -> Self {
        Self { minors: minors.to_vec(), groups: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, minor: u32, facts: ResourceFacts) -> Result<(), Error> {
        if facts.scope == Scope::SubResource {
            return Err(Error::UnplacedSubresource { group: facts.group, kind: facts.kind });
        }
        let resources = self.groups.entry(group_version(&facts)).or_default();
        resources.entry(facts).or_default().insert(minor);
        Ok(())
    }

    /// Returns every group-version with the ranges in which it exists.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&GroupVersion, Vec<Range>)> {
        self.groups.iter().map(|(group, resources)| {
            let minors = resources.values().flatten().copied().collect();
            (group, self.ranges(&minors))
        })
    }

    /// Returns the resources of a group-version, grouped by the Kubernetes versions in which they exist.
    pub(super) fn resources(&self, group: &GroupVersion) -> BTreeMap<Range, Vec<&ResourceFacts>> {
        let mut blocks: BTreeMap<Range, Vec<&ResourceFacts>> = BTreeMap::new();
        for (facts, minors) in self.groups.get(group).into_iter().flatten() {
            for range in self.ranges(minors) {
                blocks.entry(range).or_default().push(facts);
            }
        }
        for block in blocks.values_mut() {
            block.sort_by_key(|facts| &facts.plural);
        }
        blocks
    }

    fn ranges(&self, present: &BTreeSet<u32>) -> Vec<Range> {
        let (first, last) = (self.minors.first().copied(), self.minors.last().copied());
        let runs = self.minors.chunk_by(|a, b| present.contains(a) == present.contains(b));
        runs.filter(|run| run.first().is_some_and(|minor| present.contains(minor)))
            .map(|run| Range {
                from: run.first().copied().filter(|minor| Some(*minor) != first),
                to: run.last().copied().filter(|minor| Some(*minor) != last),
            })
            .collect()
    }
}

fn group_version(facts: &ResourceFacts) -> GroupVersion {
    // `rbac.authorization.k8s.io` becomes `rbac`, as in client-go; the empty group becomes `core`.
    let group = facts.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let api_version = if facts.group.is_empty() {
        facts.version.clone()
    } else {
        format!("{}/{}", facts.group, facts.version)
    };
    GroupVersion {
        accessor: format!("{group}_{}", facts.version),
        type_name: format!("{}{}", capitalised(group), capitalised(&facts.version)),
        api_version,
        module: facts.module.clone(),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Returns the method name of a resource: its plural, with the word boundaries of its kind (`NetworkPolicy` and
/// `networkpolicies` become `network_policies`).
pub(super) fn method_name(kind: &str, plural: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut name = String::new();
    let mut rest = plural.chars().peekable();
    for (at, letter) in letters.iter().enumerate() {
        if rest.peek() != Some(&letter.to_ascii_lowercase()) {
            break;
        }
        let after_lower = at > 0 && letters[at - 1].is_lowercase();
        let before_lower = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (after_lower || (at > 0 && before_lower)) {
            name.push('_');
        }
        name.extend(rest.next());
    }
    name.extend(rest);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kind: &str, plural: &str) -> ResourceFacts {
        ResourceFacts {
            group: "example.io".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            scope: Scope::Namespace,
            listable: true,
            module: "api::example::v1".into(),
        }
    }

    #[test]
    fn method_names_are_plurals_with_the_words_of_the_kind() {
        for (kind, plural, name) in [
            ("Pod", "pods", "pods"),
            ("Endpoints", "endpoints", "endpoints"),
            ("EndpointSlice", "endpointslices", "endpoint_slices"),
            ("NetworkPolicy", "networkpolicies", "network_policies"),
            ("Ingress", "ingresses", "ingresses"),
            ("HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontal_pod_autoscalers"),
            ("CSIDriver", "csidrivers", "csi_drivers"),
            ("CSIStorageCapacity", "csistoragecapacities", "csi_storage_capacities"),
            ("ServiceCIDR", "servicecidrs", "service_cidrs"),
            ("IPAddress", "ipaddresses", "ip_addresses"),
            ("APIService", "apiservices", "api_services"),
        ] {
            assert_eq!(method_name(kind, plural), name);
        }
    }

    #[test]
    fn groups_are_named_by_their_first_label() {
        for (group, version, accessor, type_name, api_version) in [
            ("", "v1", "core_v1", "CoreV1", "v1"),
            ("rbac.authorization.k8s.io", "v1", "rbac_v1", "RbacV1", "rbac.authorization.k8s.io/v1"),
            ("resource.k8s.io", "v1beta2", "resource_v1beta2", "ResourceV1beta2", "resource.k8s.io/v1beta2"),
        ] {
            let group = group_version(&ResourceFacts {
                group: group.into(),
                version: version.into(),
                ..facts("Widget", "widgets")
            });
            assert_eq!(
                (group.accessor.as_str(), group.type_name.as_str(), group.api_version.as_str()),
                (accessor, type_name, api_version)
            );
        }
    }

    #[test]
    fn presence_becomes_ranges_that_are_open_at_the_known_ends() {
        let model = Model::new(&[33, 34, 35, 36, 37]);
        let ranges = |minors: &[u32]| model.ranges(&minors.iter().copied().collect());
        let range = |from, to| Range { from, to };
        assert_eq!(ranges(&[33, 34, 35, 36, 37]), [range(None, None)]);
        assert_eq!(ranges(&[33, 34]), [range(None, Some(34))]);
        assert_eq!(ranges(&[36, 37]), [range(Some(36), None)]);
        assert_eq!(ranges(&[35]), [range(Some(35), Some(35))]);
        assert_eq!(ranges(&[33, 36]), [range(None, Some(33)), range(Some(36), Some(36))]);
        assert_eq!(ranges(&[]), []);
    }

    #[test]
    fn a_group_exists_where_any_of_its_resources_does() {
        let mut model = Model::new(&[33, 34, 35]);
        model.add(33, facts("Widget", "widgets")).unwrap();
        model.add(34, facts("Widget", "widgets")).unwrap();
        model.add(34, facts("Gadget", "gadgets")).unwrap();
        let groups: Vec<_> = model.groups().collect();
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].1, [Range { from: None, to: Some(34) }]);
        let blocks = model.resources(groups[0].0);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[&Range { from: Some(34), to: Some(34) }][0].kind, "Gadget");
    }

    #[test]
    fn a_resource_that_changed_its_scope_is_two_rows_that_never_meet() {
        let mut model = Model::new(&[33, 34]);
        model.add(33, facts("Widget", "widgets")).unwrap();
        model.add(34, ResourceFacts { scope: Scope::Cluster, ..facts("Widget", "widgets") }).unwrap();
        let (group, _) = model.groups().next().unwrap();
        let ranges: Vec<Range> = model.resources(group).into_keys().collect();
        assert_eq!(ranges, [Range { from: None, to: Some(33) }, Range { from: Some(34), to: None }]);
    }

    #[test]
    fn an_unplaced_subresource_stops_the_generator() {
        let mut model = Model::new(&[33]);
        let error =
            model.add(33, ResourceFacts { scope: Scope::SubResource, ..facts("Spin", "spin") }).unwrap_err();
        assert!(error.to_string().contains("example.io/Spin"), "{error}");
    }
}
