//! Ranges of sizes and costs, and paths through a schema.

use std::{cell::RefCell, rc::Rc, sync::Arc};

/// The cost of reading a string, for each character.
pub(crate) const STRING_FACTOR: f64 = 0.1;
/// The cost of applying a regular expression to one unit of text, for each character of the expression.
pub(crate) const REGEX_FACTOR: f64 = 0.25;

/// A range of sizes or of costs. Arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CostRange {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl CostRange {
    pub(crate) const ZERO: Self = Self::fixed(0);
    pub(crate) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(crate) const fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn multiply(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(crate) fn scale(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Multiplies a size by a factor and rounds up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the arithmetic of the reference implementation; casts from float saturate"
)]
pub(crate) fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// A path from a variable through the schema.
///
/// Kubernetes keeps these paths in Go slices that share their buffers: extending one path twice overwrites the first
/// extension where the capacity allows. Estimates of deeply nested rules depend on that, so this type does the same.
#[derive(Debug, Clone)]
pub(super) struct SchemaPath {
    buffer: Rc<RefCell<Vec<Arc<str>>>>,
    capacity: usize,
    len: usize,
}

impl SchemaPath {
    pub(super) fn empty() -> Self {
        Self { buffer: Rc::default(), capacity: 0, len: 0 }
    }

    pub(super) fn of(name: &Arc<str>) -> Self {
        Self::empty().append(name)
    }

    pub(super) fn append(&self, name: &Arc<str>) -> Self {
        if self.len < self.capacity {
            let mut buffer = self.buffer.borrow_mut();
            match buffer.get_mut(self.len) {
                Some(slot) => *slot = Arc::clone(name),
                None => buffer.push(Arc::clone(name)),
            }
            drop(buffer);
            return Self { buffer: Rc::clone(&self.buffer), capacity: self.capacity, len: self.len + 1 };
        }
        let mut steps = self.steps();
        steps.push(Arc::clone(name));
        let capacity = (self.capacity * 2).max(1);
        Self { buffer: Rc::new(RefCell::new(steps)), capacity, len: self.len + 1 }
    }

    pub(super) fn steps(&self) -> Vec<Arc<str>> {
        self.buffer.borrow().iter().take(self.len).cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
