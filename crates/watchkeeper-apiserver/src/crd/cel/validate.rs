//! The rules of a schema, applied to an object.

#[cfg(test)]
mod cost_tests;

use std::{cell::OnceCell, sync::Arc};

use serde_json::Value as Json;

use super::{
    super::{
        structural::{Additional, Structural},
        validate::{NO_PATH, OldItems},
    },
    compile::Compiled,
    eval::{EvalResult, Evaluator},
    meter::{EvalError, Meter, OBJECT_COST},
    rule::ValidationRule,
    stack,
    value::Value,
};
use crate::field::{FieldError, FieldErrorKind};

/// The maximum number of errors that are reported for one object.
const ERRORS: usize = 10_000;
/// The maximum length of the result of a message expression, in bytes.
const MESSAGE_BYTES: usize = 5 * 1024;
const OUT_OF_BUDGET: &str =
    "failed due to running out of cost budget, no further validation rules will be run";

/// Returns the errors of the rules of a schema for an object. `old` is the object before a change.
pub(crate) fn validate(object: &Json, old: Option<&Json>, schema: &Structural) -> Vec<FieldError> {
    run(object, old, schema).errors
}

fn run(object: &Json, old: Option<&Json>, schema: &Structural) -> Run {
    let mut run = Run { errors: Vec::new(), left: OBJECT_COST, meter: Meter::new() };
    let correlation = Correlation::new(old, object);
    let node = Node { value: object, old, schema, path: "", is_resource: true };
    // A stopped run has already reported the reason.
    let _ = run.walk(&node, schema, correlation.as_ref(), None);
    run
}

/// The signal that no further rules run.
struct Stopped;

/// A value with its old value.
struct Correlation<'a> {
    old: &'a Json,
    new: &'a Json,
    is_equal: OnceCell<bool>,
}

impl<'a> Correlation<'a> {
    fn new(old: Option<&'a Json>, new: &'a Json) -> Option<Self> {
        old.map(|old| Self { old, new, is_equal: OnceCell::new() })
    }

    fn is_equal(&self) -> bool {
        *self.is_equal.get_or_init(|| self.old == self.new)
    }
}

/// A value with its schema and path.
struct Node<'a, 'p> {
    value: &'a Json,
    old: Option<&'a Json>,
    schema: &'a Structural,
    path: &'p str,
    is_resource: bool,
}

struct Run {
    errors: Vec<FieldError>,
    left: u64,
    meter: Meter,
}

impl Run {
    /// Returns the cost of all rules that ran.
    #[cfg(test)]
    fn spent(&self) -> u64 {
        OBJECT_COST - self.left
    }

    /// Runs the rules of `of` for a value and all values in it. `of` is the schema of the value, or an `allOf` in it.
    ///
    /// `current` is the value's own correlation; without one, `nearest` is that of the closest value around it.
    fn walk<'a>(
        &mut self,
        node: &Node<'a, '_>,
        of: &'a Structural,
        current: Option<&Correlation<'_>>,
        nearest: Option<&Correlation<'_>>,
    ) -> Result<(), Stopped> {
        if node.value.is_null() || !of.has_rules() {
            return Ok(());
        }
        self.rules(node, &of.rules, current.or(nearest))?;
        for part in &of.all_of {
            self.walk(node, part, None, nearest)?;
        }
        let around = current.or(nearest);
        match node.value {
            Json::Object(members) => {
                for (name, member) in members {
                    let (schema, of, path) = match (node.schema.properties.get(name), of.properties.get(name))
                    {
                        (Some(schema), Some(of)) => (schema, of, child(node.path, name)),
                        _ => match (&node.schema.additional, &of.additional) {
                            (Additional::Of(schema), Additional::Of(of)) => {
                                (&**schema, &**of, format!("{}[{name}]", node.path))
                            }
                            _ => continue,
                        },
                    };
                    let old = node.old.and_then(|old| old.get(name));
                    let node =
                        Node { value: member, old, schema, path: &path, is_resource: schema.is_embedded };
                    let correlation = current.and_then(|_| Correlation::new(old, member));
                    self.walk(&node, of, correlation.as_ref(), around)?;
                }
            }
            Json::Array(items) => {
                let (Some(schema), Some(of)) = (&node.schema.items, &of.items) else { return Ok(()) };
                if !of.has_rules() {
                    return Ok(());
                }
                let olds = OldItems::new(node.old, &node.schema.list);
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{}[{index}]", node.path);
                    let old = olds.get(item);
                    let node =
                        Node { value: item, old, schema, path: &path, is_resource: schema.is_embedded };
                    let correlation = current.and_then(|_| Correlation::new(old, item));
                    self.walk(&node, of, correlation.as_ref(), around)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &Node<'_, '_>,
        rules: &[ValidationRule],
        correlation: Option<&Correlation<'_>>,
    ) -> Result<(), Stopped> {
        if rules.is_empty() {
            return Ok(());
        }
        if self.left == 0 {
            self.push(node.path, FieldErrorKind::Invalid, node, format!("validation {OUT_OF_BUDGET}"));
            return Err(Stopped);
        }
        let old = node.old.filter(|old| !old.is_null());
        for rule in rules {
            if rule.is_transition && old.is_none() && !rule.has_optional_old {
                continue;
            }
            if self.errors.len() >= ERRORS {
                return Err(Stopped);
            }
            self.rule(rule, node, old, correlation)?;
        }
        Ok(())
    }

    /// Evaluates an expression. Returns its result and its cost.
    fn evaluate<'a>(
        &mut self,
        program: &Compiled,
        node: &Node<'a, '_>,
        old: Option<&'a Json>,
        has_optional_old: bool,
    ) -> (EvalResult<'a>, u64) {
        self.meter.start();
        let mut evaluator = Evaluator::new(&mut self.meter, &program.patterns);
        evaluator.bind("self", Value::view(node.value, node.schema, node.is_resource));
        let old = old.map(|old| Value::view(old, node.schema, node.is_resource));
        let old = match (old, has_optional_old) {
            (Some(Ok(old)), true) => Ok(Value::Optional(Some(Arc::new(old)))),
            (None, true) => Ok(Value::Optional(None)),
            (Some(old), _) => old,
            (None, false) => EvalError::error("no such attribute(s): oldSelf"),
        };
        evaluator.bind("oldSelf", old);
        let result = stack::with_stack(program.expr.depth, || evaluator.eval(&program.expr))
            .unwrap_or_else(|| EvalError::error("internal error"));
        (result, self.meter.cost)
    }

    fn rule(
        &mut self,
        rule: &ValidationRule,
        node: &Node<'_, '_>,
        old: Option<&Json>,
        correlation: Option<&Correlation<'_>>,
    ) -> Result<(), Stopped> {
        let (result, cost) = self.evaluate(&rule.program, node, old, rule.has_optional_old);
        if cost > self.left {
            self.push(node.path, FieldErrorKind::Invalid, node, format!("validation {OUT_OF_BUDGET}"));
            return Err(Stopped);
        }
        self.left -= cost;
        let invalid =
            |run: &mut Self, detail: String| run.push(node.path, FieldErrorKind::Invalid, node, detail);
        match result {
            Ok(Value::Bool(true)) => return Ok(()),
            Ok(_) => {}
            Err(EvalError::Exhausted) => {
                invalid(
                    self,
                    format!(
                        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.describe()
                    ),
                );
                return Err(Stopped);
            }
            Err(EvalError::Error(why)) if why.starts_with("no such overload") => {
                invalid(
                    self,
                    format!(
                        "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        rule.describe()
                    ),
                );
                return Ok(());
            }
            Err(EvalError::Error(why)) => {
                invalid(self, format!("{why} evaluating rule: {}", rule.describe()));
                return Ok(());
            }
        }
        let path = if rule.field_path.is_empty() {
            node.path.to_owned()
        } else {
            child(node.path, &rule.field_path)
        };
        let message = self.message(rule, node, old);
        // An unchanged value is not rejected for a rule that it violated before. Transition rules always apply.
        let is_ratcheted = !rule.is_transition && correlation.is_some_and(Correlation::is_equal);
        match message {
            Ok(message) => {
                if !is_ratcheted {
                    let message = message.unwrap_or_else(|| default_message(rule));
                    self.push(&path, rule.kind, node, message);
                }
                Ok(())
            }
            Err(detail) => {
                if !is_ratcheted {
                    self.push(&path, FieldErrorKind::Invalid, node, detail);
                }
                Err(Stopped)
            }
        }
    }

    /// Evaluates the message expression of a violated rule. Returns `None` if the rule has no usable one.
    ///
    /// # Errors
    /// The detail of the error if the expression exceeds a limit.
    fn message(
        &mut self,
        rule: &ValidationRule,
        node: &Node<'_, '_>,
        old: Option<&Json>,
    ) -> Result<Option<String>, String> {
        let Some(program) = &rule.message_program else { return Ok(None) };
        let (result, cost) = self.evaluate(program, node, old, false);
        if cost > self.left {
            return Err(format!("messageExpression evaluation {OUT_OF_BUDGET}"));
        }
        self.left -= cost;
        match result {
            Err(EvalError::Exhausted) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {:?}",
                rule.message_source
            )),
            Ok(Value::String(text)) => {
                let text = text.trim();
                let is_usable = !text.is_empty() && text.len() <= MESSAGE_BYTES && !text.contains('\n');
                Ok(is_usable.then(|| text.to_owned()))
            }
            _ => Ok(None),
        }
    }

    fn push(&mut self, path: &str, kind: FieldErrorKind, node: &Node<'_, '_>, detail: String) {
        let path = if path.is_empty() { NO_PATH } else { path };
        let reported = match (kind, node.value) {
            (FieldErrorKind::Invalid | FieldErrorKind::Duplicate, Json::Object(_)) => Some("object".into()),
            (FieldErrorKind::Invalid | FieldErrorKind::Duplicate, Json::Array(_)) => Some("array".into()),
            (FieldErrorKind::Invalid | FieldErrorKind::Duplicate, value) => Some(value.clone()),
            _ => None,
        };
        let detail = if kind == FieldErrorKind::Duplicate { String::new() } else { detail };
        self.errors.push(FieldError::new(kind, path, reported, detail));
    }
}

fn default_message(rule: &ValidationRule) -> String {
    if rule.message.is_empty() { format!("failed rule: {}", rule.source) } else { rule.message.clone() }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
