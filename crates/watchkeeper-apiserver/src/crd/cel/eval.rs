//! The evaluator: walks the syntax tree and charges each step before executing it.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    ast::{Call, Comprehension, Element, Entry, Expr, ExprKind, Literal, op},
    call::{self, Arguments},
    meter::{EvalError, Meter, no_overload},
    pattern::RegexCache,
    value::{Key, List, Map, Text, Value},
};

pub(super) type EvalResult<'a> = Result<Value<'a>, EvalError>;

/// An evaluation in progress.
pub(super) struct Evaluator<'a, 'm> {
    /// The variables, innermost last. A variable may hold the error of its expression.
    scope: Vec<(Arc<str>, EvalResult<'a>)>,
    pub(super) meter: &'m mut Meter,
    pub(super) patterns: &'m RegexCache,
}

impl<'a, 'm> Evaluator<'a, 'm> {
    pub(super) fn new(meter: &'m mut Meter, patterns: &'m RegexCache) -> Self {
        Self { scope: Vec::new(), meter, patterns }
    }

    pub(super) fn bind(&mut self, name: &str, value: EvalResult<'a>) {
        self.scope.push((name.into(), value));
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> EvalResult<'a> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(of_literal(literal)),
            ExprKind::Ident(name) => self.ident(name),
            ExprKind::Select(select) => {
                let operand = self.eval(&select.operand)?;
                if select.is_test {
                    return has(&operand, &select.field).map(Value::Bool);
                }
                self.meter.charge(1)?;
                field(operand, &select.field)
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::List(items) => self.list(expr, items),
            ExprKind::Map(entries) => self.map(expr, entries),
            ExprKind::Comprehension(fold) if fold.is_binding() => {
                let value = match self.eval(&fold.init) {
                    Err(EvalError::Exhausted) => return Err(EvalError::Exhausted),
                    value => value,
                };
                self.scope.push((Arc::clone(&fold.accumulator), value));
                let result = self.eval(&fold.result);
                self.scope.pop();
                result
            }
            ExprKind::Comprehension(fold) => {
                let depth = self.scope.len();
                let result = self.fold(fold);
                self.scope.truncate(depth);
                result
            }
        }
    }

    fn ident(&mut self, name: &str) -> EvalResult<'a> {
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| &**known == name) {
            self.meter.charge(1)?;
            return value.clone();
        }
        match call::type_named(name) {
            // Types are constants, which cost nothing.
            Some(name) => Ok(Value::Type(name)),
            None => EvalError::error(format!("no such attribute(s): {name}")),
        }
    }

    fn condition(&mut self, expr: &Expr) -> Result<bool, EvalError> {
        match self.eval(expr)? {
            Value::Bool(value) => Ok(value),
            _ => no_overload(),
        }
    }

    /// Evaluates a branch or an index. Kubernetes does not charge for reading a variable or field in these places.
    fn resolve(&mut self, expr: &Expr) -> EvalResult<'a> {
        let value = self.eval(expr);
        if is_attribute(expr) {
            self.meter.cost = self.meter.cost.saturating_sub(1);
        }
        value
    }

    /// Evaluates `&&` (`absorbing` is false) or `||` (`absorbing` is true). Either side can determine the result, even if
    /// the other fails.
    fn logical(&mut self, args: &[Expr], absorbing: bool) -> EvalResult<'a> {
        let mut failed = None;
        for arg in args {
            match self.condition(arg) {
                Ok(value) if value == absorbing => return Ok(Value::Bool(absorbing)),
                Ok(_) => {}
                Err(EvalError::Exhausted) => return Err(EvalError::Exhausted),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        failed.map_or(Ok(Value::Bool(!absorbing)), Err)
    }

    fn call(&mut self, call: &Call) -> EvalResult<'a> {
        let function = &*call.function;
        match (function, call.args.as_slice()) {
            (op::AND, args) => return self.logical(args, false),
            (op::OR, args) => return self.logical(args, true),
            (op::CONDITIONAL, [condition, yes, no]) => {
                return if self.condition(condition)? { self.resolve(yes) } else { self.resolve(no) };
            }
            (op::NOT_STRICTLY_FALSE, [arg]) => {
                let value = self.condition(arg);
                self.meter.charge(1)?;
                return match value {
                    Err(EvalError::Exhausted) => Err(EvalError::Exhausted),
                    Err(EvalError::Error(_)) => Ok(Value::Bool(true)),
                    Ok(value) => Ok(Value::Bool(value)),
                };
            }
            (op::INDEX | op::OPT_INDEX | op::OPT_SELECT, [operand, index]) => {
                let operand = self.eval(operand)?;
                let index = self.resolve(index)?;
                self.meter.charge(1)?;
                return element(operand, &index, function != op::INDEX);
            }
            ("or" | "orValue", [other]) => {
                if let Some(target) = &call.target {
                    return match self.eval(target)? {
                        Value::Optional(None) => self.eval(other),
                        Value::Optional(Some(value)) if function == "orValue" => Ok((*value).clone()),
                        value @ Value::Optional(Some(_)) => Ok(value),
                        _ => no_overload(),
                    };
                }
            }
            _ => {}
        }
        if let (op::IN, [value, list]) = (function, call.args.as_slice())
            && let Some(literals) = literals(list)
        {
            return self.is_among(value, literals);
        }
        let mut values = Vec::with_capacity(call.args.len() + 1);
        for part in call.target.iter().chain(&call.args) {
            values.push(self.eval(part)?);
        }
        let args = Arguments { function, is_member: call.target.is_some(), values };
        // Kubernetes folds conversions of constants at compile time.
        let is_folded = call::is_conversion(function) && call.args.iter().all(Expr::is_constant);
        if !is_folded {
            let cost = args.cost(self.meter)?;
            self.meter.charge(cost)?;
        }
        call::call(self, &args)
    }

    /// Looks up a value among literals. Kubernetes precomputes a set of them, so the lookup has no cost.
    fn is_among(&mut self, value: &Expr, literals: &[Element]) -> EvalResult<'a> {
        let value = self.eval(value)?;
        for item in literals {
            if let ExprKind::Literal(literal) = &item.value.kind
                && call::equal(&of_literal(literal), &value, self.meter)?
            {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    fn list(&mut self, expr: &Expr, items: &[Element]) -> EvalResult<'a> {
        self.meter.allocate_values(items.len())?;
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(&item.value)?;
            match (item.is_optional, value) {
                (false, value) => values.push(value),
                (true, Value::Optional(Some(value))) => values.push((*value).clone()),
                (true, Value::Optional(None)) => {}
                (true, _) => return no_overload(),
            }
        }
        if !expr.is_constant() {
            self.meter.charge(10)?;
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, expr: &Expr, entries: &[Entry]) -> EvalResult<'a> {
        self.meter.allocate_values(entries.len() * 2)?;
        let mut values = BTreeMap::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let mut value = self.eval(&entry.value)?;
            if entry.is_optional {
                match value {
                    Value::Optional(Some(inner)) => value = (*inner).clone(),
                    Value::Optional(None) => continue,
                    _ => return no_overload(),
                }
            }
            let Some(key) = Key::of(&key) else { return EvalError::error("unsupported key type") };
            if values.insert(key, value).is_some() {
                return EvalError::error("insert failed: key already exists");
            }
        }
        if !expr.is_constant() {
            self.meter.charge(30)?;
        }
        Ok(Value::Map(Map::Owned(Arc::new(values))))
    }

    fn fold(&mut self, fold: &Comprehension) -> EvalResult<'a> {
        let range = self.eval(&fold.range)?;
        let init = match self.eval(&fold.init) {
            Err(EvalError::Exhausted) => return Err(EvalError::Exhausted),
            init => init,
        };
        let slot = self.scope.len();
        self.scope.push((Arc::clone(&fold.accumulator), init));
        let keys = match &range {
            Value::List(_) => None,
            Value::Map(map) => {
                self.meter.allocate_values(map.len())?;
                Some(map.keys())
            }
            _ => return no_overload(),
        };
        let count = match (&range, &keys) {
            (_, Some(keys)) => keys.len(),
            (Value::List(list), None) => list.len(),
            _ => 0,
        };
        for index in 0..count {
            self.meter.work(4)?;
            let (first, second) = match (&range, &keys) {
                (Value::Map(map), Some(keys)) => {
                    let Some(key) = keys.get(index) else { break };
                    let value = fold.second.as_ref().and_then(|_| map.get(key)).unwrap_or(Ok(Value::Null));
                    (Ok(key.clone()), value)
                }
                (Value::List(list), _) => {
                    let Some(item) = list.get(index) else { break };
                    if fold.second.is_some() {
                        (Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))), item)
                    } else {
                        (item, Ok(Value::Null))
                    }
                }
                _ => break,
            };
            self.scope.push((Arc::clone(&fold.variable), first));
            if let Some(name) = &fold.second {
                self.scope.push((Arc::clone(name), second));
            }
            if !matches!(fold.condition.kind, ExprKind::Literal(_)) && !self.condition(&fold.condition)? {
                break;
            }
            let next = match self.step(&fold.step, slot) {
                Err(EvalError::Exhausted) => return Err(EvalError::Exhausted),
                next => next,
            };
            self.scope.truncate(slot + 1);
            if let Some((_, accumulated)) = self.scope.get_mut(slot) {
                *accumulated = next;
            }
        }
        self.scope.truncate(slot + 1);
        self.eval(&fold.result)
    }

    /// Takes the accumulator out of the scope, so that it can grow in place.
    fn take(&mut self, slot: usize) -> EvalResult<'a> {
        match self.scope.get_mut(slot) {
            Some((_, value)) => std::mem::replace(value, Ok(Value::Null)),
            None => Ok(Value::Null),
        }
    }

    fn is_accumulator(&self, expr: &Expr, slot: usize) -> bool {
        match (&expr.kind, self.scope.get(slot)) {
            (ExprKind::Ident(name), Some((known, _))) => name == known,
            _ => false,
        }
    }

    /// Evaluates the step of a fold. Steps that extend the accumulator do so without copying it.
    fn step(&mut self, expr: &Expr, slot: usize) -> EvalResult<'a> {
        // Only branches of conditionals are the accumulator itself, and those cost nothing.
        if self.is_accumulator(expr, slot) {
            return self.take(slot);
        }
        let ExprKind::Call(call) = &expr.kind else { return self.eval(expr) };
        match (&*call.function, call.args.as_slice()) {
            (op::CONDITIONAL, [condition, yes, no]) => {
                return if self.condition(condition)? { self.step(yes, slot) } else { self.step(no, slot) };
            }
            (op::ADD, [accumulator, added]) if self.is_accumulator(accumulator, slot) => {
                if let ExprKind::List(items) = &added.kind {
                    self.meter.charge(1)?;
                    let items = self.list(added, items)?;
                    self.meter.charge(1)?;
                    return self.append(slot, items);
                }
            }
            (op::MAP_INSERT, [accumulator, rest @ ..]) if self.is_accumulator(accumulator, slot) => {
                self.meter.charge(1)?;
                let mut values = Vec::with_capacity(rest.len());
                for part in rest {
                    values.push(self.eval(part)?);
                }
                self.meter.charge(1)?;
                return self.insert(slot, &values);
            }
            _ => {}
        }
        self.eval(expr)
    }

    fn append(&mut self, slot: usize, added: Value<'a>) -> EvalResult<'a> {
        match (self.take(slot)?, added) {
            (Value::List(List::Owned(mut list)), Value::List(List::Owned(added))) => {
                Arc::make_mut(&mut list).extend(added.iter().cloned());
                Ok(Value::List(List::Owned(list)))
            }
            (Value::Int(count), Value::Int(added)) => count
                .checked_add(added)
                .map(Value::Int)
                .ok_or_else(|| EvalError::Error("integer overflow".to_owned())),
            _ => no_overload(),
        }
    }

    fn insert(&mut self, slot: usize, values: &[Value<'a>]) -> EvalResult<'a> {
        let Value::Map(Map::Owned(mut map)) = self.take(slot)? else { return no_overload() };
        let mut entries = Vec::new();
        match values {
            [key, value] => entries.push((Key::of(key), value.clone())),
            [Value::Map(added)] => {
                for key in added.keys() {
                    if let Some(value) = added.get(&key) {
                        entries.push((Key::of(&key), value?));
                    }
                }
            }
            _ => return no_overload(),
        }
        self.meter.allocate_values(entries.len() * 2)?;
        let members = Arc::make_mut(&mut map);
        for (key, value) in entries {
            let Some(key) = key else { return EvalError::error("unsupported key type") };
            if members.insert(key, value).is_some() {
                return EvalError::error("insert failed: key already exists");
            }
        }
        Ok(Value::Map(Map::Owned(map)))
    }
}

/// Returns whether an expression reads a variable or a part of one.
fn is_attribute(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Ident(name) => call::type_named(name).is_none(),
        ExprKind::Select(select) => !select.is_test,
        ExprKind::Call(call) => &*call.function == op::INDEX,
        _ => false,
    }
}

/// Returns the items of a list that contains only literals.
fn literals(list: &Expr) -> Option<&[Element]> {
    match &list.kind {
        ExprKind::List(items) => {
            let is_literal =
                |item: &Element| !item.is_optional && matches!(item.value.kind, ExprKind::Literal(_));
            items.iter().all(is_literal).then_some(items)
        }
        _ => None,
    }
}

fn of_literal<'a>(literal: &Literal) -> Value<'a> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

fn has(operand: &Value<'_>, name: &str) -> Result<bool, EvalError> {
    match operand {
        Value::Map(map) => map.field(name).transpose().map(|found| found.is_some()),
        Value::Optional(None) => Ok(false),
        Value::Optional(Some(value)) => has(value, name),
        _ => no_overload(),
    }
}

fn field<'a>(operand: Value<'a>, name: &str) -> EvalResult<'a> {
    match operand {
        Value::Map(map) => {
            map.field(name).unwrap_or_else(|| EvalError::error(format!("no such key: {name}")))
        }
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(value)) => match &*value {
            Value::Map(map) => Ok(Value::Optional(map.field(name).transpose()?.map(Arc::new))),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

/// Returns the item, member or property that an index or optional selection names.
fn element<'a>(operand: Value<'a>, index: &Value<'a>, makes_optional: bool) -> EvalResult<'a> {
    let (operand, is_optional) = match operand {
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(value)) => ((*value).clone(), true),
        operand => (operand, makes_optional),
    };
    let found = match (&operand, index) {
        (Value::List(list), index) => {
            let Some(Key::Number(index)) = Key::of(index) else { return no_overload() };
            usize::try_from(index).ok().and_then(|index| list.get(index))
        }
        (Value::Map(map), key) => map.get(key),
        _ => return no_overload(),
    };
    match (found.transpose()?, is_optional) {
        (Some(value), false) => Ok(value),
        (found, true) => Ok(Value::Optional(found.map(Arc::new))),
        (None, false) => match (&operand, index) {
            (Value::List(_), index) => {
                EvalError::error(format!("index out of bounds: {}", call::display(index)))
            }
            (_, key) => EvalError::error(format!("no such key: {}", call::display(key))),
        },
    }
}
