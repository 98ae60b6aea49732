//! The estimated cost of an expression for the largest values its schema allows.
//!
//! The estimate decides which definitions are accepted, so it equals that of Kubernetes: cel-go's estimator with the
//! costs of the Kubernetes function libraries and the sizes of the schema.

mod calls;
pub(super) mod size;

use std::{collections::HashMap, sync::Arc};

use self::size::{CostRange, SchemaPath};
use super::{
    ast::{ACCUMULATOR, Call, Comprehension, Element, Entry, Expr, ExprKind, Literal, Select},
    check::TypedExpr,
    decl::{Decl, DeclType},
    types::CelType,
};

/// Returns the maximum cost of an expression.
pub(super) fn estimate(expr: &Expr, checked: &TypedExpr, root: &Decl) -> u64 {
    let mut estimator = Estimator {
        checked,
        root,
        paths: HashMap::new(),
        scope: Vec::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        items: "@items".into(),
        values: "@values".into(),
        keys: "@keys".into(),
        indices: "@indices".into(),
    };
    estimator.cost(expr).max
}

/// The sizes of the keys and values of a list or map that an expression creates.
#[derive(Debug, Clone, Copy)]
struct EntrySize {
    is_list: bool,
    key: CostRange,
    value: CostRange,
}

fn union(a: Option<EntrySize>, b: Option<EntrySize>) -> Option<EntrySize> {
    let (a, b) = (a?, b?);
    Some(EntrySize { is_list: a.is_list, key: a.key.union(b.key), value: a.value.union(b.value) })
}

struct Variable {
    name: Arc<str>,
    path: SchemaPath,
    size: Option<CostRange>,
    entry: Option<EntrySize>,
}

/// An operand of a call.
struct Node<'a> {
    path: SchemaPath,
    ty: &'a CelType,
    size: Option<CostRange>,
    /// The value of the operand if it is an integer literal.
    number: Option<i64>,
    entry: Option<EntrySize>,
}

/// The cost of a call and the size of its result.
struct CallCost {
    cost: CostRange,
    size: Option<CostRange>,
}

impl CallCost {
    fn new(cost: CostRange) -> Self {
        Self { cost, size: None }
    }

    fn sized(cost: CostRange, size: CostRange) -> Self {
        Self { cost, size: Some(size) }
    }
}

struct Estimator<'a> {
    checked: &'a TypedExpr,
    root: &'a Decl,
    paths: HashMap<usize, SchemaPath>,
    scope: Vec<Variable>,
    sizes: HashMap<usize, CostRange>,
    entries: HashMap<usize, EntrySize>,
    items: Arc<str>,
    values: Arc<str>,
    keys: Arc<str>,
    indices: Arc<str>,
}

const ONE: CostRange = CostRange::fixed(1);

impl<'a> Estimator<'a> {
    fn ty(&self, expr: &Expr) -> &'a CelType {
        self.checked.types.get(expr.id).unwrap_or(&CelType::Dyn)
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.scope.iter().rev().find(|variable| &*variable.name == name)
    }

    fn path(&self, expr: &Expr) -> SchemaPath {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(variable) = self.variable(name)
        {
            return variable.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_else(SchemaPath::empty)
    }

    fn cost(&mut self, expr: &Expr) -> CostRange {
        match &expr.kind {
            ExprKind::Literal(_) => CostRange::ZERO,
            ExprKind::Ident(name) => {
                let path =
                    self.variable(name).map_or_else(|| SchemaPath::of(name), |found| found.path.clone());
                self.paths.insert(expr.id, path);
                ONE
            }
            ExprKind::Select(select) => self.select(expr, select),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(items) => self.list(expr, items),
            ExprKind::Map(entries) => self.map(expr, entries),
            ExprKind::Comprehension(fold) if fold.is_binding() => self.binding(expr, fold),
            ExprKind::Comprehension(fold) => self.fold(expr, fold),
        }
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> CostRange {
        let cost = self.cost(&select.operand);
        if select.is_test {
            return cost;
        }
        let path = self.path(&select.operand).append(&select.field);
        self.paths.insert(expr.id, path);
        match self.ty(&select.operand) {
            CelType::Map(..) | CelType::Object(_) | CelType::Named(_) => cost.add(ONE),
            _ => cost,
        }
    }

    fn node(&mut self, expr: &Expr) -> Node<'a> {
        let path = self.path(expr);
        let is_accumulator = path.steps().first().is_some_and(|first| &**first == ACCUMULATOR);
        Node {
            ty: self.ty(expr),
            size: self.size(expr),
            number: match &expr.kind {
                ExprKind::Literal(Literal::Int(number)) => Some(*number),
                _ => None,
            },
            entry: self.entry(expr),
            path: if is_accumulator { SchemaPath::empty() } else { path },
        }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> CostRange {
        if &*call.function == "dyn" {
            let Some(arg) = call.args.first() else { return CostRange::ZERO };
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return ONE.add(cost);
        }
        let mut costs = Vec::with_capacity(call.args.len());
        let mut nodes = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            costs.push(self.cost(arg));
            nodes.push(self.node(arg));
        }
        let mut sum = CostRange::ZERO;
        let target = match &call.target {
            Some(target) => {
                sum = self.cost(target);
                Some(self.node(target))
            }
            None => None,
        };
        let known = self.checked.overloads.get(&expr.id).map(Vec::as_slice).unwrap_or_default();
        let mut ids: Vec<&str> = known.iter().map(|overload| overload.id.as_str()).collect();
        if &*call.function == super::ast::op::OPT_SELECT {
            ids.push("select_optional_field");
        }
        let mut total = CostRange { min: u64::MAX, max: 0 };
        let mut size: Option<CostRange> = None;
        for id in ids {
            let cost = self.function(expr.id, &call.function, id, target.as_ref(), &nodes, &costs);
            total = total.union(cost.cost);
            size = match (size, cost.size) {
                (Some(known), Some(found)) => Some(known.union(found)),
                (known, found) => known.or(found),
            };
            if let (Some(list), "index_list" | "index_map") = (call.args.first(), id) {
                size = self.entry(list).map(|entry| entry.value);
                let step = if id == "index_list" { &self.items } else { &self.values };
                let path = self.path(list).append(step);
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        sum.add(total)
    }

    fn list(&mut self, expr: &Expr, items: &[Element]) -> CostRange {
        let mut sum = CostRange::ZERO;
        let mut value = CostRange { min: if items.is_empty() { 0 } else { u64::MAX }, max: 0 };
        for item in items {
            sum = sum.add(self.cost(&item.value));
            value = value.union(self.size_or_unknown(&item.value));
        }
        self.entries.insert(expr.id, EntrySize { is_list: true, key: ONE, value });
        sum.add(CostRange::fixed(10))
    }

    fn map(&mut self, expr: &Expr, entries: &[Entry]) -> CostRange {
        let mut sum = CostRange::ZERO;
        let mut key = CostRange { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let mut value = key;
        for entry in entries {
            sum = sum.add(self.cost(&entry.key));
            sum = sum.add(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(expr.id, EntrySize { is_list: false, key, value });
        sum.add(CostRange::fixed(30))
    }

    fn push(&mut self, name: &Arc<str>, path: SchemaPath, size: Option<CostRange>, entry: Option<EntrySize>) {
        self.scope.push(Variable { name: Arc::clone(name), path, size, entry });
    }

    fn fold(&mut self, expr: &Expr, fold: &Comprehension) -> CostRange {
        let mut sum = self.cost(&fold.range).add(self.cost(&fold.init));
        let depth = self.scope.len();
        let (path, size, entry) = (self.path(&fold.init), self.size(&fold.init), self.entry(&fold.init));
        self.push(&fold.accumulator, path, size, entry);
        let range = self.entry(&fold.range);
        let is_list =
            range.map_or_else(|| matches!(self.ty(&fold.range), CelType::List(_)), |range| range.is_list);
        let (key_size, value_size) = (range.map(|range| range.key), range.map(|range| range.value));
        if let Some(second) = &fold.second {
            let step = if is_list { &self.indices } else { &self.keys };
            let path = self.path(&fold.range).append(step);
            self.push(&fold.variable, path, key_size, None);
            let step = if is_list { &self.items } else { &self.values };
            let path = self.path(&fold.range).append(step);
            self.push(second, path, value_size, None);
        } else {
            let (step, size) = if is_list { (&self.items, value_size) } else { (&self.keys, key_size) };
            let path = self.path(&fold.range).append(step);
            self.push(&fold.variable, path, size, None);
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.scope.truncate(depth + 1);
        sum = sum.add(self.cost(&fold.result));
        self.scope.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        sum = sum.add(count.multiply(step.add(condition)));
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entry) = self.entry(&fold.step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn binding(&mut self, expr: &Expr, fold: &Comprehension) -> CostRange {
        let mut sum = self.cost(&fold.range).add(self.cost(&fold.init));
        let depth = self.scope.len();
        let (path, size, entry) = (self.path(&fold.init), self.size(&fold.init), self.entry(&fold.init));
        self.push(&fold.accumulator, path, size, entry);
        sum = sum.add(self.cost(&fold.result));
        self.scope.truncate(depth);
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entry) = self.entry(from) {
            self.entries.insert(to.id, entry);
        }
    }

    fn entry(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.variable(name)?.entry,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> CostRange {
        self.size(expr).unwrap_or(CostRange::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<CostRange> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        let spelled = match &expr.kind {
            ExprKind::Literal(Literal::String(text)) => Some(text.chars().count()),
            ExprKind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            ExprKind::Literal(_) => Some(1),
            ExprKind::List(items) => Some(items.len()),
            ExprKind::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = spelled {
            return Some(CostRange::fixed(size as u64));
        }
        if let Some(size) = self.size_at(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if self.ty(expr).is_scalar() {
            return Some(ONE);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.variable(name)?.size,
            _ => None,
        }
    }

    /// Returns the size that the schema permits for the value at a path.
    fn size_at(&self, path: &SchemaPath) -> Option<CostRange> {
        if path.is_empty() {
            return None;
        }
        let mut decl = self.root;
        for step in path.steps().iter().skip(1) {
            decl = match (&decl.ty, &**step) {
                (DeclType::List(of) | DeclType::Map(of), "@items" | "@values") => of,
                // A schema cannot limit the keys of maps.
                (DeclType::Map(_), "@keys") => return Some(CostRange::ZERO),
                (DeclType::Object(fields), name) => fields.get(name)?,
                _ => return None,
            };
        }
        Some(CostRange { min: 0, max: decl.max_elements })
    }
}
