//! One rule of a role, and what it matches.

use serde_json::{Map, Value};

use super::attributes::{Attributes, ResourceAttributes};

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PolicyRule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// In which groups.
    pub api_groups: Vec<String>,
    /// With which resources.
    pub resources: Vec<String>,
    /// With which objects; all if empty.
    pub resource_names: Vec<String>,
    /// On which paths.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// The rules of somebody who may do everything.
    pub(crate) fn everything() -> Vec<Self> {
        let all = || vec!["*".to_owned()];
        vec![
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    /// Reads a rule of a stored role. What is not a list of strings counts as empty, and so grants nothing.
    pub(crate) fn from_value(rule: &Value) -> Self {
        let list = |member: &str| -> Vec<String> {
            let items = rule[member].as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(String::from).collect()
        };
        Self {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// As it is written in a role; empty lists are left out.
    pub(crate) fn to_value(&self) -> Value {
        let members = [
            ("verbs", &self.verbs),
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ];
        let given = members.into_iter().filter(|(_, list)| !list.is_empty());
        Value::Object(
            given.map(|(name, list)| (name.to_owned(), Value::from(list.clone()))).collect::<Map<_, _>>(),
        )
    }

    /// It allows this.
    pub(crate) fn allows(&self, asked: &Attributes) -> bool {
        match asked {
            Attributes::Path { verb, path } => {
                has(&self.verbs, verb)
                    && self.non_resource_urls.iter().any(|allowed| covers_path(allowed, path))
            }
            Attributes::Resource(asked) => self.allows_resource(asked),
        }
    }

    fn allows_resource(&self, asked: &ResourceAttributes) -> bool {
        has(&self.verbs, &asked.verb)
            && has(&self.api_groups, &asked.group)
            && self.resources.iter().any(|allowed| covers_resource(allowed, &asked.in_rules()))
            && (self.resource_names.is_empty() || self.resource_names.contains(&asked.name))
    }

    /// Everything it allows, `rules` allow together.
    ///
    /// A rule is the product of its lists, so each element of that product must be covered by some rule.
    pub(crate) fn is_covered_by(&self, rules: &[Self]) -> bool {
        let paths = product(&self.verbs, &self.non_resource_urls);
        let are_paths_covered = paths.into_iter().all(|(verb, path)| {
            rules.iter().any(|rule| {
                has(&rule.verbs, verb) && rule.non_resource_urls.iter().any(|have| covers_path(have, path))
            })
        });
        let names: Vec<Option<&String>> = if self.resource_names.is_empty() {
            vec![None]
        } else {
            self.resource_names.iter().map(Some).collect()
        };
        are_paths_covered
            && product(&self.verbs, &self.api_groups).into_iter().all(|(verb, group)| {
                product(&self.resources, &names).into_iter().all(|(resource, name)| {
                    rules.iter().any(|rule| {
                        has(&rule.verbs, verb)
                            && has(&rule.api_groups, group)
                            && rule.resources.iter().any(|have| covers_resource(have, resource))
                            && (rule.resource_names.is_empty()
                                || name.is_some_and(|name| rule.resource_names.contains(name)))
                    })
                })
            })
    }
}

/// `*`, or the word itself.
fn has(allowed: &[String], word: &str) -> bool {
    allowed.iter().any(|allowed| allowed == "*" || allowed == word)
}

/// `asked` is `pods` or `pods/status`; `*/status` covers the subresource of every resource.
fn covers_resource(allowed: &str, asked: &str) -> bool {
    allowed == "*"
        || allowed == asked
        || asked.split_once('/').is_some_and(|(_, below)| allowed.strip_prefix("*/") == Some(below))
}

/// A path, or the beginning of one before a `*`.
fn covers_path(allowed: &str, asked: &str) -> bool {
    allowed == asked || allowed.strip_suffix('*').is_some_and(|beginning| asked.starts_with(beginning))
}

fn product<'a, A, B>(first: &'a [A], second: &'a [B]) -> Vec<(&'a A, &'a B)> {
    first.iter().flat_map(|one| second.iter().map(move |other| (one, other))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(value: &Value) -> PolicyRule {
        PolicyRule::from_value(value)
    }

    fn resource(verb: &str, group: &str, resource: &str, name: &str) -> Attributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes::Resource(ResourceAttributes {
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: "n".into(),
            name: name.into(),
        })
    }

    #[test]
    fn what_a_rule_matches() {
        let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/status"]});
        let named =
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["secrets"], "resourceNames": ["a"]});
        let cases = [
            (&pods, resource("get", "", "pods", "x"), true),
            (&pods, resource("list", "", "pods", ""), true),
            (&pods, resource("watch", "", "pods", ""), false),
            (&pods, resource("get", "apps", "pods", "x"), false),
            (&pods, resource("get", "", "pods/log", "x"), false),
            (&pods, resource("get", "", "nodes/status", "x"), true),
            (&named, resource("delete", "any", "secrets", "a"), true),
            (&named, resource("delete", "any", "secrets", "b"), false),
            (&named, resource("list", "any", "secrets", ""), false),
        ];
        for (of, asked, expected) in cases {
            assert_eq!(rule(of).allows(&asked), expected, "{of} {asked:?}");
        }
    }

    #[test]
    fn what_a_path_rule_matches() {
        let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]});
        for (path, expected) in
            [("/healthz", true), ("/healthz/x", false), ("/apis/apps", true), ("/apis", false)]
        {
            let asked = Attributes::Path { verb: "get".into(), path: path.into() };
            assert_eq!(rule(&paths).allows(&asked), expected, "{path}");
        }
    }

    #[test]
    fn a_rule_can_be_covered_by_several() {
        let wanted = rule(&json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}));
        let get = rule(&json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}));
        let list = rule(&json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}));
        let one_pod =
            rule(&json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}));
        assert!(wanted.is_covered_by(&[get.clone(), list]));
        assert!(!wanted.is_covered_by(&[get, one_pod.clone()]));
        assert!(one_pod.is_covered_by(&PolicyRule::everything()));
        assert!(
            !PolicyRule::everything().iter().all(|rule| rule.is_covered_by(std::slice::from_ref(&wanted)))
        );
    }
}
