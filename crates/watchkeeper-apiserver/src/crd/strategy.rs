//! The strategy of a custom kind.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;

use super::{
    cel,
    prune::{fill_defaults, lacks_defaults, prune_object, set_defaults},
    structural::Structural,
    validate::{NO_PATH, embedded, list_types, validate},
};
use crate::{
    field::{FieldError, FieldErrorKind},
    kinds::{GroupVersionKind, ScalePaths},
    strategy::{Cursor, Part, Strategy, StrategySettings, edit, metadata, names::NameRule},
};

const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// The strategy of one version of a custom kind.
#[derive(Debug)]
pub(crate) struct CustomStrategy {
    pub(crate) gvk: GroupVersionKind,
    pub(crate) is_namespaced: bool,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) schema: Arc<Structural>,
    /// The deprecation warning of the version, if it is deprecated.
    pub(crate) deprecation: Option<String>,
}

impl CustomStrategy {
    fn type_meta(&self, object: &Value) -> Vec<FieldError> {
        let expected = [("kind", self.gvk.kind.clone()), ("apiVersion", self.gvk.api_version())];
        let mut errors = Vec::new();
        for (member, expected) in expected {
            let given = object.get(member).and_then(Value::as_str).unwrap_or_default();
            if given != expected {
                let detail = format!("must be {expected}");
                errors.push(FieldError::new(FieldErrorKind::Invalid, member, Some(given.into()), detail));
            }
        }
        errors
    }

    fn scale(&self, object: &Value, errors: &mut Vec<FieldError>) {
        let Some(scale) = &self.scale else { return };
        for path in [&scale.spec_replicas, &scale.status_replicas] {
            let invalid = |value: &Value, detail: String| {
                FieldError::new(FieldErrorKind::Invalid, path.as_str(), Some(value.clone()), detail)
            };
            let count =
                path.split('.').filter(|name| !name.is_empty()).try_fold(object, |value, name| match value {
                    Value::Object(members) => Ok(members.get(name).unwrap_or(&Value::Null)),
                    Value::Null => Ok(value),
                    _ => Err("accessor error: a parent of the value is not an object".to_owned()),
                });
            let count = match count {
                Ok(Value::Null) => continue,
                Ok(count) => count,
                Err(detail) => {
                    errors.push(invalid(&Value::from(0), detail));
                    continue;
                }
            };
            let detail = match count.as_i64() {
                None => "accessor error: the value is not of the type int64".to_owned(),
                Some(count) if count < 0 => "should be a non-negative integer".to_owned(),
                Some(count) if count > i64::from(i32::MAX) => {
                    format!("should be less than or equal to {}", i32::MAX)
                }
                Some(_) => continue,
            };
            errors.push(invalid(count, detail));
        }
    }

    /// Returns an error if defaults are missing.
    fn defaults(&self, object: &Value) -> Option<FieldError> {
        let detail = "the defaults of the schema take too much memory for the items of this object";
        lacks_defaults(object, &self.schema)
            .then(|| FieldError::new(FieldErrorKind::Invalid, NO_PATH, Some("".into()), detail))
    }

    fn lists(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        list_types(object, &self.schema, "", &mut errors);
        errors
    }

    fn rules_of(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        if !self.schema.has_rules() {
            return;
        }
        let blocks = |error: &FieldError| {
            matches!(
                error.kind,
                FieldErrorKind::NotSupported
                    | FieldErrorKind::Required
                    | FieldErrorKind::TooLong
                    | FieldErrorKind::TooMany
                    | FieldErrorKind::TypeInvalid
            )
        };
        if errors.iter().any(blocks) {
            errors.push(FieldError::new(FieldErrorKind::Invalid, NO_PATH, Some(Value::Null), UNCHECKED));
        } else {
            errors.extend(cel::validate(object, old, &self.schema));
        }
    }

    /// Returns the members whose change increments the generation.
    fn counted(&self, object: &Value) -> edit::Members {
        let members = object.as_object().into_iter().flatten();
        let counted =
            members.filter(|(name, _)| *name != "metadata" && !(self.has_status && *name == "status"));
        counted.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Strategy for CustomStrategy {
    fn settings(&self) -> StrategySettings {
        StrategySettings {
            creates_on_update: false,
            takes_unconditional_update: false,
            delete_returns_object: false,
            counts_generations: true,
            grace_period_seconds: None,
        }
    }

    fn set_defaults(&self, object: &mut Value) {
        prune_object(object, &self.schema);
        set_defaults(object, &self.schema);
    }

    fn prune(&self, object: &mut Value) {
        prune_object(object, &self.schema);
    }

    fn set_defaults_of_applied(&self, object: &mut Value) {
        fill_defaults(object, &self.schema);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        if !self.is_namespaced {
            metadata::clear_namespace(object);
        }
        if self.has_status
            && let Some(members) = object.as_object_mut()
        {
            members.remove("status");
        }
        set_generation(object, Some(1));
    }

    fn prepare_for_update(&self, part: Part<'_>, object: &mut Value, old: &Value) {
        if !self.is_namespaced {
            metadata::clear_namespace(object);
        }
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64);
        if let Part::Subresource("status") = part {
            // Everything except the status and the managed fields is kept.
            let status = object.get("status").cloned();
            let managers = object.pointer("/metadata/managedFields").cloned();
            let version = object.pointer("/metadata/resourceVersion").cloned();
            *object = old.clone();
            if let Some(members) = object.as_object_mut() {
                match status {
                    Some(status) => members.insert("status".to_owned(), status),
                    None => members.remove("status"),
                };
            }
            if let Some(metadata) = edit::object(object, "metadata") {
                for (name, value) in [("managedFields", managers), ("resourceVersion", version)] {
                    match value {
                        Some(value) => metadata.insert(name.to_owned(), value),
                        None => metadata.remove(name),
                    };
                }
            }
            return;
        }
        if self.has_status {
            edit::take_from(object, old, "status");
        }
        let is_changed = self.counted(object) != self.counted(old);
        set_generation(object, if is_changed { Some(generation.unwrap_or(0) + 1) } else { generation });
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = self.type_meta(object);
        if !errors.is_empty() {
            return errors;
        }
        metadata::validate_create(
            &Cursor::root(object),
            NameRule::Subdomain,
            self.is_namespaced,
            &mut errors,
        );
        errors.extend(self.defaults(object));
        errors.extend(validate(object, None, &self.schema, ""));
        self.scale(object, &mut errors);
        embedded(object, &self.schema, "", &mut errors);
        errors.extend(self.lists(object));
        self.rules_of(object, None, &mut errors);
        errors
    }

    fn validate_update(&self, part: Part<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.type_meta(object);
        if !errors.is_empty() {
            return errors;
        }
        metadata::validate_update(&Cursor::root(object), &Cursor::root(old), &mut errors);
        errors.extend(self.defaults(object));
        if part == Part::Subresource("status") {
            if let (Some(status), Some(schema)) = (object.get("status"), self.schema.properties.get("status"))
            {
                errors.extend(validate(status, old.get("status"), schema, "status"));
            }
        } else {
            errors.extend(validate(object, Some(old), &self.schema, ""));
            embedded(object, &self.schema, "", &mut errors);
        }
        self.scale(object, &mut errors);
        if self.lists(old).is_empty() {
            errors.extend(self.lists(object));
        }
        self.rules_of(object, Some(old), &mut errors);
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let names = |object: &Value| -> Vec<String> {
            let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
            finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let known: HashSet<String> = old.map(names).unwrap_or_default().into_iter().collect();
        let new = names(object).into_iter().filter(|name| !known.contains(name));
        let unqualified = new.filter(|name| {
            !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&name.as_str())
        });
        let messages = unqualified.map(|name| {
            let including = if name.contains('.') { " including a path (/)" } else { "" };
            format!("metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{including} to avoid accidental conflicts with other finalizer writers")
        });
        messages.collect()
    }

    fn deprecation(&self) -> Option<String> {
        self.deprecation.clone()
    }
}

fn set_generation(object: &mut Value, generation: Option<i64>) {
    if let Some(metadata) = edit::object(object, "metadata") {
        match generation {
            Some(generation) => metadata.insert("generation".to_owned(), generation.into()),
            None => metadata.remove("generation"),
        };
    }
}
