//! The type checker: undeclared names, unknown fields, calls without a matching overload.

use std::{collections::HashMap, sync::Arc};

use super::{
    ast::{Call, Comprehension, Element, Entry, Expr, ExprKind, Literal, Select, op},
    decl::{Decl, DeclType},
    escape::is_reserved,
    signatures::{self, Overload},
    types::{Bindings, CelType, most_general},
};

/// The maximum number of parts of a type. Only expressions whose type grows exponentially exceed it.
const WEIGHT: usize = 600;

/// The types and overloads of an expression.
#[derive(Debug)]
pub(super) struct TypedExpr {
    /// The type of each node, by its index.
    pub(super) types: Vec<CelType>,
    /// The overloads that each call can resolve to.
    pub(super) overloads: HashMap<usize, Vec<&'static Overload>>,
    pub(super) result: CelType,
}

/// Checks an expression with these variables.
///
/// # Errors
/// One message for each error.
pub(super) fn check(
    expr: &Expr,
    nodes: usize,
    variables: Vec<(Arc<str>, CelType)>,
) -> Result<TypedExpr, Vec<String>> {
    let mut checker = Checker {
        bindings: Bindings::default(),
        types: vec![CelType::Error; nodes],
        overloads: HashMap::new(),
        scope: variables,
        errors: Vec::new(),
    };
    let result = checker.check(expr);
    if !checker.errors.is_empty() {
        return Err(checker.errors);
    }
    let bindings = &checker.bindings;
    Ok(TypedExpr {
        result: bindings.resolve_fully(&result),
        types: checker.types.iter().map(|ty| bindings.resolve_fully(ty)).collect(),
        overloads: checker.overloads,
    })
}

impl TypedExpr {
    /// Reports an error for each list or map literal with mixed types, except in arguments of `format`.
    pub(super) fn mixed_literals(&self, expr: &Expr, errors: &mut Vec<String>) {
        let mut is_exempt = false;
        match &expr.kind {
            ExprKind::Call(call) => is_exempt = &*call.function == "format",
            ExprKind::List(items) => {
                let parts = items.iter().map(|item| (&item.value, item.is_optional));
                errors.extend(self.mismatch(parts));
            }
            ExprKind::Map(entries) => {
                errors.extend(self.mismatch(entries.iter().map(|entry| (&entry.key, false))));
                errors.extend(self.mismatch(entries.iter().map(|entry| (&entry.value, entry.is_optional))));
            }
            _ => {}
        }
        if !is_exempt {
            expr.children(&mut |child| self.mixed_literals(child, errors));
        }
    }

    fn mismatch<'a>(&self, parts: impl Iterator<Item = (&'a Expr, bool)>) -> Option<String> {
        let mut first: Option<CelType> = None;
        for (part, is_optional) in parts {
            let mut ty = self.types.get(part.id)?.clone();
            if is_optional {
                ty = ty.unwrap_optional().0;
            }
            match &first {
                None => first = Some(ty),
                Some(first) if first.is_exactly(&ty) => {}
                Some(first) => return Some(format!("expected type '{first}' but found '{ty}'")),
            }
        }
        None
    }
}

struct Checker {
    bindings: Bindings,
    types: Vec<CelType>,
    overloads: HashMap<usize, Vec<&'static Overload>>,
    scope: Vec<(Arc<str>, CelType)>,
    errors: Vec<String>,
}

impl Checker {
    fn error(&mut self, message: String) -> CelType {
        // Further errors would only repeat the first ones.
        if self.errors.len() < 10 {
            self.errors.push(message);
        }
        CelType::Error
    }

    fn check(&mut self, expr: &Expr) -> CelType {
        let ty = match &expr.kind {
            ExprKind::Literal(literal) => type_of(literal),
            ExprKind::Ident(name) => self.ident(name),
            ExprKind::Select(select) => self.select(select),
            ExprKind::Call(call) => self.call(expr.id, call),
            ExprKind::List(items) => self.list(items),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Comprehension(fold) => self.fold(fold),
        };
        let ty = if ty.weight(WEIGHT) >= WEIGHT { self.error("type is too complex".to_owned()) } else { ty };
        if let Some(slot) = self.types.get_mut(expr.id) {
            *slot = ty.clone();
        }
        ty
    }

    fn ident(&mut self, name: &str) -> CelType {
        if let Some((_, ty)) = self.scope.iter().rev().find(|(known, _)| &**known == name) {
            return ty.clone();
        }
        match signatures::type_ident(name) {
            Some(ty) => CelType::Meta(Arc::new(ty)),
            None => self.error(format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    /// Returns the type of a variable whose name has a dot, such as `authorizer.requestResource`.
    fn dotted(&self, select: &Select) -> Option<CelType> {
        let ExprKind::Ident(name) = &select.operand.kind else { return None };
        let is_meant = |known: &str| {
            known.strip_prefix(&**name).and_then(|rest| rest.strip_prefix('.')) == Some(&*select.field)
        };
        self.scope.iter().find(|(known, _)| is_meant(known)).map(|(_, ty)| ty.clone())
    }

    fn select(&mut self, select: &Select) -> CelType {
        if let Some(ty) = self.dotted(select) {
            return ty;
        }
        let ty = self.field(&select.operand, &select.field, false);
        if select.is_test { CelType::Bool } else { self.bindings.resolve(&ty) }
    }

    fn field(&mut self, operand: &Expr, field: &str, makes_optional: bool) -> CelType {
        let operand = self.check(operand);
        let (target, is_optional) = self.bindings.resolve(&operand).unwrap_optional();
        let found = match &target {
            CelType::Map(_, value) => (**value).clone(),
            CelType::Object(decl) => match field_of(decl, field) {
                Some(ty) => ty,
                None => self.error(format!("undefined field '{field}'")),
            },
            CelType::Variable(_) => {
                self.bindings.assign(&CelType::Dyn, &target);
                CelType::Dyn
            }
            CelType::Dyn | CelType::Error => CelType::Dyn,
            CelType::Named(_) => self.error(format!("undefined field '{field}'")),
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.error(message)
            }
        };
        if is_optional || makes_optional { CelType::optional(found) } else { found }
    }

    fn call(&mut self, id: usize, call: &Call) -> CelType {
        if &*call.function == op::OPT_SELECT {
            if let [operand, field] = call.args.as_slice()
                && let ExprKind::Literal(Literal::String(name)) = &field.kind
            {
                self.check(field);
                let ty = self.field(operand, name, true);
                // The operator alone determines the overload.
                self.overloads.insert(id, Vec::new());
                return self.bindings.resolve(&ty);
            }
            return CelType::Error;
        }
        let args: Vec<CelType> = call.args.iter().map(|arg| self.check(arg)).collect();
        let target = call.target.as_ref().map(|target| self.check(target));
        let is_member = target.is_some();
        let given: Vec<CelType> = target.into_iter().chain(args).collect();
        let function = &*call.function;
        let Some(overloads) = signatures::overloads(function) else {
            return self.error(format!("undeclared reference to '{function}' (in container '')"));
        };
        if matches!(function, op::AND | op::OR) {
            for ty in &given {
                if !self.bindings.assign(ty, &CelType::Bool) {
                    let message =
                        format!("expected type 'bool' but found '{}'", self.bindings.resolve_fully(ty));
                    self.error(message);
                }
            }
            self.overloads.insert(id, overloads.iter().collect());
            return CelType::Bool;
        }
        let mut matching = Vec::new();
        let mut result: Option<CelType> = None;
        for overload in overloads {
            if overload.is_member != is_member || overload.params.len() != given.len() {
                continue;
            }
            let (params, instance) = overload.instantiate(&mut self.bindings);
            if !self.bindings.assign_all(given.iter().zip(&params)) {
                continue;
            }
            matching.push(overload);
            let instance = self.bindings.resolve(&instance);
            result = Some(match result {
                None => instance,
                Some(CelType::Dyn) => CelType::Dyn,
                Some(first) if first.is_exactly(&instance) => first,
                Some(_) => CelType::Dyn,
            });
        }
        let Some(result) = result else {
            let display = |ty: &CelType| self.bindings.resolve_fully(ty).to_string();
            let mut display: Vec<String> = given.iter().map(display).collect();
            let receiver = if is_member { format!("{}.", display.remove(0)) } else { String::new() };
            let message = format!(
                "found no matching overload for '{function}' applied to '{receiver}({})'",
                display.join(", ")
            );
            return self.error(message);
        };
        self.overloads.insert(id, matching);
        result
    }

    /// Returns the common type of two elements of a list or map literal.
    fn join(&mut self, previous: Option<CelType>, current: CelType) -> CelType {
        let Some(previous) = previous else { return current };
        if self.bindings.assign(&previous, &current) {
            return most_general(previous, current);
        }
        // Mixed literals are an error everywhere except in arguments of `format`.
        CelType::Dyn
    }

    /// Returns the inner type of an optional element of a list or map literal.
    fn unwrap(&mut self, ty: CelType) -> CelType {
        let (inner, is_optional) = ty.unwrap_optional();
        if !is_optional && !matches!(inner, CelType::Dyn) {
            let message = format!("expected type 'optional_type({inner})' but found '{inner}'");
            self.error(message);
        }
        inner
    }

    fn list(&mut self, items: &[Element]) -> CelType {
        let mut joined = None;
        for item in items {
            let mut ty = self.check(&item.value);
            if item.is_optional {
                ty = self.unwrap(ty);
            }
            joined = Some(self.join(joined, ty));
        }
        CelType::list(joined.unwrap_or_else(|| self.bindings.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> CelType {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check(&entry.key);
            keys = Some(self.join(keys, key));
            let mut value = self.check(&entry.value);
            if entry.is_optional {
                value = self.unwrap(value);
            }
            values = Some(self.join(values, value));
        }
        match (keys, values) {
            (Some(key), Some(value)) => CelType::map(key, value),
            _ => CelType::map(self.bindings.fresh(), self.bindings.fresh()),
        }
    }

    fn fold(&mut self, fold: &Comprehension) -> CelType {
        let range = self.check(&fold.range);
        let accumulated = self.check(&fold.init);
        let range = self.bindings.resolve(&range);
        let depth = self.scope.len();
        self.scope.push((Arc::clone(&fold.accumulator), accumulated.clone()));
        let has_second = fold.second.is_some();
        let (first, second) = match &range {
            CelType::List(of) if has_second => (CelType::Int, (**of).clone()),
            CelType::List(of) => ((**of).clone(), CelType::Dyn),
            CelType::Map(key, value) => ((**key).clone(), (**value).clone()),
            CelType::Dyn | CelType::Error | CelType::Variable(_) => {
                self.bindings.assign(&CelType::Dyn, &range);
                (CelType::Dyn, CelType::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.error(message);
                (CelType::Error, CelType::Error)
            }
        };
        let inner = self.scope.len();
        self.scope.push((Arc::clone(&fold.variable), first));
        if let Some(name) = &fold.second {
            self.scope.push((Arc::clone(name), second));
        }
        let condition = self.check(&fold.condition);
        self.expect(&CelType::Bool, &condition);
        let step = self.check(&fold.step);
        self.expect(&accumulated, &step);
        self.scope.truncate(inner);
        let result = self.check(&fold.result);
        self.scope.truncate(depth);
        self.bindings.resolve(&result)
    }

    fn expect(&mut self, required: &CelType, found: &CelType) {
        if !self.bindings.assign(required, found) {
            let (required, found) =
                (self.bindings.resolve_fully(required), self.bindings.resolve_fully(found));
            self.error(format!("expected type '{required}' but found '{found}'"));
        }
    }
}

fn type_of(literal: &Literal) -> CelType {
    match literal {
        Literal::Null => CelType::Null,
        Literal::Bool(_) => CelType::Bool,
        Literal::Int(_) => CelType::Int,
        Literal::Uint(_) => CelType::Uint,
        Literal::Double(_) => CelType::Double,
        Literal::String(_) => CelType::String,
        Literal::Bytes(_) => CelType::Bytes,
    }
}

/// Returns the type of a property. Reserved words are accepted with and without escaping.
fn field_of(decl: &Arc<Decl>, field: &str) -> Option<CelType> {
    let DeclType::Object(fields) = &decl.ty else { return None };
    let found = fields
        .get(field)
        .or_else(|| if is_reserved(field) { fields.get(&format!("__{field}__")) } else { None });
    found.map(Decl::cel_type)
}
