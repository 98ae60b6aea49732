//! Tests that depend on state of the whole process: signals, and the interest of log subscribers in each log statement.
//!
//! Every test sets a subscriber. Otherwise a statement that is first reached in a thread without one could be disabled for
//! the subscribers of other threads.

mod logs;
mod signals;
