//! The limits of one evaluation: cost, work and memory.
//!
//! Cost is the unit of Kubernetes. It determines whether a rule fails, so it equals the cost in the real server. Cost is not
//! proportional to time for every operation (the size of a string costs one unit whatever its length), so work and memory
//! are limited as well. All three are charged before the step they pay for.

/// The maximum cost of one evaluation of an expression.
pub(super) const CALL_COST: u64 = 1_000_000;
/// The maximum cost of all rules of one object together.
pub(super) const OBJECT_COST: u64 = 10_000_000;
/// The maximum work of all rules of one object. A unit is about a nanosecond.
const OBJECT_WORK: u64 = 128 << 20;
/// The maximum memory that one evaluation may allocate, in bytes.
const CALL_MEMORY: u64 = 64 << 20;

/// The reason why an evaluation has no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EvalError {
    /// A limit was reached. No operator recovers from this error.
    Exhausted,
    /// An error of the expression, such as a missing key.
    Error(String),
}

impl EvalError {
    pub(super) fn error<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Error(message.into()))
    }
}

/// Returns the error of a call whose arguments match no overload.
pub(super) fn no_overload<T>() -> Result<T, EvalError> {
    EvalError::error("no such overload")
}

/// The remaining limits for the rules of one object.
#[derive(Debug)]
pub(super) struct Meter {
    /// The cost of the current evaluation.
    pub(super) cost: u64,
    memory: u64,
    work: u64,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { cost: 0, memory: 0, work: OBJECT_WORK }
    }

    /// Starts an evaluation.
    pub(super) fn start(&mut self) {
        self.cost = 0;
        self.memory = 0;
    }

    /// Adds to the cost of the current evaluation.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > CALL_COST { Err(EvalError::Exhausted) } else { self.work(1) }
    }

    /// Charges work units for steps whose Kubernetes cost understates their run time.
    pub(super) fn work(&mut self, units: u64) -> Result<(), EvalError> {
        if let Some(left) = self.work.checked_sub(units) {
            self.work = left;
            return Ok(());
        }
        self.work = 0;
        // The evaluation exceeded its limit, so its cost is at least the limit.
        self.cost = self.cost.max(CALL_COST + 1);
        Err(EvalError::Exhausted)
    }

    /// Charges memory that is about to be allocated.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        let bytes = bytes as u64;
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > CALL_MEMORY {
            self.cost = self.cost.max(CALL_COST + 1);
            return Err(EvalError::Exhausted);
        }
        self.work(bytes / 4)
    }

    /// Charges for values that are about to be added to a list or map.
    pub(super) fn allocate_values(&mut self, count: usize) -> Result<(), EvalError> {
        self.allocate(count.saturating_mul(2 * size_of::<super::value::Value<'_>>()))
    }

    /// Charges for reading a text once.
    pub(super) fn read(&mut self, text: &str) -> Result<(), EvalError> {
        self.work(text.len() as u64 / 4 + 1)
    }
}
