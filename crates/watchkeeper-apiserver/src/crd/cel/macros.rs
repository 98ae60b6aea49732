//! The macros of CEL, expanded as in cel-go so that costs are the same.

use std::sync::Arc;

use super::{
    ast::{ACCUMULATOR, Comprehension, Expr, ExprKind, Literal, op},
    parser::Nodes,
};

/// The result of a macro lookup: an expansion, or the unchanged parts of a plain call.
pub(super) enum Expanded {
    Yes(Expr),
    No(Expr, Vec<Expr>),
}

/// Expands `target.name(args)` if it is a macro.
///
/// # Errors
/// Returns a message if the arguments do not match the macro.
pub(super) fn expand(
    nodes: &mut Nodes,
    name: &str,
    target: Expr,
    args: Vec<Expr>,
) -> Result<Expanded, String> {
    let folds = match (name, args.len()) {
        ("all" | "exists" | "exists_one" | "existsOne" | "map", 2 | 3)
        | ("filter", 2)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => true,
        ("optMap" | "optFlatMap" | "sortBy", 2) => false,
        _ => return Ok(Expanded::No(target, args)),
    };
    let expr = if folds {
        fold(nodes, name, target, args)?
    } else if name == "sortBy" {
        sort_by(nodes, target, args)?
    } else {
        optional(nodes, name, target, args)?
    };
    Ok(Expanded::Yes(expr))
}

/// Returns the variable that an argument names.
fn variable(arg: &Expr) -> Result<Arc<str>, String> {
    match &arg.kind {
        ExprKind::Ident(name) if &**name == "__result__" => {
            Err("iteration variable overwrites accumulator variable".to_owned())
        }
        ExprKind::Ident(name) => Ok(Arc::clone(name)),
        _ => Err("argument must be a simple name".to_owned()),
    }
}

fn fold(nodes: &mut Nodes, name: &str, range: Expr, args: Vec<Expr>) -> Result<Expr, String> {
    let mut args = args.into_iter();
    let mut next = || args.next().ok_or_else(|| "missing macro argument".to_owned());
    let first = next()?;
    let variable_name = variable(&first)?;
    let has_second = name.starts_with("transform") || (args.len() == 2 && name != "map");
    let mut next = || args.next().ok_or_else(|| "missing macro argument".to_owned());
    let second = if has_second {
        let second = variable(&next()?)?;
        if second == variable_name {
            return Err(format!("duplicate variable name: {second}"));
        }
        Some(second)
    } else {
        None
    };
    let body = next()?;
    // With a further argument, the body is a filter.
    let (filter, body) = match args.next() {
        Some(transform) => (Some(body), transform),
        None => (None, body),
    };
    let accu = nodes.ident(ACCUMULATOR)?;
    let (init, condition, step, result);
    match name {
        "all" => {
            init = nodes.literal(Literal::Bool(true))?;
            condition = nodes.call(op::NOT_STRICTLY_FALSE, vec![accu])?;
            let accu = nodes.ident(ACCUMULATOR)?;
            step = nodes.call(op::AND, vec![accu, body])?;
            result = nodes.ident(ACCUMULATOR)?;
        }
        "exists" => {
            init = nodes.literal(Literal::Bool(false))?;
            let not = nodes.call(op::NOT, vec![accu])?;
            condition = nodes.call(op::NOT_STRICTLY_FALSE, vec![not])?;
            let accu = nodes.ident(ACCUMULATOR)?;
            step = nodes.call(op::OR, vec![accu, body])?;
            result = nodes.ident(ACCUMULATOR)?;
        }
        "exists_one" | "existsOne" => {
            init = nodes.literal(Literal::Int(0))?;
            condition = nodes.literal(Literal::Bool(true))?;
            let one = nodes.literal(Literal::Int(1))?;
            let more = nodes.call(op::ADD, vec![accu, one])?;
            let accu = nodes.ident(ACCUMULATOR)?;
            step = nodes.call(op::CONDITIONAL, vec![body, more, accu])?;
            let (accu, one) = (nodes.ident(ACCUMULATOR)?, nodes.literal(Literal::Int(1))?);
            result = nodes.call(op::EQUALS, vec![accu, one])?;
        }
        _ => {
            condition = nodes.literal(Literal::Bool(true))?;
            let (filter, added) = match name {
                "filter" => {
                    let item = nodes.list(vec![first])?;
                    (Some(body), nodes.call(op::ADD, vec![accu, item])?)
                }
                "transformMap" => {
                    let key = nodes.ident(&variable_name)?;
                    (filter, nodes.call(op::MAP_INSERT, vec![accu, key, body])?)
                }
                "transformMapEntry" => (filter, nodes.call(op::MAP_INSERT, vec![accu, body])?),
                _ => {
                    let item = nodes.list(vec![body])?;
                    (filter, nodes.call(op::ADD, vec![accu, item])?)
                }
            };
            init = if name.starts_with("transformMap") {
                nodes.make(ExprKind::Map(Vec::new()))?
            } else {
                nodes.list(Vec::new())?
            };
            step = match filter {
                Some(filter) => {
                    let accu = nodes.ident(ACCUMULATOR)?;
                    nodes.call(op::CONDITIONAL, vec![filter, added, accu])?
                }
                None => added,
            };
            result = nodes.ident(ACCUMULATOR)?;
        }
    }
    nodes.make(ExprKind::Comprehension(Box::new(Comprehension {
        range,
        variable: variable_name,
        second,
        accumulator: ACCUMULATOR.into(),
        init,
        condition,
        step,
        result,
    })))
}

/// Creates an expression in which `name` is bound to `value`.
fn bind(nodes: &mut Nodes, name: &Arc<str>, value: Expr, body: Expr) -> Result<Expr, String> {
    let fold = Comprehension {
        range: nodes.list(Vec::new())?,
        variable: "#unused".into(),
        second: None,
        accumulator: Arc::clone(name),
        init: value,
        condition: nodes.literal(Literal::Bool(false))?,
        step: nodes.ident(name)?,
        result: body,
    };
    nodes.make(ExprKind::Comprehension(Box::new(fold)))
}

fn optional(nodes: &mut Nodes, name: &str, target: Expr, mut args: Vec<Expr>) -> Result<Expr, String> {
    let (Some(body), Some(first)) = (args.pop(), args.pop()) else {
        return Err("missing macro argument".to_owned());
    };
    let ExprKind::Ident(variable) = &first.kind else {
        return Err(format!("{name}() variable name must be a simple identifier"));
    };
    let copy = nodes.copy(&target)?;
    let value = nodes.member("value", copy, Vec::new())?;
    let mut present = bind(nodes, variable, value, body)?;
    if name == "optMap" {
        present = nodes.call("optional.of", vec![present])?;
    }
    let has_value = nodes.member("hasValue", target, Vec::new())?;
    let none = nodes.call("optional.none", Vec::new())?;
    nodes.call(op::CONDITIONAL, vec![has_value, present, none])
}

fn sort_by(nodes: &mut Nodes, target: Expr, args: Vec<Expr>) -> Result<Expr, String> {
    let name: Arc<str> = "@__sortBy_input__".into();
    let (input, list) = (nodes.ident(&name)?, nodes.ident(&name)?);
    let keys = fold(nodes, "map", input, args)?;
    let sorted = nodes.member(op::SORT_BY_KEYS, list, vec![keys])?;
    bind(nodes, &name, target, sorted)
}
