//! Rules in CEL that objects must keep (`x-kubernetes-validations`).
//!
//! A rule sees `self`, the value beside its schema, and for changes `oldSelf`, what the value was. Rules are compiled once,
//! when their definition is read. What running them may cost is bounded before they run, by the number of steps they take
//! for the largest collection at hand, so that no rule can hold up the server.

mod check;
mod compile;
mod value;

use std::cell::RefCell;

use kube_cel::{
    KubeCelExt,
    cel::{Context, Program, ResolveResult, Value as Cel, objects::OptionalValue},
};
use serde_json::Value;

pub(crate) use self::{check::problem, compile::compile};
use super::{
    structural::{Additional, Structural, Ty},
    validate::{Correlation, NO_PATH},
};
use crate::field::{FieldError, FieldErrorKind};

/// Steps all rules of an object may take together.
const BUDGET: u64 = 10_000_000;

/// A rule of a schema.
#[derive(Debug)]
pub(crate) struct Rule {
    source: String,
    program: Compiled,
    message: String,
    message_program: Option<Program>,
    kind: FieldErrorKind,
    field_path: String,
    is_transition: bool,
    takes_no_old: bool,
}

/// A program and how many steps it takes, by how deep in loops they are.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The program.
    pub(crate) program: Program,
    steps_by_depth: Vec<u64>,
}

impl Rule {
    /// The rules of a schema. A rule that does not compile is left out; a definition with one is refused.
    pub(crate) fn read_all(schema: &Value) -> Vec<Self> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(Self::read).collect()
    }

    fn read(rule: &Value) -> Option<Self> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let program = compile(&text("rule")).ok()?;
        let message_expression = text("messageExpression");
        Some(Self {
            is_transition: program.program.references().has_variable("oldSelf"),
            takes_no_old: rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
            message: text("message"),
            message_program: Some(message_expression)
                .filter(|expression| !expression.is_empty())
                .and_then(|expression| compile(&expression).ok())
                .map(|compiled| compiled.program),
            kind: match text("reason").as_str() {
                "FieldValueRequired" => FieldErrorKind::Required,
                "FieldValueForbidden" => FieldErrorKind::Forbidden,
                "FieldValueDuplicate" => FieldErrorKind::Duplicate,
                _ => FieldErrorKind::Invalid,
            },
            field_path: text("fieldPath"),
            source: text("rule"),
            program,
        })
    }
}

/// What the rules of a schema find wrong with a whole object. `old` is the object before a change.
pub(crate) fn validate(object: &Value, old: Option<&Value>, schema: &Structural) -> Vec<FieldError> {
    let mut run = Run { errors: Vec::new(), left: BUDGET };
    run.walk(object, old, schema, "", true);
    run.errors
}

struct Run {
    errors: Vec<FieldError>,
    left: u64,
}

thread_local! {
    /// Functions take longer to register than most rules to run.
    static FUNCTIONS: RefCell<Context<'static>> = RefCell::new(functions());
}

/// The functions Kubernetes has, and the types rules can ask for, which the library leaves out.
fn functions() -> Context<'static> {
    const TYPES: [&str; 8] = ["int", "uint", "double", "bool", "string", "bytes", "list", "map"];
    let mut context = Context::default().with_all();
    for name in TYPES {
        context.add_variable_from_value(name, type_named(name));
    }
    context.add_function("type", type_of);
    context.add_function("dyn", same);
    context
}

fn type_named(name: &str) -> Cel {
    Cel::String(std::sync::Arc::new(format!("type({name})")))
}

#[expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "the signature of a function of rules"
)]
fn type_of(value: Cel) -> ResolveResult {
    Ok(type_named(match value {
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::Bool(_) => "bool",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Null => "null_type",
        _ => "other",
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a function of rules")]
fn same(value: Cel) -> ResolveResult {
    Ok(value)
}

impl Run {
    fn walk(&mut self, value: &Value, old: Option<&Value>, schema: &Structural, path: &str, is_root: bool) {
        if value.is_null() || !schema.has_rules() {
            return;
        }
        if !schema.rules.is_empty() {
            self.rules(value, old, schema, path, is_root);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    // An atomic map is one value: what is in it has no past of its own.
                    let before = old.filter(|_| !schema.is_atomic_map).and_then(|old| old.get(name));
                    if let Some(property) = schema.properties.get(name) {
                        self.walk(member, before, property, &child(path, name), false);
                    } else if let Additional::Of(of) = &schema.additional {
                        self.walk(member, before, of, &format!("{path}[{name}]"), false);
                    }
                }
            }
            Value::Array(items) => {
                let Some(of) = &schema.items else { return };
                let olds = Correlation::new(old, schema);
                for (index, item) in items.iter().enumerate() {
                    let before = olds.of(item);
                    self.walk(item, before, of, &format!("{path}[{index}]"), false);
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, value: &Value, old: Option<&Value>, schema: &Structural, path: &str, is_root: bool) {
        let this = value::to_cel(value, Some(schema), is_root);
        let before = old.filter(|old| !old.is_null()).map(|old| value::to_cel(old, Some(schema), is_root));
        let largest = value::largest(value).max(old.map_or(0, value::largest));
        for rule in &schema.rules {
            let is_new = before.is_none();
            if rule.is_transition && is_new && !rule.takes_no_old {
                continue;
            }
            // What did not change is not held against a rule that came later.
            if !rule.is_transition && old == Some(value) {
                continue;
            }
            let cost = rule.program.cost(largest);
            if cost > self.left {
                self.left = 0;
                self.push(path, FieldErrorKind::Invalid, value, "validation failed due to running out of cost budget, no further validation rules will be run".to_owned());
                return;
            }
            self.left -= cost;
            let old_self = match (&before, rule.takes_no_old) {
                (Some(before), false) => before.clone(),
                (Some(before), true) => optional(OptionalValue::of(before.clone())),
                (None, _) => optional(OptionalValue::none()),
            };
            self.rule(rule, &this, &old_self, value, path);
        }
    }

    fn rule(&mut self, rule: &Rule, this: &Cel, old_self: &Cel, value: &Value, path: &str) {
        let at = match rule.field_path.as_str() {
            "" => path.to_owned(),
            inner if inner.starts_with('[') => format!("{path}{inner}"),
            inner => child(path, inner.trim_start_matches('.')),
        };
        match execute(&rule.program.program, this, old_self) {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => {
                let said = rule.message_program.as_ref().and_then(|program| {
                    match execute(program, this, old_self) {
                        Ok(Cel::String(text)) => Some(text.trim().to_owned())
                            .filter(|text| !text.is_empty() && !text.contains('\n')),
                        _ => None,
                    }
                });
                let message = said.unwrap_or_else(|| {
                    if rule.message.is_empty() {
                        format!("failed rule: {}", rule.source)
                    } else {
                        rule.message.clone()
                    }
                });
                self.push(&at, rule.kind, value, message);
            }
            Ok(_) => self.push(
                path,
                FieldErrorKind::Invalid,
                value,
                format!("rule must evaluate to a bool: {}", rule.source),
            ),
            Err(why) => self.push(
                path,
                FieldErrorKind::Invalid,
                value,
                format!("{why} evaluating rule: {}", rule.describe()),
            ),
        }
    }

    fn push(&mut self, path: &str, kind: FieldErrorKind, value: &Value, detail: String) {
        let path = if path.is_empty() { NO_PATH } else { path };
        let shown = match kind {
            FieldErrorKind::Invalid | FieldErrorKind::Duplicate => {
                Some(if value.is_object() { "object".into() } else { value.clone() })
            }
            _ => None,
        };
        let detail = if kind == FieldErrorKind::Duplicate { String::new() } else { detail };
        self.errors.push(FieldError::new(kind, path, shown, detail));
    }
}

impl Rule {
    fn describe(&self) -> &str {
        if self.message.is_empty() { &self.source } else { &self.message }
    }
}

/// Items a list may have in a schema that does not say: as many as a request can hold.
const UNBOUNDED: u64 = 1 << 20;

impl Compiled {
    /// Whether loops within loops take longer than any object should, for the largest collections the schema allows.
    pub(crate) fn costs_too_much(&self, schema: &Structural) -> bool {
        // One loop over anything a request can hold is affordable.
        self.steps_by_depth.len() > 2 && self.cost(most_items(schema)) > 10 * BUDGET
    }

    /// Steps for collections of up to `size` items.
    fn cost(&self, size: u64) -> u64 {
        let mut rounds: u64 = 1;
        let mut cost: u64 = 0;
        for steps in &self.steps_by_depth {
            cost = cost.saturating_add(steps.saturating_mul(rounds));
            rounds = rounds.saturating_mul(size.max(1));
        }
        cost
    }
}

/// Items of the largest list or map a schema allows.
fn most_items(schema: &Structural) -> u64 {
    let own = match schema.ty {
        Some(Ty::Array) => schema.bounds.max_items.unwrap_or(UNBOUNDED),
        Some(Ty::Object) if !matches!(schema.additional, Additional::None) => {
            schema.bounds.max_properties.unwrap_or(UNBOUNDED)
        }
        _ => 0,
    };
    let below = schema.properties.values().chain(schema.items.as_deref());
    let additional = match &schema.additional {
        Additional::Of(of) => Some(&**of),
        Additional::None | Additional::Any => None,
    };
    below.chain(additional).map(most_items).max().unwrap_or(0).max(own)
}

fn optional(value: OptionalValue) -> Cel {
    Cel::Opaque(std::sync::Arc::new(value))
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Runs a program. A library that panics has failed, and no more.
fn execute(program: &Program, this: &Cel, old_self: &Cel) -> Result<Cel, String> {
    FUNCTIONS.with_borrow(|functions| {
        let run = || {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("self", this.clone());
            context.add_variable_from_value("oldSelf", old_self.clone());
            program.execute(&context)
        };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("internal error".to_owned()),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Structural, validate};

    fn failures(rule: &Value, spec: &Value, old: Option<&Value>) -> Vec<(String, &'static str)> {
        let schema = Structural::read(&json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [rule],
            "properties": {
                "n": {"type": "integer"}, "f": {"type": "number"}, "s": {"type": "string"}, "a-b": {"type": "string"},
                "namespace": {"type": "string"}, "d": {"type": "string", "format": "duration"},
                "l": {"type": "array", "items": {"type": "integer"}},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
                "q": {"type": "string"}, "ios": {"x-kubernetes-int-or-string": true},
            },
        }}}));
        let old = old.map(|old| json!({"spec": old}));
        let errors = validate(&json!({"spec": spec}), old.as_ref(), &schema);
        errors.into_iter().map(|error| (error.path, error.kind.reason())).collect()
    }

    #[test]
    fn rules_read_values_as_their_schemas_say() {
        let good = json!({"n": 3, "f": 2, "s": "abc", "a-b": "x", "namespace": "ns", "d": "90m", "l": [1, 2, 3],
            "m": {"k-1": "v"}, "q": "1Gi", "ios": "50%"});
        let rules = [
            "self.n == 3",
            "self.f == 2.0",
            "self.s.startsWith('ab') && self.s.size() == 3",
            "self.a__dash__b == 'x'",
            "self.__namespace__ == 'ns'",
            "self.d > duration('1h')",
            "self.l.all(i, i > 0) && self.l.exists(i, i == 2) && self.l.sum() == 6",
            "self.m['k-1'] == 'v' && 'k-1' in self.m",
            "quantity(self.q).isGreaterThan(quantity('500Mi'))",
            "type(self.ios) == int ? self.ios < 5 : self.ios == '50%'",
            "!has(self.missing)",
            "self.s.matches('^a.c$')",
            "isURL('https://example.com') && url('https://example.com/x').getHost() == 'example.com'",
        ];
        let mut failed = Vec::new();
        for rule in rules {
            let found = failures(&json!({"rule": rule}), &good, None);
            if !found.is_empty() {
                failed.push((rule, found));
            }
        }
        assert!(failed.is_empty(), "{failed:?}");
    }

    #[test]
    fn a_broken_rule_says_what_its_author_said() {
        let rule = json!({"rule": "self.n < 3", "messageExpression": "'n is ' + string(self.n)", "reason": "FieldValueForbidden", "fieldPath": ".n"});
        assert_eq!(failures(&rule, &json!({"n": 4}), None), [("spec.n".to_owned(), "FieldValueForbidden")]);
        assert_eq!(
            failures(&json!({"rule": "self.n < 3"}), &json!({}), None),
            [("spec".to_owned(), "FieldValueInvalid")]
        );
    }

    #[test]
    fn rules_about_changes_run_on_changes() {
        let rule = json!({"rule": "self.n >= oldSelf.n"});
        assert_eq!(failures(&rule, &json!({"n": 1}), None), []);
        assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 1}))), []);
        assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 2}))).len(), 1);
        let optional =
            json!({"rule": "!oldSelf.hasValue() || oldSelf.value().n <= self.n", "optionalOldSelf": true});
        assert_eq!(failures(&optional, &json!({"n": 1}), None), []);
        assert_eq!(failures(&optional, &json!({"n": 1}), Some(&json!({"n": 2}))).len(), 1);
    }

    #[test]
    fn what_did_not_change_is_not_held_against_a_newer_rule() {
        let rule = json!({"rule": "self.n > 5"});
        assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 1}))), []);
        assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 2}))).len(), 1);
    }

    #[test]
    fn a_rule_that_would_take_too_long_is_not_run() {
        let many: Vec<usize> = (0..2000).collect();
        let rule = json!({"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))"});
        assert_eq!(failures(&rule, &json!({"l": many}), None), [("spec".to_owned(), "FieldValueInvalid")]);
    }
}
