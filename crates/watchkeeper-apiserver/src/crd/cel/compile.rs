//! Compilation of the text of a rule to an executable expression.

use std::sync::Arc;

use super::{
    ast::{Call, Expr, ExprKind, Literal},
    check::{TypedExpr, check},
    decl::Decl,
    estimate::estimate,
    parser::parse,
    pattern::{self, RegexCache},
    stack,
    types::CelType,
};

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) expr: Expr,
    /// The number of nodes of the expression.
    pub(crate) nodes: usize,
    pub(super) patterns: RegexCache,
}

/// The required type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleResultType {
    /// A boolean, the result of a rule.
    Bool,
    /// A string, the result of a message expression.
    String,
}

impl Compiled {
    /// Parses an expression.
    ///
    /// # Errors
    /// Returns a message with the position of the error.
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        let (expr, nodes) = stack::with_stack(stack::nesting(source), || parse(source))
            .unwrap_or_else(|| Err("no thread to parse on".to_owned()))?;
        Ok(Self { expr, nodes, patterns: RegexCache::default() })
    }

    /// Returns whether the expression refers to the value before a change.
    pub(crate) fn uses_old_self(&self) -> bool {
        self.expr.mentions("oldSelf")
    }

    /// Checks the types of the expression. Returns its estimated cost.
    ///
    /// # Errors
    /// One message for each error, or a message about a result of the wrong type.
    pub(crate) fn check(
        &self,
        decl: &Arc<Decl>,
        has_optional_old: bool,
        expected: RuleResultType,
    ) -> Result<u64, String> {
        stack::with_stack(self.expr.depth, || self.check_on_stack(decl, has_optional_old, expected))
            .unwrap_or_else(|| Err("compilation failed: no thread to check on".to_owned()))
    }

    fn check_on_stack(
        &self,
        decl: &Arc<Decl>,
        has_optional_old: bool,
        expected: RuleResultType,
    ) -> Result<u64, String> {
        let prefix = if expected == RuleResultType::String { "messageExpression " } else { "" };
        let this = decl.cel_type();
        let old = if has_optional_old { CelType::optional(this.clone()) } else { this.clone() };
        let checked = self
            .checked(vec![("self".into(), this), ("oldSelf".into(), old)])
            .map_err(|error| format!("{prefix}{error}"))?;
        let TypedExpr { result, .. } = &checked;
        match (expected, result) {
            (RuleResultType::Bool, CelType::Bool) | (RuleResultType::String, CelType::String) => {}
            (RuleResultType::Bool, _) => return Err("cel expression must evaluate to a bool".to_owned()),
            (RuleResultType::String, _) => {
                return Err("messageExpression must evaluate to a string".to_owned());
            }
        }
        Ok(estimate(&self.expr, &checked, decl))
    }
}

impl Compiled {
    /// Returns the type of the expression, given the types of its variables.
    ///
    /// # Errors
    /// Returns a message that shows each mistake.
    pub(super) fn type_in(&self, variables: &[(Arc<str>, CelType)]) -> Result<CelType, String> {
        stack::with_stack(self.expr.depth, || self.checked(variables.to_vec()).map(|checked| checked.result))
            .unwrap_or_else(|| Err("compilation failed: no thread to check on".to_owned()))
    }

    fn checked(&self, variables: Vec<(Arc<str>, CelType)>) -> Result<TypedExpr, String> {
        let fail = |errors: &[String]| {
            let errors: Vec<String> = errors.iter().map(|error| format!("ERROR: <input>: {error}")).collect();
            format!("compilation failed: {}", errors.join("\n"))
        };
        let checked = check(&self.expr, self.nodes, variables).map_err(|errors| fail(&errors))?;
        let mut errors = Vec::new();
        checked.mixed_literals(&self.expr, &mut errors);
        literals(&self.expr, &mut errors);
        if errors.is_empty() { Ok(checked) } else { Err(fail(&errors)) }
    }
}

/// Checks literals that are parsed by functions: regular expressions, times and durations.
fn literals(expr: &Expr, errors: &mut Vec<String>) {
    if let ExprKind::Call(call) = &expr.kind {
        errors.extend(literal_problem(call));
    }
    expr.children(&mut |child| literals(child, errors));
}

fn literal_problem(call: &Call) -> Option<String> {
    let text = |arg: Option<&Expr>| match &arg?.kind {
        ExprKind::Literal(Literal::String(text)) => Some(Arc::new(text.to_string())),
        _ => None,
    };
    match &*call.function {
        "matches" => {
            let pattern = text(call.args.last())?;
            (!pattern::is_valid(&pattern)).then(|| "invalid matches argument".to_owned())
        }
        "duration" => {
            let parsed = kube_cel::cel::functions::duration(text(call.args.first())?);
            parsed.is_err().then(|| "invalid duration argument".to_owned())
        }
        "timestamp" => {
            let parsed = kube_cel::cel::functions::timestamp(text(call.args.first())?);
            parsed.is_err().then(|| "invalid timestamp argument".to_owned())
        }
        _ => None,
    }
}
