//! The built-in kinds: one table row per kind, one file per group of kinds.

mod address;
mod admission;
mod batch;
#[cfg(test)]
mod cases;
mod certificate;
mod claim;
mod cluster;
mod condition;
mod config;
mod definition;
mod device;
mod endpoint;
mod flow;
#[cfg(test)]
mod kind_tests;
mod lease;
mod namespace;
mod network;
mod node;
mod node_selector;
mod pod;
mod pod_certificate;
mod policy;
mod quota;
mod rbac;
mod registration;
mod resource_name;
mod row;
mod runtime_class;
mod service;
mod storage;
#[cfg(test)]
mod tests;
mod volume_source;
mod workload;

use std::collections::HashSet;

use serde_json::Value;

use self::row::{StatusMetadata, StrategyRow};
use super::{
    Part, Strategy, StrategySettings, WriteContext,
    cursor::{Cursor, Errors},
    edit, gates, metadata, table,
};
use crate::field::FieldError;

/// The strategy of a built-in kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Builtin {
    row: StrategyRow,
}

impl Builtin {
    /// Returns the strategy of a kind. Versions of a kind share its row unless their fields differ.
    pub(crate) fn of(group: &str, version: &str, kind: &str) -> Self {
        Self { row: row::find(group, version, kind) }
    }

    fn starts_new_generation(&self, object: &Value, old: &Value) -> bool {
        self.row.generation.iter().any(|path| {
            let pointer = format!("/{}", path.replace('.', "/"));
            let [new, old] = [object, old].map(|object| object.pointer(&pointer).unwrap_or(&Value::Null));
            !edit::is_same(new, old)
        })
    }
}

/// Drops errors that repeat an earlier one.
fn without_repetitions(mut errors: Errors) -> Errors {
    if errors.len() > 1 {
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert(format!("{error:?}")));
    }
    errors
}

fn set_generation(object: &mut Value, generation: Option<i64>) {
    let Some(metadata) = edit::object(object, "metadata") else { return };
    match generation {
        Some(generation) => metadata.insert("generation".to_owned(), generation.into()),
        None => metadata.remove("generation"),
    };
}

fn all_but(object: &mut Value, old: &Value, kept: &[&str]) {
    let Some(members) = object.as_object_mut() else { return };
    members.retain(|name, _| kept.contains(&name.as_str()));
    for (name, value) in old.as_object().into_iter().flatten() {
        if !kept.contains(&name.as_str()) {
            members.insert(name.clone(), value.clone());
        }
    }
}

impl Strategy for Builtin {
    fn settings(&self) -> StrategySettings {
        self.row.settings()
    }

    fn set_defaults(&self, object: &mut Value) {
        (self.row.defaults)(object);
        edit::fill_all(object, self.row.zeros);
    }

    fn set_timed_defaults(&self, object: &mut Value, now: &dyn Fn() -> String) {
        (self.row.timed_defaults)(object, now);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        if !self.row.is_namespaced {
            metadata::clear_namespace(object);
        }
        if let Some(initial) = self.row.status
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
            if let Some(status) = initial() {
                members.insert("status".to_owned(), status);
            }
        }
        (self.row.prepare_create)(object);
        gates::drop_disabled(object, None, self.row.gated);
        edit::fill_all(object, self.row.zeros);
        // A kind that does not count generations keeps the given value.
        if !self.row.generation.is_empty() && self.row.starts_generation {
            set_generation(object, Some(1));
        }
    }

    fn prepare_for_update(&self, part: Part<'_>, object: &mut Value, old: &Value) {
        if !self.row.is_namespaced {
            metadata::clear_namespace(object);
        }
        match part {
            Part::Main => {
                if self.row.status.is_some() {
                    edit::take_from(object, old, "status");
                }
                (self.row.prepare_update)(object, old);
            }
            Part::Subresource("status") => {
                let labels = old.pointer("/metadata/labels");
                match self.row.status_meta {
                    StatusMetadata::Mutable => {
                        all_but(object, old, &["metadata", "status", "apiVersion", "kind"]);
                    }
                    StatusMetadata::ExceptLabels => {
                        all_but(object, old, &["metadata", "status", "apiVersion", "kind"]);
                        if let Some(metadata) = edit::object(object, "metadata") {
                            match labels {
                                Some(labels) => metadata.insert("labels".to_owned(), labels.clone()),
                                None => metadata.remove("labels"),
                            };
                        }
                    }
                    StatusMetadata::Immutable => reset_metadata(object, old),
                }
                (self.row.prepare_status)(object, old);
            }
            Part::Subresource(name) => (self.row.prepare_subresource)(name, object, old),
        }
        gates::drop_disabled(object, Some(old), self.row.gated);
        let old_generation = old.pointer("/metadata/generation").and_then(Value::as_i64);
        let counts = !self.row.generation.is_empty() && part != Part::Subresource("status");
        let generation = if counts && self.starts_new_generation(object, old) {
            Some(old_generation.unwrap_or(0) + 1)
        } else {
            old_generation
        };
        set_generation(object, generation);
    }

    fn set_request_fields(
        &self,
        part: Part<'_>,
        object: &mut Value,
        old: Option<&Value>,
        context: &WriteContext<'_>,
    ) {
        (self.row.set_request_fields)(part, object, old, context);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let root = Cursor::root(object);
        let check_metadata = |errors: &mut Errors| {
            metadata::validate_create(&root, self.row.names, self.row.is_namespaced, errors);
            self.row.finalizers(&root, errors);
        };
        if !self.row.checks_metadata_last {
            check_metadata(&mut errors);
        }
        table::check(self.row.table, &root, &mut errors);
        (self.row.validate)(&root, &mut errors);
        (self.row.validate_create)(&root, &mut errors);
        if self.row.checks_metadata_last && errors.is_empty() {
            check_metadata(&mut errors);
        }
        without_repetitions(errors)
    }

    fn validate_update(&self, part: Part<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let (root, old) = (Cursor::root(object), Cursor::root(old));
        metadata::validate_update(&root, &old, &mut errors);
        self.row.finalizers(&root, &mut errors);
        match part {
            Part::Main => {
                table::check_change(self.row.table, &root, &old, &mut errors);
                (self.row.validate)(&root, &mut errors);
                (self.row.validate_update)(&root, &old, &mut errors);
            }
            Part::Subresource("status") => {
                table::check_change(self.row.status_table, &root, &old, &mut errors);
                (self.row.validate_status)(&root, &old, &mut errors);
            }
            Part::Subresource(name) => (self.row.validate_subresource)(name, &root, &old, &mut errors),
        }
        without_repetitions(errors)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        (self.row.warnings)(object, old)
    }

    fn deprecation(&self) -> Option<String> {
        self.row.deprecation.map(str::to_owned)
    }

    fn grace_period_seconds(&self, object: &Value) -> Option<u32> {
        (self.row.grace_period_seconds)(object)
    }
}

/// Restores everything except the status from `old`, including the metadata that a client can set.
fn reset_metadata(object: &mut Value, old: &Value) {
    all_but(object, old, &["metadata", "status", "apiVersion", "kind"]);
    let Some(old) = old.get("metadata") else { return };
    if let Some(metadata) = object.get_mut("metadata") {
        for member in [
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generation",
            "labels",
            "annotations",
            "ownerReferences",
        ] {
            edit::take_from(metadata, old, member);
        }
    }
}
