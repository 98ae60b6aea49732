//! One table from errors to what to do next.
