//! What is wrong with a rule before it runs: names it uses that do not exist, results that are no truth.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr, LiteralValue, operators},
};

use super::{
    super::{
        prune::META,
        structural::{Additional, Structural, Ty},
    },
    Compiled, value,
};

/// What is known about an expression.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// A value beside this schema.
    Of(&'a Structural, bool),
    /// Metadata of an object.
    Metadata,
    /// A value of this type.
    Type(Ty),
    /// Nothing.
    Nothing,
}

type Scope<'a> = Vec<(String, Known<'a>)>;

/// Types and namespaces of functions that are written like variables.
const WORDS: [&str; 26] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "timestamp",
    "duration",
    "dyn",
    "sets",
    "math",
    "base64",
    "optional",
    "cel",
    "strings",
    "ip",
    "cidr",
    "format",
    "jsonpatch",
    "semver",
    "google",
    "lists",
];

/// What is wrong with a rule beside `schema`, or with the expression of its message.
pub(crate) fn problem(
    compiled: &Compiled,
    schema: &Structural,
    is_root: bool,
    has_optional_old: bool,
    wanted: Ty,
) -> Option<String> {
    let old = if has_optional_old { Known::Nothing } else { Known::Of(schema, is_root) };
    let mut scope = vec![("self".to_owned(), Known::Of(schema, is_root)), ("oldSelf".to_owned(), old)];
    match infer(compiled.program.expression(), &mut scope) {
        Err(problem) => Some(format!("compilation failed: {problem}")),
        Ok(known) => {
            let given = match known {
                Known::Of(schema, _) if schema.is_int_or_string || schema.keeps_unknown => None,
                Known::Of(schema, _) => schema.ty,
                Known::Type(ty) => Some(ty),
                Known::Metadata => Some(Ty::Object),
                Known::Nothing => None,
            };
            let word = if wanted == Ty::Boolean { "bool" } else { "string" };
            given.filter(|given| *given != wanted).map(|_| format!("must evaluate to a {word}"))
        }
    }
}

fn infer<'a>(expression: &IdedExpr, scope: &mut Scope<'a>) -> Result<Known<'a>, String> {
    match &expression.expr {
        Expr::Unspecified => Ok(Known::Nothing),
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Known::Type(Ty::Boolean),
            LiteralValue::String(_) => Known::Type(Ty::String),
            LiteralValue::Int(_) => Known::Type(Ty::Integer),
            LiteralValue::Double(_) => Known::Type(Ty::Number),
            LiteralValue::Bytes(_) | LiteralValue::Null | LiteralValue::UInt(_) => Known::Nothing,
        }),
        Expr::Ident(name) => match scope.iter().rev().find(|(known, _)| known == name) {
            Some((_, known)) => Ok(*known),
            None if WORDS.contains(&name.as_str()) => Ok(Known::Nothing),
            None => Err(format!("undeclared reference to '{name}' (in container '')")),
        },
        Expr::Select(select) => {
            // What looks like a member of a namespace is a name of its own.
            if let Expr::Ident(name) = &select.operand.expr
                && WORDS.contains(&name.as_str())
                && !scope.iter().any(|(known, _)| known == name)
            {
                return Ok(Known::Nothing);
            }
            let known = member(infer(&select.operand, scope)?, &select.field)?;
            Ok(if select.test { Known::Type(Ty::Boolean) } else { known })
        }
        Expr::Call(call) => {
            let target = call.target.as_ref().map(|target| infer(target, scope)).transpose()?;
            let mut arguments = Vec::with_capacity(call.args.len());
            for argument in &call.args {
                arguments.push(infer(argument, scope)?);
            }
            Ok(result_of(&call.func_name, target, &arguments))
        }
        Expr::List(list) => {
            for element in &list.elements {
                infer(element, scope)?;
            }
            Ok(Known::Type(Ty::Array))
        }
        Expr::Map(map) => {
            map.entries.iter().try_for_each(|entry| entry_of(&entry.expr, scope))?;
            Ok(Known::Type(Ty::Object))
        }
        Expr::Struct(of) => {
            of.entries.iter().try_for_each(|entry| entry_of(&entry.expr, scope))?;
            Ok(Known::Nothing)
        }
        Expr::Comprehension(of) => {
            let range = infer(&of.iter_range, scope)?;
            let start = infer(&of.accu_init, scope)?;
            let length = scope.len();
            let item = match range {
                Known::Of(schema, _) => match &schema.items {
                    Some(items) if of.iter_var2.is_none() => Known::Of(items, false),
                    _ => Known::Nothing,
                },
                _ => Known::Nothing,
            };
            scope.push((of.iter_var.clone(), item));
            if let Some(second) = &of.iter_var2 {
                scope.push((second.clone(), Known::Nothing));
            }
            scope.push((of.accu_var.clone(), start));
            infer(&of.loop_cond, scope)?;
            infer(&of.loop_step, scope)?;
            let result = infer(&of.result, scope)?;
            scope.truncate(length);
            Ok(result)
        }
    }
}

fn entry_of(entry: &EntryExpr, scope: &mut Scope<'_>) -> Result<(), String> {
    match entry {
        EntryExpr::StructField(field) => infer(&field.value, scope).map(drop),
        EntryExpr::MapEntry(entry) => {
            infer(&entry.key, scope)?;
            infer(&entry.value, scope).map(drop)
        }
    }
}

fn member<'a>(of: Known<'a>, field: &str) -> Result<Known<'a>, String> {
    let undefined = || Err(format!("undefined field '{field}'"));
    match of {
        Known::Nothing | Known::Type(Ty::Object) => Ok(Known::Nothing),
        Known::Type(ty) => Err(format!("type '{}' does not support field selection", ty.name())),
        Known::Metadata => match field {
            "name" | "generateName" => Ok(Known::Type(Ty::String)),
            _ => undefined(),
        },
        Known::Of(schema, is_root) => {
            if (is_root || schema.is_embedded) && META.contains(&field) {
                return Ok(if field == "metadata" { Known::Metadata } else { Known::Type(Ty::String) });
            }
            if let Some((_, property)) =
                schema.properties.iter().find(|(name, _)| value::escape(name) == field)
            {
                return Ok(Known::Of(property, false));
            }
            match (&schema.additional, schema.ty) {
                (Additional::Of(of), _) => Ok(Known::Of(of, false)),
                (Additional::Any, _) | (Additional::None, None) => Ok(Known::Nothing),
                (Additional::None, Some(Ty::Object)) => undefined(),
                (Additional::None, Some(ty)) => {
                    Err(format!("type '{}' does not support field selection", ty.name()))
                }
            }
        }
    }
}

fn result_of<'a>(function: &str, target: Option<Known<'a>>, arguments: &[Known<'a>]) -> Known<'a> {
    match function {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::IN
        | operators::NOT_STRICTLY_FALSE
        | "startsWith"
        | "endsWith"
        | "matches" => Known::Type(Ty::Boolean),
        "size" => Known::Type(Ty::Integer),
        "string" => Known::Type(Ty::String),
        operators::INDEX => match target.or(arguments.first().copied()) {
            Some(Known::Of(schema, _)) => match (&schema.items, &schema.additional) {
                (Some(items), _) => Known::Of(items, false),
                (None, Additional::Of(of)) => Known::Of(of, false),
                _ => Known::Nothing,
            },
            _ => Known::Nothing,
        },
        _ => Known::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::compile, Structural, Ty, problem};

    #[test]
    fn names_that_do_not_exist_are_found_before_a_rule_runs() {
        let schema = Structural::read(&json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "b": {"type": "boolean"},
            "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"y": {"type": "string"}}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "a-b": {"type": "string"},
        }}));
        let good = [
            "self.n > 1",
            "self.b",
            "has(self.n) && self.l.all(i, i.x == 'a')",
            "self.m['k'].y == 'z'",
            "self.l[0].x == ''",
            "self.a__dash__b != ''",
            "size(self.l) < 3",
            "sets.contains([1], [1])",
            "self.l.exists_one(i, has(i.x))",
            "self.l.map(i, i.x).size() > 0",
            "self.metadata.name.startsWith('a')",
            "self.m.all(k, k != '')",
            "self.l.filter(i, i.x == 'a').size() == 1",
            "oldSelf.n == self.n",
            "type(self.n) == int",
            "math.greatest(1, self.n) > 2",
        ];
        for rule in good {
            assert_eq!(problem(&compile(rule).unwrap(), &schema, true, false, Ty::Boolean), None, "{rule}");
        }
        let bad = [
            "self.nope > 1",
            "self.l.all(i, i.nope == 'a')",
            "self.m['k'].nope == ''",
            "other == 1",
            "self.n",
            "self.n.x == 1",
            "'text'",
            "self.metadata.labels == {}",
            "self.any.x == 1",
        ];
        for rule in bad {
            assert!(problem(&compile(rule).unwrap(), &schema, true, false, Ty::Boolean).is_some(), "{rule}");
        }
    }
}
