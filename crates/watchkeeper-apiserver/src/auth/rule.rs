//! A rule of a role, and the requests it matches.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::attributes::{Attributes, ResourceAttributes};

/// A rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct PolicyRule {
    /// The permitted verbs.
    pub verbs: Vec<String>,
    /// The API groups.
    pub api_groups: Vec<String>,
    /// The resources, such as `pods` or `pods/status`.
    pub resources: Vec<String>,
    /// The names of objects; all objects if empty.
    pub resource_names: Vec<String>,
    /// The paths outside the resources.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Returns the rules that permit everything.
    pub(crate) fn everything() -> Vec<Self> {
        let all = || vec!["*".to_owned()];
        vec![
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    /// Returns the rules of a stored role.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        role["rules"].as_array().into_iter().flatten().map(Self::from_value).collect()
    }

    /// Parses a rule of a stored role. A member that is not a list of strings counts as empty, and so grants nothing.
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

    /// Returns the rule as written in a role. Empty lists are omitted.
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

    /// Returns whether the rule allows a request.
    pub(crate) fn allows(&self, attributes: &Attributes) -> bool {
        match attributes {
            Attributes::Path { verb, path } => {
                has(&self.verbs, verb)
                    && self.non_resource_urls.iter().any(|allowed| covers_path(allowed, path))
            }
            Attributes::Resource(attributes) => self.allows_resource(attributes),
        }
    }

    fn allows_resource(&self, attributes: &ResourceAttributes) -> bool {
        has(&self.verbs, &attributes.verb)
            && has(&self.api_groups, &attributes.group)
            && self.resources.iter().any(|allowed| covers_resource(allowed, &attributes.in_rules()))
            && (self.resource_names.is_empty() || self.resource_names.contains(&attributes.name))
    }

    /// Returns the number of distinct requests that the rule lists.
    fn size(&self) -> usize {
        let resources = self.api_groups.len().saturating_mul(self.resources.len());
        let objects = resources.saturating_mul(self.resource_names.len().max(1));
        self.verbs.len().saturating_mul(objects.saturating_add(self.non_resource_urls.len()))
    }

    /// Returns whether `rules` together allow everything that this rule allows.
    ///
    /// A rule is the product of its lists, so each element of that product must be covered by some rule. A product of more
    /// than [`MAX_SIZE`] elements is covered only by a single rule that covers all of it, because a short body can expand
    /// to billions of elements.
    pub(crate) fn is_covered_by(&self, rules: &[Self]) -> bool {
        let held_rules: Vec<HeldRule<'_>> = rules.iter().map(HeldRule::new).collect();
        if held_rules.iter().any(|held_rule| held_rule.covers_all_of(self)) {
            return true;
        }
        if self.size() > MAX_SIZE {
            return false;
        }
        let names: Vec<Option<&str>> = if self.resource_names.is_empty() {
            vec![None]
        } else {
            self.resource_names.iter().map(|name| Some(name.as_str())).collect()
        };
        self.verbs.iter().all(|verb| {
            let held_rules: Vec<&HeldRule<'_>> =
                held_rules.iter().filter(|held_rule| held_rule.verbs.has(verb)).collect();
            let are_paths_covered = self
                .non_resource_urls
                .iter()
                .all(|path| held_rules.iter().any(|held_rule| held_rule.has_path(path)));
            are_paths_covered
                && self.api_groups.iter().all(|group| {
                    self.resources.iter().all(|resource| {
                        names.iter().all(|name| {
                            held_rules.iter().any(|held_rule| {
                                held_rule.groups.has(group)
                                    && held_rule.has_resource(resource)
                                    && held_rule.has_name(*name)
                            })
                        })
                    })
                })
        })
    }
}

/// The largest product of lists that is compared element by element.
const MAX_SIZE: usize = 100_000;

/// A rule of the user in the form of sets, because comparing lists with lists takes quadratic time.
struct HeldRule<'a> {
    verbs: WordSet<'a>,
    groups: WordSet<'a>,
    resources: WordSet<'a>,
    names: HashSet<&'a str>,
    paths: &'a [String],
}

impl<'a> HeldRule<'a> {
    fn new(rule: &'a PolicyRule) -> Self {
        Self {
            verbs: WordSet::new(&rule.verbs),
            groups: WordSet::new(&rule.api_groups),
            resources: WordSet::new(&rule.resources),
            names: rule.resource_names.iter().map(String::as_str).collect(),
            paths: &rule.non_resource_urls,
        }
    }

    fn has_resource(&self, resource: &str) -> bool {
        let below = || resource.split_once('/').map(|(_, below)| format!("*/{below}"));
        self.resources.has(resource)
            || below().is_some_and(|below| self.resources.words.contains(below.as_str()))
    }

    fn has_name(&self, name: Option<&str>) -> bool {
        self.names.is_empty() || name.is_some_and(|name| self.names.contains(name))
    }

    fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|have| covers_path(have, path))
    }

    fn covers_all_of(&self, rule: &PolicyRule) -> bool {
        let is_named = !rule.resource_names.is_empty();
        let are_resources_covered = rule.api_groups.iter().all(|group| self.groups.has(group))
            && rule.resources.iter().all(|resource| self.has_resource(resource))
            && (self.names.is_empty()
                || is_named && rule.resource_names.iter().all(|name| self.has_name(Some(name))));
        // A rule covers resources or paths; one without resources has no resources to cover.
        (rule.resources.is_empty() || are_resources_covered)
            && rule.verbs.iter().all(|verb| self.verbs.has(verb))
            && rule.non_resource_urls.iter().all(|path| self.has_path(path))
    }
}

/// A set of words in which `*` matches every word.
struct WordSet<'a> {
    words: HashSet<&'a str>,
    is_all: bool,
}

impl<'a> WordSet<'a> {
    fn new(words: &'a [String]) -> Self {
        let words: HashSet<&str> = words.iter().map(String::as_str).collect();
        Self { is_all: words.contains("*"), words }
    }

    fn has(&self, word: &str) -> bool {
        self.is_all || self.words.contains(word)
    }
}

/// Returns whether a list contains `*` or the word.
fn has(allowed: &[String], word: &str) -> bool {
    allowed.iter().any(|allowed| allowed == "*" || allowed == word)
}

/// Returns whether an entry of a rule covers a resource such as `pods` or `pods/status`. The entry `*/status` covers that
/// subresource of every resource.
fn covers_resource(allowed: &str, attributes: &str) -> bool {
    allowed == "*"
        || allowed == attributes
        || attributes.split_once('/').is_some_and(|(_, below)| allowed.strip_prefix("*/") == Some(below))
}

/// Returns whether an entry of a rule covers a path. An entry is a path, or a prefix followed by `*`.
fn covers_path(allowed: &str, attributes: &str) -> bool {
    allowed == attributes
        || allowed.strip_suffix('*').is_some_and(|beginning| attributes.starts_with(beginning))
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
    fn a_resource_rule_matches_verbs_groups_resources_and_names() {
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
        for (of, attributes, expected) in cases {
            assert_eq!(rule(of).allows(&attributes), expected, "{of} {attributes:?}");
        }
    }

    #[test]
    fn a_non_resource_rule_matches_paths_and_prefixes() {
        let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]});
        for (path, expected) in
            [("/healthz", true), ("/healthz/x", false), ("/apis/apps", true), ("/apis", false)]
        {
            let attributes = Attributes::Path { verb: "get".into(), path: path.into() };
            assert_eq!(rule(&paths).allows(&attributes), expected, "{path}");
        }
    }

    #[test]
    fn a_rule_can_be_covered_by_several() {
        let requested = rule(&json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}));
        let get = rule(&json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}));
        let list = rule(&json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}));
        let one_pod =
            rule(&json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}));
        assert!(requested.is_covered_by(&[get.clone(), list]));
        assert!(!requested.is_covered_by(&[get, one_pod.clone()]));
        assert!(one_pod.is_covered_by(&PolicyRule::everything()));
        assert!(
            !PolicyRule::everything().iter().all(|rule| rule.is_covered_by(std::slice::from_ref(&requested)))
        );
    }

    #[test]
    fn a_rule_that_expands_to_billions_of_requests_is_compared_quickly() {
        let words = |prefix: &str| (0..2_000).map(|index| format!("{prefix}{index}")).collect::<Vec<_>>();
        let huge = PolicyRule {
            verbs: words("v"),
            api_groups: words("g"),
            resources: words("r"),
            resource_names: words("n"),
            ..PolicyRule::default()
        };
        assert!(huge.is_covered_by(&PolicyRule::everything()));
        assert!(huge.is_covered_by(std::slice::from_ref(&huge)));
        let get = rule(&json!({"verbs": ["v1"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(!huge.is_covered_by(&[get]));
    }
}
