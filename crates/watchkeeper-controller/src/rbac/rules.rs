//! Derivation of the minimal RBAC rules for declared access.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{Access, Verb};

/// RBAC rules for the whole cluster and for single namespaces.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// The cluster-wide rules.
    pub cluster: Vec<PolicyRule>,
    /// The additional rules of each namespace.
    pub namespaces: BTreeMap<String, Vec<PolicyRule>>,
}

/// The verbs by API group and resource.
type Verbs = BTreeMap<(String, String), BTreeSet<Verb>>;

/// Returns the minimal rules that grant exactly the declared access.
///
/// Each resource is in one rule; resources of one group with the same verbs share a rule; cluster-wide access
/// is not repeated per namespace. The result is sorted, so it does not depend on the order of the
/// declarations.
pub fn rules(declared: &[Access]) -> Rules {
    let everywhere = verbs_of(declared.iter().filter(|access| access.namespace.is_none()));
    let names: BTreeSet<&String> = declared.iter().filter_map(|access| access.namespace.as_ref()).collect();
    let mut namespaces = BTreeMap::new();
    for name in names {
        let mut verbs = verbs_of(declared.iter().filter(|access| access.namespace.as_ref() == Some(name)));
        for (resource, verbs) in &mut verbs {
            if let Some(allowed) = everywhere.get(resource) {
                verbs.retain(|verb| !allowed.contains(verb));
            }
        }
        let rules = merged(&verbs);
        if !rules.is_empty() {
            namespaces.insert(name.clone(), rules);
        }
    }
    Rules { cluster: merged(&everywhere), namespaces }
}

fn verbs_of<'a>(declared: impl Iterator<Item = &'a Access>) -> Verbs {
    let mut verbs = Verbs::new();
    for access in declared {
        let resource = (access.group.clone(), access.resource.clone());
        verbs.entry(resource).or_default().extend(&access.verbs);
    }
    verbs
}

fn merged(verbs: &Verbs) -> Vec<PolicyRule> {
    let mut resources: BTreeMap<(&String, &BTreeSet<Verb>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        if !verbs.is_empty() {
            resources.entry((group, verbs)).or_default().push(resource.clone());
        }
    }
    let mut rules: Vec<PolicyRule> = resources
        .into_iter()
        .map(|((group, verbs), resources)| PolicyRule {
            api_groups: Some(vec![group.clone()]),
            resources: Some(resources),
            verbs: verbs.iter().map(|verb| verb.as_str().to_owned()).collect(),
            ..PolicyRule::default()
        })
        .collect();
    rules.sort_by(|left, right| {
        (&left.api_groups, &left.resources).cmp(&(&right.api_groups, &right.resources))
    });
    rules
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(owned(resources)),
            verbs: owned(verbs),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn resources_with_the_same_verbs_share_a_rule_and_verbs_of_one_resource_are_merged() {
        let declared = [
            Access::new("apps", "statefulsets", Verb::READ),
            Access::new("apps", "deployments", [Verb::Patch]),
            Access::new("apps", "deployments", Verb::READ),
            Access::new("apps", "daemonsets", Verb::READ),
            Access::new("", "pods", Verb::READ),
        ];
        let expected = [
            rule("", &["pods"], &["get", "list", "watch"]),
            rule("apps", &["daemonsets", "statefulsets"], &["get", "list", "watch"]),
            rule("apps", &["deployments"], &["get", "list", "watch", "patch"]),
        ];
        assert_eq!(rules(&declared).cluster, expected);
    }

    #[test]
    fn cluster_wide_access_is_not_repeated_per_namespace() {
        let declared = [
            Access::new("", "secrets", [Verb::Get]),
            Access::new("", "secrets", [Verb::Get, Verb::Create]).in_namespace("shop"),
            Access::new("", "secrets", [Verb::Get]).in_namespace("till"),
        ];
        let rules = rules(&declared);
        assert_eq!(rules.namespaces.keys().collect::<Vec<_>>(), ["shop"]);
        assert_eq!(rules.namespaces["shop"], [rule("", &["secrets"], &["create"])]);
    }

    fn access() -> impl Strategy<Value = Access> {
        let group = prop::sample::select(vec!["", "apps"]);
        let resource = prop::sample::select(vec!["a", "b", "c/status"]);
        let namespace = prop::option::of(prop::sample::select(vec!["x", "y"]));
        let verbs = prop::collection::btree_set(
            prop::sample::select(vec![Verb::Get, Verb::List, Verb::Patch, Verb::Delete]),
            0..4,
        );
        (group, resource, namespace, verbs).prop_map(|(group, resource, namespace, verbs)| {
            let access = Access::new(group, resource, verbs);
            match namespace {
                Some(namespace) => access.in_namespace(namespace),
                None => access,
            }
        })
    }

    fn allows(rules: &[PolicyRule], group: &str, resource: &str, verb: &str) -> usize {
        let has = |words: Option<&Vec<String>>, word: &str| {
            words.is_some_and(|words| words.iter().any(|w| w == word))
        };
        let is_match = |rule: &&PolicyRule| {
            has(rule.api_groups.as_ref(), group)
                && has(rule.resources.as_ref(), resource)
                && rule.verbs.iter().any(|v| v == verb)
        };
        rules.iter().filter(is_match).count()
    }

    proptest! {
        #[test]
        fn rules_grant_exactly_the_declared_access_once_in_any_order(
            declared in prop::collection::vec(access(), 0..10),
        ) {
            let made = rules(&declared);
            let mut reversed = declared.clone();
            reversed.reverse();
            prop_assert_eq!(&made, &rules(&reversed));
            for group in ["", "apps"] {
                for resource in ["a", "b", "c/status"] {
                    for verb in [Verb::Get, Verb::List, Verb::Patch, Verb::Delete] {
                        let is_declared = |namespace: Option<&str>| declared.iter().any(|access| {
                            access.group == group && access.resource == resource
                                && access.namespace.as_deref() == namespace && access.verbs.contains(&verb)
                        });
                        let everywhere = allows(&made.cluster, group, resource, verb.as_str());
                        prop_assert_eq!(everywhere, usize::from(is_declared(None)));
                        for namespace in ["x", "y"] {
                            let here = made.namespaces.get(namespace).map_or(0, |rules| {
                                allows(rules, group, resource, verb.as_str())
                            });
                            let wanted = is_declared(Some(namespace)) && !is_declared(None);
                            prop_assert_eq!(here, usize::from(wanted));
                        }
                    }
                }
            }
        }
    }
}
