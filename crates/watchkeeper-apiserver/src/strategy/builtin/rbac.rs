//! Roles and bindings.

use serde_json::Value;

use super::row::{PLAIN, StrategyRow};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{Null, Str},
    },
    metadata,
    names::{self, NameRule},
    table::{self, Rule, RuleTable},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns the row of a kind of the group.
pub(super) fn find(kind: &str) -> Option<StrategyRow> {
    Some(match kind {
        "Role" => ROLE,
        "ClusterRole" => StrategyRow { is_namespaced: false, validate: validate_cluster_role, ..ROLE },
        "RoleBinding" => BINDING,
        "ClusterRoleBinding" => {
            StrategyRow { is_namespaced: false, validate: validate_cluster_binding, ..BINDING }
        }
        _ => return None,
    })
}

const ROLE: StrategyRow = StrategyRow {
    names: NameRule::PathSegment,
    creates_on_update: true,
    zeros: &[("", "rules", Null)],
    validate: |object, errors| rules(object, true, errors),
    ..PLAIN
};

const BINDING: StrategyRow = StrategyRow {
    names: NameRule::PathSegment,
    creates_on_update: true,
    defaults: binding_defaults,
    validate: |object, errors| binding(object, &["ClusterRole", "Role"], errors),
    validate_update: |object, old, errors| object.at("roleRef").immutable(&old.at("roleRef"), errors),
    ..PLAIN
};

fn binding_defaults(object: &mut Value) {
    edit::object(object, "roleRef");
    edit::fill_all(object, &[("roleRef", "apiGroup", Str(GROUP))]);
    edit::each(object, "subjects[]", &mut |subject| {
        if matches!(edit::text(subject, "kind"), "User" | "Group") {
            edit::fill(subject, "apiGroup", Str(GROUP));
        }
    });
}

fn validate_cluster_role(object: &Cursor<'_>, errors: &mut Errors) {
    rules(object, false, errors);
    table::check(AGGREGATION, object, errors);
}

const AGGREGATION: RuleTable = &[(
    "aggregationRule",
    &[Rule::Pointer(&[
        (
            "clusterRoleSelectors",
            &[Rule::RequiredAs("at least one clusterRoleSelector required if aggregationRule is non-nil")],
        ),
        ("clusterRoleSelectors[]", &[Rule::LabelSelector, Rule::Check(selectable)]),
    ])],
)];

/// Reports a malformed selector, which selects nothing, as one invalid value.
fn selectable(selector: &Cursor<'_>, errors: &mut Errors) {
    let mut wrong = Errors::new();
    metadata::label_selector(selector, &mut wrong);
    if !wrong.is_empty() {
        errors.push(selector.invalid("invalid label selector."));
    }
}

fn validate_cluster_binding(object: &Cursor<'_>, errors: &mut Errors) {
    binding(object, &["ClusterRole"], errors);
}

fn rules(object: &Cursor<'_>, is_namespaced: bool, errors: &mut Errors) {
    for rule in object.at("rules").items() {
        let verbs = rule.at("verbs");
        if verbs.is_empty() {
            errors.push(verbs.missing("verbs must contain at least one value"));
        }
        let urls = rule.at("nonResourceURLs");
        let (groups, resources) = (rule.at("apiGroups"), rule.at("resources"));
        if !urls.is_empty() {
            if is_namespaced {
                errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if !groups.is_empty() || !resources.is_empty() || !rule.at("resourceNames").is_empty() {
                errors
                    .push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
            }
            continue;
        }
        if groups.value.as_array().is_none_or(Vec::is_empty) {
            errors.push(groups.missing("resource rules must supply at least one api group"));
        }
        if resources.is_empty() {
            errors.push(resources.missing("resource rules must supply at least one resource"));
        }
    }
}

fn binding(object: &Cursor<'_>, kinds: &[&str], errors: &mut Errors) {
    let role = object.at("roleRef");
    if role.at("apiGroup").text() != GROUP {
        errors.push(role.at("apiGroup").unsupported(&[GROUP]));
    }
    if !kinds.contains(&role.at("kind").text()) {
        errors.push(role.at("kind").unsupported(kinds));
    }
    role.at("name").required_format(names::path_segment, errors);
    let is_namespaced = kinds.len() > 1;
    for subject in object.at("subjects").items() {
        let (kind, name, group) = (subject.at("kind"), subject.at("name"), subject.at("apiGroup"));
        name.required(errors);
        match kind.text() {
            "ServiceAccount" => {
                name.format(names::dns_subdomain, errors);
                if !group.is_empty() {
                    errors.push(group.unsupported(&[""]));
                }
                // A binding in a namespace refers to the accounts of its own namespace.
                if !is_namespaced {
                    subject.at("namespace").required(errors);
                }
            }
            "User" | "Group" => {
                if group.text() != GROUP {
                    errors.push(group.unsupported(&[GROUP]));
                }
            }
            _ => errors.push(kind.unsupported(&["ServiceAccount", "User", "Group"])),
        }
    }
}
