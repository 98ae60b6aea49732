//! The program for rows that run on jemalloc, without allocation counters.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    watchkeeper_bench::main()
}
