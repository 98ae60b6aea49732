//! The row of a kind: what differs from what most kinds do.

use serde_json::Value;

use super::super::{
    Rules,
    at::{At, Errors},
    names::NameRule,
};
use crate::strategy::builtin::{config, namespace, pod};

/// The status of a new object; none for kinds that start without one.
pub(super) type InitialStatus = fn() -> Option<Value>;

/// Which metadata a write of the status may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusMeta {
    /// All of it.
    Free,
    /// All but labels.
    OldLabels,
    /// None of it.
    Old,
}

/// What differs from what most kinds do.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of yes and no")]
pub(super) struct Row {
    pub(super) names: NameRule,
    pub(super) is_namespaced: bool,
    pub(super) creates_on_update: bool,
    pub(super) takes_unconditional_update: bool,
    pub(super) delete_returns_object: bool,
    /// Finalizers need a domain unless they are known.
    pub(super) qualifies_finalizers: bool,
    /// Paths whose change starts a new generation; none for kinds that do not count.
    pub(super) generation: &'static [&'static str],
    /// Set for kinds with a status subresource.
    pub(super) status: Option<InitialStatus>,
    pub(super) status_meta: StatusMeta,
    pub(super) grace_period_seconds: fn(&Value) -> Option<u32>,
    pub(super) defaults: fn(&mut Value),
    pub(super) prepare_create: fn(&mut Value),
    pub(super) prepare_update: fn(&mut Value, &Value),
    pub(super) prepare_status: fn(&mut Value, &Value),
    pub(super) prepare_subresource: fn(&str, &mut Value, &Value),
    /// On create, and on update of the object itself.
    pub(super) validate: fn(&At<'_>, &mut Errors),
    pub(super) validate_create: fn(&At<'_>, &mut Errors),
    pub(super) validate_update: fn(&At<'_>, &At<'_>, &mut Errors),
    pub(super) validate_status: fn(&At<'_>, &At<'_>, &mut Errors),
    pub(super) validate_subresource: fn(&str, &At<'_>, &At<'_>, &mut Errors),
    pub(super) warnings: fn(&Value, Option<&Value>) -> Vec<String>,
}

/// A namespaced kind with nothing particular to it.
pub(super) const PLAIN: Row = Row {
    names: NameRule::Subdomain,
    is_namespaced: true,
    creates_on_update: false,
    takes_unconditional_update: true,
    delete_returns_object: false,
    qualifies_finalizers: true,
    generation: &[],
    status: None,
    status_meta: StatusMeta::Free,
    grace_period_seconds: |_| None,
    defaults: |_| {},
    prepare_create: |_| {},
    prepare_update: |_, _| {},
    prepare_status: |_, _| {},
    prepare_subresource: |_, _, _| {},
    validate: |_, _| {},
    validate_create: |_, _| {},
    validate_update: |_, _, _| {},
    validate_status: |_, _, _| {},
    validate_subresource: |_, _, _, _| {},
    warnings: |_, _| Vec::new(),
};

/// A cluster-scoped kind with nothing particular to it.
pub(super) const CLUSTER: Row = Row { is_namespaced: false, ..PLAIN };

/// Finalizers that need no domain.
const KNOWN_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

impl Row {
    pub(super) fn rules(&self) -> Rules {
        Rules {
            creates_on_update: self.creates_on_update,
            takes_unconditional_update: self.takes_unconditional_update,
            delete_returns_object: self.delete_returns_object,
            counts_generations: !self.generation.is_empty(),
            grace_period_seconds: (self.grace_period_seconds)(&Value::Null),
        }
    }

    pub(super) fn finalizers(&self, object: &At<'_>, errors: &mut Errors) {
        if !self.qualifies_finalizers {
            return;
        }
        let metadata = object.at("metadata");
        for finalizer in metadata.at("finalizers").items() {
            let name = finalizer.text();
            if !name.contains('/') && !KNOWN_FINALIZERS.contains(&name) {
                errors.push(
                    finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"),
                );
            }
        }
    }
}

/// The row of a kind.
pub(super) fn find(group: &str, _version: &str, kind: &str) -> Row {
    match (group, kind) {
        ("", "ConfigMap") => config::CONFIG_MAP,
        ("", "Secret") => config::SECRET,
        ("", "Namespace") => namespace::NAMESPACE,
        ("", "Pod") => pod::POD,
        _ => PLAIN,
    }
}
