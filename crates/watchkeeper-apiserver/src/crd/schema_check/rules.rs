//! Validation rules of a schema: texts, types and estimated costs.

use std::sync::Arc;

use serde_json::Value;

use super::super::cel::{self, Compiled, Decl, RuleResultType};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{Cursor, Errors},
};

/// The maximum estimated cost of one rule, for all values in an object that it applies to.
const RULE_COST: u64 = 10_000_000;
/// The maximum estimated cost of all rules of a schema.
const SCHEMA_COST: u64 = 100_000_000;
/// The maximum number of syntax tree nodes of all rules of a schema. Bounds the time to compile a definition.
const NODES: usize = 3_000_000;
/// The maximum size of the text of all rules of a schema, in bytes. Bounds the memory of compiled rules.
pub(super) const TEXT_BYTES: usize = 256 * 1024;

/// The totals over the rules of a schema that were checked so far.
#[derive(Default)]
pub(super) struct Totals {
    cost: u64,
    nodes: usize,
    /// The most expensive rules, with their costs.
    expensive: Vec<(String, u64)>,
    /// The errors of rules, which are reported after those of the schemas.
    errors: Errors,
}

impl Totals {
    fn observe(&mut self, path: String, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost >= SCHEMA_COST / 100 {
            self.expensive.push((path, cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }

    /// Checks the total estimated cost of all rules.
    pub(super) fn finish(mut self, schema: &Cursor<'_>, errors: &mut Errors) {
        errors.append(&mut self.errors);
        if self.cost > SCHEMA_COST {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            for (path, _) in self.expensive {
                errors.push(FieldError::new(FieldErrorKind::Forbidden, path, None, detail));
            }
            let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            errors.push(schema.forbidden(exceeded(name, self.cost, SCHEMA_COST)));
        }
    }
}

/// Returns the size of the text of all rules in a schema, in bytes.
pub(super) fn text_bytes(schema: &Value) -> usize {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    let texts =
        rules.into_iter().flatten().flat_map(|rule| [rule.get("rule"), rule.get("messageExpression")]);
    let own: usize = texts.flatten().filter_map(Value::as_str).map(str::len).sum();
    let below: usize = match schema {
        Value::Object(members) => members.values().map(text_bytes).sum(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        _ => 0,
    };
    own + below
}

/// Returns the detail of an error about a cost.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn exceeded(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Checks the texts of rules and their messages.
pub(super) fn check_texts(schema: &Cursor<'_>, errors: &mut Errors) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    for rule in schema.at("x-kubernetes-validations").items() {
        let (text, message, expression, path) =
            (rule.at("rule"), rule.at("message"), rule.at("messageExpression"), rule.at("fieldPath"));
        let message_text = message.text().trim();
        if text.text().trim().is_empty() {
            errors.push(text.missing("rule is not specified"));
        } else if !message.is_empty() && message_text.is_empty() {
            errors.push(message.invalid("must be non-empty if specified"));
        } else if message_text.contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        } else if text.text().trim().contains(['\n', '\r']) && message_text.is_empty() {
            errors.push(message.missing("message must be specified if rule contains line breaks"));
        }
        if !expression.is_empty() && expression.text().trim().is_empty() {
            errors.push(expression.missing("messageExpression must be non-empty if specified"));
        }
        rule.at("reason").one_of(&REASONS, errors);
        if !path.is_empty() {
            if path.text().trim().is_empty() {
                errors.push(path.invalid("must be non-empty if specified"));
            }
            if path.text().contains(['\n', '\r']) {
                errors.push(path.invalid("must not contain line breaks"));
            }
            if cel::field_path(schema.value, path.text()).is_none() {
                errors.push(path.invalid("must be a valid path"));
            }
        }
    }
}

/// The position of a schema among the enclosing schemas.
pub(super) struct SchemaPosition<'a> {
    pub(super) is_resource: bool,
    /// The path of the schema below which values have no old value, if any.
    pub(super) uncorrelatable: Option<&'a str>,
    /// The maximum number of occurrences of a value, as limited by the enclosing schemas.
    pub(super) cardinality: Option<u64>,
}

/// Checks the types and costs of the rules of a schema.
pub(super) fn check(schema: &Cursor<'_>, position: &SchemaPosition<'_>, totals: &mut Totals) {
    let rules = schema.at("x-kubernetes-validations");
    if rules.is_empty() {
        return;
    }
    let Some(decl) = Decl::of(schema.value, position.is_resource) else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        totals.errors.push(rules.error(FieldErrorKind::Internal, detail));
        return;
    };
    for rule in rules.items() {
        check_rule(&rule, &decl, position, totals);
    }
}

fn check_rule(rule: &Cursor<'_>, decl: &Arc<Decl>, position: &SchemaPosition<'_>, totals: &mut Totals) {
    let reported = |at: &Cursor<'_>, detail: String| {
        FieldError::new(FieldErrorKind::Invalid, at.path(), Some(rule.value.clone()), detail)
    };
    let (text, expression, optional) =
        (rule.at("rule"), rule.at("messageExpression"), rule.at("optionalOldSelf"));
    let mut compile = |source: &str, expected: RuleResultType| {
        let prefix = if expected == RuleResultType::String { "messageExpression " } else { "" };
        if totals.nodes > NODES {
            return Err(format!("{prefix}compilation failed: the rules of the schema have too many parts"));
        }
        let compiled =
            Compiled::new(source).map_err(|detail| format!("{prefix}compilation failed: {detail}"))?;
        totals.nodes += compiled.nodes;
        let cost = compiled.check(decl, optional.is_true(), expected)?;
        Ok((compiled, cost))
    };
    let (compiled, cost) = match compile(text.text(), RuleResultType::Bool) {
        Ok(compiled) => compiled,
        Err(detail) => {
            totals.observe(text.path(), 0);
            totals.errors.push(reported(&text, detail));
            if optional.is_set() {
                totals.errors.push(optional.invalid("may not be set if oldSelf is not used in rule"));
            }
            return;
        }
    };
    let message = (!expression.is_empty()).then(|| compile(expression.text(), RuleResultType::String));
    let cost = cost.saturating_mul(position.cardinality.unwrap_or_else(|| cel::max_cardinality(decl)));
    if cost > RULE_COST {
        totals.errors.push(text.forbidden(exceeded("estimated rule cost", cost, RULE_COST)));
    }
    totals.observe(text.path(), cost);
    match message {
        Some(Err(detail)) => totals.errors.push(reported(&expression, detail)),
        Some(Ok((_, cost))) => {
            if cost > RULE_COST {
                let detail = exceeded("estimated messageExpression cost", cost, RULE_COST);
                totals.errors.push(expression.forbidden(detail));
            }
            totals.observe(expression.path(), cost);
        }
        None => {}
    }
    match (position.uncorrelatable, compiled.uses_old_self()) {
        (Some(path), true) => totals.errors.push(text.invalid(format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {path}"
        ))),
        (_, false) if optional.is_set() => {
            totals.errors.push(optional.invalid("may not be set if oldSelf is not used in rule"));
        }
        _ => {}
    }
}
