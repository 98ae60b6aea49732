//! The namespace and selectors of a source.

use std::collections::BTreeMap;

use kube_core::{Expression, SelectorExt as _};

/// The namespace and the selectors of a [`ListerWatcher`](super::ListerWatcher).
///
/// ```
/// use std::collections::BTreeMap;
/// use watchkeeper_client::list_watch::Selection;
///
/// let mut selection = Selection::default();
/// selection.label_selector = Some("app in (web, shop)".into());
/// let labels = |app: &str| BTreeMap::from([("app".to_owned(), app.to_owned())]);
/// assert_eq!(selection.includes(Some("default"), "a", Some(&labels("web"))), Some(true));
/// assert_eq!(selection.includes(Some("default"), "a", Some(&labels("mail"))), Some(false));
///
/// selection.field_selector = Some("spec.nodeName=node-1".into());
/// assert_eq!(selection.includes(Some("default"), "a", Some(&labels("web"))), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Selection {
    /// The namespace. `None` selects all namespaces, and is the value for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The label selector, as in `app=web,tier!=db`.
    pub label_selector: Option<String>,
    /// The field selector, as in `metadata.name=web`.
    pub field_selector: Option<String>,
}

impl Selection {
    /// Returns whether an object with this metadata is selected, or `None` if the metadata is not sufficient
    /// to decide.
    ///
    /// The selectors are evaluated as by an API server. Not decidable are field selectors on anything but
    /// `metadata.name` and `metadata.namespace`, label selectors with `<` or `>`, and label selectors on an
    /// object whose `labels` are unknown. A selector that excludes the object by one of its requirements
    /// excludes it regardless of the others.
    pub fn includes(
        &self,
        namespace: Option<&str>,
        name: &str,
        labels: Option<&BTreeMap<String, String>>,
    ) -> Option<bool> {
        let in_namespace = self.namespace.as_deref().is_none_or(|selected| namespace == Some(selected));
        let by_labels = self.label_selector.as_deref().into_iter().flat_map(|selector| {
            requirements(selector).map(|requirement| Some(expression(requirement)?.matches(labels?)))
        });
        let by_fields = self.field_selector.as_deref().into_iter().flat_map(|selector| {
            // An escaped character is not part of any name, and obscures where a requirement ends.
            let is_plain = !selector.contains('\\');
            let requirements = selector.split(',').filter(|requirement| !requirement.is_empty());
            requirements.map(move |requirement| {
                let is_met = field_requirement(requirement, namespace.unwrap_or_default(), name);
                is_met.filter(|_| is_plain)
            })
        });
        let mut is_included = Some(in_namespace);
        for is_met in by_labels.chain(by_fields) {
            is_included = match (is_included, is_met) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        is_included
    }
}

/// Splits a label selector at the commas that are not in a list of values.
fn requirements(selector: &str) -> impl Iterator<Item = &str> {
    let mut is_in_list = false;
    let requirements = selector.split(move |character| {
        is_in_list = character == '(' || is_in_list && character != ')';
        character == ',' && !is_in_list
    });
    requirements.filter(move |requirement| !(requirement.is_empty() && selector.is_empty()))
}

/// Parses one requirement of a label selector. `None` for a requirement that is not an equality, a set or an existence.
fn expression(requirement: &str) -> Option<Expression> {
    let requirement = requirement.trim();
    let text = |part: &str| part.trim().to_owned();
    if let Some(head) = requirement.strip_suffix(')') {
        let (head, values) = head.split_once('(')?;
        let (key, operator) = head.trim_end().rsplit_once(char::is_whitespace)?;
        let values = values.split(',').map(text).collect();
        return match operator {
            "in" => Some(Expression::In(text(key), values)),
            "notin" => Some(Expression::NotIn(text(key), values)),
            _ => None,
        };
    }
    if let Some((key, value)) = requirement.split_once("!=") {
        return Some(Expression::NotEqual(text(key), text(value)));
    }
    if let Some((key, value)) = requirement.split_once('=') {
        return Some(Expression::Equal(text(key), text(value.strip_prefix('=').unwrap_or(value))));
    }
    let (is_absent, key) = match requirement.strip_prefix('!') {
        Some(key) => (true, text(key)),
        None => (false, text(requirement)),
    };
    let is_key =
        !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '('));
    is_key.then_some(if is_absent { Expression::DoesNotExist(key) } else { Expression::Exists(key) })
}

/// Returns whether an object of this name meets one requirement of a field selector; `None` if the name does
/// not decide it.
fn field_requirement(requirement: &str, namespace: &str, name: &str) -> Option<bool> {
    let (field, value) = requirement.split_once('=')?;
    let (field, is_equality) = match field.strip_suffix('!') {
        Some(field) => (field, false),
        None => (field, true),
    };
    let is_equal = match field {
        "metadata.name" => value.strip_prefix('=').unwrap_or(value) == name,
        "metadata.namespace" => value.strip_prefix('=').unwrap_or(value) == namespace,
        _ => return None,
    };
    Some(is_equal == is_equality)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    fn web() -> BTreeMap<String, String> {
        [("app", "web"), ("tier", ""), ("example.com/size", "3")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }

    #[test]
    fn a_label_selector_is_evaluated_as_a_server_does() {
        let cases = [
            ("", YES),
            ("app=web", YES),
            ("app==web", YES),
            (" app = web ", YES),
            ("app=mail", NO),
            ("app!=web", NO),
            ("app!=mail", YES),
            ("other!=x", YES),
            ("tier=", YES),
            ("app=", NO),
            ("app", YES),
            ("other", NO),
            ("!other", YES),
            ("! app", NO),
            ("app in (mail,web)", YES),
            ("app in ( mail , shop )", NO),
            ("app in(web)", YES),
            ("tier in (x,)", YES),
            ("app notin (mail,web)", NO),
            ("app notin (mail)", YES),
            ("other notin (mail)", YES),
            ("other in (mail,web)", NO),
            ("app in (mail,web),tier=", YES),
            ("app in (mail,web),tier=x", NO),
            ("tier=x,app in (mail,web)", NO),
            ("app=web,!other,example.com/size=3", YES),
            ("app=web,!other,example.com/size=4", NO),
            ("example.com/size>2", None),
            ("example.com/size<2,app=web", None),
            ("example.com/size>2,app=mail", NO),
            ("app has (web)", None),
            ("app web", None),
            ("app=web,,tier", None),
            ("!", None),
        ];
        for (selector, expected) in cases {
            let selection = Selection { label_selector: Some(selector.into()), ..Selection::default() };
            assert_eq!(selection.includes(Some("shop"), "a", Some(&web())), expected, "{selector:?}");
        }
    }

    #[test]
    fn labels_that_are_not_known_decide_nothing() {
        let mut selection = Selection { label_selector: Some("app=web".into()), ..Selection::default() };
        assert_eq!(selection.includes(Some("shop"), "a", None), None);
        selection.namespace = Some("mail".into());
        assert_eq!(selection.includes(Some("shop"), "a", None), NO);
        selection.label_selector = Some(String::new());
        assert_eq!(selection.includes(Some("mail"), "a", None), YES);
    }

    #[test]
    fn names_and_namespaces_are_the_only_fields_that_decide() {
        let cases = [
            ("", YES),
            ("metadata.name=a", YES),
            ("metadata.name==a", YES),
            ("metadata.name=b", NO),
            ("metadata.name!=a", NO),
            ("metadata.name!=b", YES),
            ("metadata.namespace=shop,metadata.name=a", YES),
            ("metadata.namespace!=shop", NO),
            ("metadata.namespace=", NO),
            ("spec.nodeName=n", None),
            ("spec.nodeName=n,metadata.name=a", None),
            ("spec.nodeName=n,metadata.name=b", NO),
            ("metadata.name", None),
            (r"spec.x=\,metadata.name=b", None),
        ];
        for (selector, expected) in cases {
            let selection = Selection { field_selector: Some(selector.into()), ..Selection::default() };
            assert_eq!(selection.includes(Some("shop"), "a", Some(&web())), expected, "{selector:?}");
        }
    }

    #[test]
    fn an_object_of_another_namespace_or_of_none_is_not_included() {
        let of = |namespace: Option<&str>| Selection {
            namespace: namespace.map(Into::into),
            ..Selection::default()
        };
        assert_eq!(of(Some("shop")).includes(Some("shop"), "a", None), YES);
        assert_eq!(of(Some("shop")).includes(Some("mail"), "a", None), NO);
        assert_eq!(of(Some("shop")).includes(None, "a", None), NO);
        assert_eq!(of(None).includes(Some("mail"), "a", None), YES);
        assert_eq!(of(None).includes(None, "a", None), YES);
    }
}
