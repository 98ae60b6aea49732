//! The program for rows that run on the system's allocator, without allocation counters.

use std::process::ExitCode;

fn main() -> ExitCode {
    watchkeeper_bench::main()
}
