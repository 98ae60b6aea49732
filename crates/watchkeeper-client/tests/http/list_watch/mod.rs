//! Lists and watches.

mod example;
mod lists;
mod watches;
