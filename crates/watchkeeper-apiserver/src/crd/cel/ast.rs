//! The syntax tree of a CEL expression, after macro expansion.

use std::sync::Arc;

/// The function names of operators.
pub(super) mod op {
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const LESS: &str = "_<_";
    pub(crate) const LESS_EQUALS: &str = "_<=_";
    pub(crate) const GREATER: &str = "_>_";
    pub(crate) const GREATER_EQUALS: &str = "_>=_";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const SUBTRACT: &str = "_-_";
    pub(crate) const MULTIPLY: &str = "_*_";
    pub(crate) const DIVIDE: &str = "_/_";
    pub(crate) const MODULO: &str = "_%_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPT_INDEX: &str = "_[?_]";
    pub(crate) const OPT_SELECT: &str = "_?._";
    pub(crate) const IN: &str = "@in";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
    pub(crate) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";
}

/// The accumulator variable of expanded macros. The name is not a valid identifier in source text.
pub(super) const ACCUMULATOR: &str = "@result";

/// A node of the tree.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    /// The index of the node among all nodes of its expression.
    pub(super) id: usize,
    /// The number of nodes on the longest path to a leaf.
    pub(super) depth: usize,
    pub(super) kind: ExprKind,
}

#[derive(Debug, Clone)]
pub(super) enum ExprKind {
    Literal(Literal),
    Ident(Arc<str>),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    Comprehension(Box<Comprehension>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// A field selection, or with `is_test` the presence test of `has()`.
#[derive(Debug, Clone)]
pub(super) struct Select {
    pub(super) operand: Expr,
    pub(super) field: Arc<str>,
    pub(super) is_test: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) function: Arc<str>,
    /// The receiver of a member call.
    pub(super) target: Option<Expr>,
    pub(super) args: Vec<Expr>,
}

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) value: Expr,
    pub(super) is_optional: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: Expr,
    pub(super) value: Expr,
    pub(super) is_optional: bool,
}

/// A fold over a list or map.
#[derive(Debug, Clone)]
pub(super) struct Comprehension {
    pub(super) range: Expr,
    pub(super) variable: Arc<str>,
    /// The second variable of a two-variable comprehension.
    pub(super) second: Option<Arc<str>>,
    pub(super) accumulator: Arc<str>,
    pub(super) init: Expr,
    pub(super) condition: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

impl Comprehension {
    /// Returns whether the fold only binds a variable: an empty range with a user-visible accumulator.
    pub(super) fn is_binding(&self) -> bool {
        matches!(&self.range.kind, ExprKind::List(items) if items.is_empty())
            && matches!(self.condition.kind, ExprKind::Literal(Literal::Bool(false)))
            && &*self.accumulator != ACCUMULATOR
    }
}

impl Expr {
    /// Returns whether the node is a literal, or a list or map that contains only literals.
    pub(super) fn is_constant(&self) -> bool {
        match &self.kind {
            ExprKind::Literal(_) => true,
            ExprKind::List(items) => items.iter().all(|item| !item.is_optional && item.value.is_constant()),
            ExprKind::Map(entries) => entries
                .iter()
                .all(|entry| !entry.is_optional && entry.key.is_constant() && entry.value.is_constant()),
            _ => false,
        }
    }

    /// Calls `visit` with the direct children of the node.
    pub(super) fn children<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => visit(&select.operand),
            ExprKind::Call(call) => {
                call.target.iter().for_each(&mut *visit);
                call.args.iter().for_each(visit);
            }
            ExprKind::List(items) => items.iter().for_each(|item| visit(&item.value)),
            ExprKind::Map(entries) => {
                for entry in entries {
                    visit(&entry.key);
                    visit(&entry.value);
                }
            }
            ExprKind::Comprehension(fold) => {
                [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
                    .into_iter()
                    .for_each(visit);
            }
        }
    }

    /// Returns whether the expression refers to the variable `name`.
    pub(super) fn mentions(&self, name: &str) -> bool {
        if matches!(&self.kind, ExprKind::Ident(ident) if &**ident == name) {
            return true;
        }
        let mut found = false;
        self.children(&mut |child| found = found || child.mentions(name));
        found
    }
}
