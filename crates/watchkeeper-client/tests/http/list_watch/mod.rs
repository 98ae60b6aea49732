//! Lists and watches.

mod encoding;
mod lists;
mod watches;
