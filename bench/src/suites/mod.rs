//! The suites there are: one file, or file and folder, each.

mod queue;

use crate::suite::Suite;

/// Every suite, in the order `list` names them.
pub(crate) static ALL: [&Suite; 1] = [&queue::SUITE];
