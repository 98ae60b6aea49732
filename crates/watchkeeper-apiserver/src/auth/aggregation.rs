//! Aggregated cluster roles: a role whose rules are those of the roles its label selectors select.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::rule::PolicyRule;

/// The longest chain of aggregated roles that is followed. Roles that aggregate each other are a chain without end.
const MAX_CHAIN: usize = 16;

/// Returns the rules of each aggregated role among `cluster_roles`, by name.
///
/// The rules come in the order of the selectors and, within a selector, of the names of the selected roles; each rule
/// comes once. Rules that are stored in an aggregated role itself do not count: they are replaced by the result.
pub(crate) fn aggregate(cluster_roles: &[Value]) -> BTreeMap<&str, Vec<PolicyRule>> {
    let by_name: BTreeMap<&str, &Value> = cluster_roles.iter().map(|role| (name_of(role), role)).collect();
    let members: BTreeMap<&str, Vec<&str>> = by_name
        .iter()
        .filter_map(|(name, role)| {
            let selectors = selectors_of(role)?;
            let selected = selectors.iter().flat_map(|selector| {
                by_name
                    .iter()
                    .filter(move |(other, candidate)| *other != name && selects(selector, candidate))
                    .map(|(other, _)| *other)
            });
            Some((*name, selected.collect()))
        })
        .collect();
    let own: BTreeMap<&str, Vec<PolicyRule>> = by_name
        .iter()
        .filter(|(name, _)| !members.contains_key(*name))
        .map(|(name, role)| (*name, PolicyRule::all_of(role)))
        .collect();
    let mut rules: BTreeMap<&str, Vec<PolicyRule>> = members.keys().map(|name| (*name, Vec::new())).collect();
    for _ in 0..MAX_CHAIN {
        let next = members
            .iter()
            .map(|(name, members)| {
                let mut seen = HashSet::new();
                let of_members = members.iter().filter_map(|member| own.get(member).or(rules.get(member)));
                let all = of_members.flatten();
                (*name, all.filter(|rule| seen.insert(*rule)).cloned().collect())
            })
            .collect();
        if next == rules {
            break;
        }
        rules = next;
    }
    rules
}

fn name_of(role: &Value) -> &str {
    role["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the selectors of an aggregated role; none for other roles.
fn selectors_of(role: &Value) -> Option<&[Value]> {
    let rule = role["aggregationRule"].as_object()?;
    Some(rule.get("clusterRoleSelectors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default())
}

/// Returns whether a label selector, as it is written in an object, selects `object`. A malformed one selects nothing.
fn selects(selector: &Value, object: &Value) -> bool {
    let label = |name: &str| object["metadata"]["labels"][name].as_str();
    let equal = selector["matchLabels"].as_object().is_none_or(|labels| {
        labels.iter().all(|(name, value)| value.as_str().is_some_and(|value| label(name) == Some(value)))
    });
    let expressions = selector["matchExpressions"].as_array().map(Vec::as_slice).unwrap_or_default();
    equal
        && expressions.iter().all(|expression| {
            let Some(name) = expression["key"].as_str() else { return false };
            let values = expression["values"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_among =
                label(name).is_some_and(|have| values.iter().any(|value| value.as_str() == Some(have)));
            match expression["operator"].as_str() {
                Some("In") => is_among,
                Some("NotIn") => !is_among,
                Some("Exists") => label(name).is_some(),
                Some("DoesNotExist") => label(name).is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(name: &str, label: &str, verbs: &[&str]) -> Value {
        let rules: Vec<Value> = verbs
            .iter()
            .map(|verb| json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}))
            .collect();
        json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": rules})
    }

    fn aggregated(name: &str, label: &str, selectors: &Value) -> Value {
        json!({"metadata": {"name": name, "labels": {label: "true"}}, "aggregationRule": {"clusterRoleSelectors": selectors}})
    }

    fn verbs(roles: &[Value], name: &str) -> Vec<String> {
        aggregate(roles)[name].iter().flat_map(|rule| rule.verbs.clone()).collect()
    }

    #[test]
    fn aggregated_rules_are_ordered_by_selector_and_name_without_duplicates() {
        let roles = [
            plain("b", "one", &["list", "get"]),
            plain("a", "one", &["get", "watch"]),
            plain("c", "two", &["get", "delete"]),
            aggregated(
                "all",
                "x",
                &json!([{"matchLabels": {"two": "true"}}, {"matchLabels": {"one": "true"}}]),
            ),
        ];
        assert_eq!(verbs(&roles, "all"), ["get", "delete", "watch", "list"]);
        assert!(!aggregate(&roles).contains_key("a"), "only aggregated roles");
    }

    #[test]
    fn aggregated_roles_are_aggregated_in_turn() {
        let roles = [
            plain("reader", "to-view", &["get"]),
            plain("writer", "to-edit", &["update"]),
            aggregated("view", "to-edit", &json!([{"matchLabels": {"to-view": "true"}}])),
            aggregated("edit", "to-admin", &json!([{"matchLabels": {"to-edit": "true"}}])),
            aggregated(
                "admin",
                "x",
                &json!([{"matchExpressions": [{"key": "to-admin", "operator": "Exists"}]}]),
            ),
        ];
        assert_eq!(verbs(&roles, "admin"), ["get", "update"]);
    }

    #[test]
    fn roles_that_aggregate_each_other_converge() {
        let roles = [
            plain("reader", "to-a", &["get"]),
            aggregated("a", "to-b", &json!([{"matchLabels": {"to-a": "true"}}])),
            aggregated("b", "to-c", &json!([{"matchLabels": {"to-b": "true"}}])),
            aggregated("c", "to-a", &json!([{"matchLabels": {"to-c": "true"}}])),
        ];
        for name in ["a", "b", "c"] {
            assert_eq!(verbs(&roles, name), ["get"], "{name}");
        }
    }

    #[test]
    fn a_selector_without_terms_selects_every_other_role() {
        let roles = [plain("a", "l", &["get"]), aggregated("all", "l", &json!([{}]))];
        assert_eq!(verbs(&roles, "all"), ["get"]);
        assert_eq!(verbs(&[plain("a", "l", &["get"]), aggregated("none", "l", &json!([]))], "none").len(), 0);
    }
}
