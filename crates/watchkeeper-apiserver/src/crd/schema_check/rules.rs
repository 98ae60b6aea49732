//! Rules of a schema: their texts, and what they compile to.

use serde_json::Value;

use super::super::{
    cel,
    structural::{Structural, Ty},
};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{At, Errors},
};

/// Texts of rules and their messages.
pub(super) fn check_texts(schema: &At<'_>, errors: &mut Errors) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    for rule in schema.at("x-kubernetes-validations").items() {
        let (text, message, expression, path) =
            (rule.at("rule"), rule.at("message"), rule.at("messageExpression"), rule.at("fieldPath"));
        let said = message.text().trim();
        if text.text().trim().is_empty() {
            errors.push(text.missing("rule is not specified"));
        } else if !message.is_empty() && said.is_empty() {
            errors.push(message.invalid("must be non-empty if specified"));
        } else if said.contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        } else if text.text().trim().contains(['\n', '\r']) && said.is_empty() {
            errors.push(message.missing("message must be specified if rule contains line breaks"));
        }
        if !expression.is_empty() && expression.text().trim().is_empty() {
            errors.push(expression.missing("messageExpression must be non-empty if specified"));
        }
        rule.at("reason").one_of(&REASONS, errors);
        if !path.is_empty() {
            if path.text().trim().is_empty() {
                errors.push(path.invalid("must be non-empty if specified"));
            } else if path.text().contains(['\n', '\r']) {
                errors.push(path.invalid("must not contain line breaks"));
            } else if !leads_somewhere(schema.value, path.text()) {
                errors.push(path.invalid("must be a valid path"));
            }
        }
    }
}

/// `.a.b` and `.a['b.c']` lead to members the schema names.
fn leads_somewhere(schema: &Value, path: &str) -> bool {
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let Some((inner, after)) = after.split_once("']") else { return false };
            (name, rest) = (inner, after);
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (inner, after) = after.split_at(end);
            (name, rest) = (inner, after);
        } else {
            return false;
        }
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        match property.or_else(|| schema.get("additionalProperties").filter(|of| of.is_object())) {
            Some(below) => schema = below,
            None => return false,
        }
    }
    true
}

/// What is wrong with rules beside the schema they are for. `uncorrelatable` is where values have no past, if anywhere.
pub(super) fn check(schema: &At<'_>, is_root: bool, uncorrelatable: Option<&str>, errors: &mut Errors) {
    let rules = schema.at("x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let structural = Structural::read(schema.value);
    for rule in rules.items() {
        let shown = |at: &At<'_>, detail: String| {
            FieldError::new(FieldErrorKind::Invalid, at.path(), Some(rule.value.clone()), detail)
        };
        let (text, expression, optional) =
            (rule.at("rule"), rule.at("messageExpression"), rule.at("optionalOldSelf"));
        match cel::compile(text.text().trim()) {
            Err(detail) => errors.push(shown(&text, detail)),
            Ok(compiled) => {
                if let Some(detail) =
                    cel::problem(&compiled, &structural, is_root, optional.is_true(), Ty::Boolean)
                {
                    errors.push(shown(&text, detail));
                }
                if compiled.costs_too_much(&structural) {
                    errors.push(text.forbidden("estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"));
                }
                let uses_old = compiled.program.references().has_variable("oldSelf");
                match (uncorrelatable, uses_old) {
                    (Some(path), true) => errors.push(text.invalid(format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
                    ))),
                    (_, false) if optional.is_set() => {
                        errors.push(optional.invalid("may not be set if oldSelf is not used in rule"));
                    }
                    _ => {}
                }
            }
        }
        if !expression.is_empty() {
            let problem = match cel::compile(expression.text().trim()) {
                Err(detail) => Some(detail),
                Ok(compiled) => cel::problem(&compiled, &structural, is_root, optional.is_true(), Ty::String),
            };
            errors.extend(problem.map(|detail| shown(&expression, detail)));
        }
    }
}
