//! The `watchkeeper` program.

fn main() {}
