//! The types of the CEL checker, and their unification.

use std::{fmt, sync::Arc};

use super::decl::Decl;

#[derive(Debug, Clone)]
pub(crate) enum CelType {
    /// The type of an expression with a reported error; it matches every type.
    Error,
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<CelType>),
    Map(Arc<CelType>, Arc<CelType>),
    Optional(Arc<CelType>),
    /// The type of a type.
    Meta(Arc<CelType>),
    /// A type of the Kubernetes libraries, such as an IP address.
    Named(&'static str),
    /// An object with the properties of a schema. Each schema is a distinct type.
    Object(Arc<Decl>),
    /// A type variable.
    Variable(usize),
}

impl CelType {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub(super) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Returns the inner type of an optional, or the type itself, and whether it was optional.
    pub(super) fn unwrap_optional(self) -> (Self, bool) {
        match self {
            Self::Optional(of) => ((*of).clone(), true),
            other => (other, false),
        }
    }

    /// Returns whether values of the type have a fixed size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Timestamp | Self::Duration => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }

    fn parameters(&self) -> Vec<&Arc<Self>> {
        match self {
            Self::List(of) | Self::Optional(of) | Self::Meta(of) => vec![of],
            Self::Map(key, value) => vec![key, value],
            _ => Vec::new(),
        }
    }

    /// Counts the parts of the type, up to `limit`.
    pub(super) fn weight(&self, limit: usize) -> usize {
        let mut count = 1;
        for part in self.parameters() {
            if count >= limit {
                break;
            }
            count += part.weight(limit - count);
        }
        count
    }

    fn same_constructor(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(a), Self::Named(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            (Self::Variable(a), Self::Variable(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Returns whether two types are the same, including variables.
    pub(super) fn is_exactly(&self, other: &Self) -> bool {
        self.same_constructor(other)
            && self
                .parameters()
                .iter()
                .zip(other.parameters())
                .all(|(a, b)| Arc::ptr_eq(a, b) || a.is_exactly(b))
    }

    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Optional(_)
                | Self::Named(_)
                | Self::Object(_)
                | Self::Timestamp
                | Self::Duration
        )
    }

    /// Returns whether the type equals another or is less specific, such as dyn.
    fn is_less_specific(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Variable(_), _) | (Self::Meta(_), Self::Meta(_)) => true,
            (_, Self::Dyn | Self::Variable(_)) => false,
            _ => {
                self.same_constructor(other)
                    && self.parameters().iter().zip(other.parameters()).all(|(a, b)| a.is_less_specific(b))
            }
        }
    }
}

impl fmt::Display for CelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Dyn | Self::Variable(_) => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Self::Duration => f.write_str("google.protobuf.Duration"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Meta(of) => write!(f, "type({of})"),
            Self::Named(name) => f.write_str(name),
            Self::Object(_) => f.write_str("object"),
        }
    }
}

/// The types that are bound to type variables. Failed unifications are undone.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    bound: Vec<Option<CelType>>,
    undo: Vec<(usize, Option<CelType>)>,
}

impl Bindings {
    /// Returns a new type variable.
    pub(super) fn fresh(&mut self) -> CelType {
        self.bound.push(None);
        CelType::Variable(self.bound.len() - 1)
    }

    fn find(&self, ty: &CelType) -> Option<&CelType> {
        match ty {
            CelType::Variable(index) => self.bound.get(*index).and_then(Option::as_ref),
            _ => None,
        }
    }

    fn bind(&mut self, variable: &CelType, to: CelType) {
        if let CelType::Variable(index) = variable
            && let Some(slot) = self.bound.get_mut(*index)
        {
            self.undo.push((*index, slot.replace(to)));
        }
    }

    /// Unifies two types. Returns whether `from` is assignable to `to`.
    pub(super) fn assign(&mut self, from: &CelType, to: &CelType) -> bool {
        self.assign_all(std::iter::once((from, to)))
    }

    /// Unifies pairs of types, all or none.
    pub(super) fn assign_all<'a>(
        &mut self,
        mut pairs: impl Iterator<Item = (&'a CelType, &'a CelType)>,
    ) -> bool {
        self.undo.clear();
        if pairs.all(|(from, to)| self.unify(from, to)) {
            return true;
        }
        while let Some((index, before)) = self.undo.pop() {
            if let Some(slot) = self.bound.get_mut(index) {
                *slot = before;
            }
        }
        false
    }

    fn unify(&mut self, a: &CelType, b: &CelType) -> bool {
        if matches!(b, CelType::Variable(_)) {
            let (is_valid, is_bound) = self.substitute_for(a, b);
            if is_valid || is_bound {
                return is_valid;
            }
        }
        if matches!(a, CelType::Variable(_)) {
            return self.substitute_for(b, a).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (CelType::Null, other) | (other, CelType::Null) => other.is_nullable(),
            (CelType::Meta(_), CelType::Meta(_)) => true,
            _ => {
                a.same_constructor(b)
                    && a.parameters().iter().zip(b.parameters()).all(|(a, b)| self.unify(a, b))
            }
        }
    }

    /// Tries `variable` as a substitution for `ty`. Returns whether it is one, and whether it was bound before.
    fn substitute_for(&mut self, ty: &CelType, variable: &CelType) -> (bool, bool) {
        if ty.is_exactly(variable) {
            return (true, true);
        }
        if let Some(bound) = self.find(variable).cloned() {
            if ty.is_exactly(&bound) {
                return (true, true);
            }
            if self.unify(ty, &bound) {
                let general = if ty.is_less_specific(&bound) { ty.clone() } else { bound };
                if self.is_absent_from(variable, &general) {
                    self.bind(variable, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.is_absent_from(variable, ty) {
            self.bind(variable, ty.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Returns whether a variable does not occur in a type.
    fn is_absent_from(&self, variable: &CelType, within: &CelType) -> bool {
        if variable.is_exactly(within) {
            return false;
        }
        if let Some(bound) = self.find(within) {
            return self.is_absent_from(variable, bound);
        }
        within.parameters().into_iter().all(|part| self.is_absent_from(variable, part))
    }

    /// Returns the type with variables replaced by their bound types.
    pub(super) fn resolve(&self, ty: &CelType) -> CelType {
        if let Some(bound) = self.find(ty) {
            return self.resolve(bound);
        }
        match ty {
            CelType::List(of) => CelType::list(self.resolve(of)),
            CelType::Map(key, value) => CelType::map(self.resolve(key), self.resolve(value)),
            CelType::Optional(of) => CelType::optional(self.resolve(of)),
            CelType::Meta(of) => CelType::Meta(Arc::new(self.resolve(of))),
            other => other.clone(),
        }
    }

    /// Returns the type with unbound variables replaced by dyn.
    pub(super) fn resolve_fully(&self, ty: &CelType) -> CelType {
        match self.resolve(ty) {
            CelType::Variable(_) => CelType::Dyn,
            CelType::List(of) => CelType::list(self.resolve_fully(&of)),
            CelType::Map(key, value) => CelType::map(self.resolve_fully(&key), self.resolve_fully(&value)),
            CelType::Optional(of) => CelType::optional(self.resolve_fully(&of)),
            other => other,
        }
    }
}

/// Returns the more general of two types that unify.
pub(super) fn most_general(a: CelType, b: CelType) -> CelType {
    if a.is_less_specific(&b) { a } else { b }
}
