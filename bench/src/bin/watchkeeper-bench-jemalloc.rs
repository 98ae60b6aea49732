//! The program that some rows of ours run in: its allocator is jemalloc, and nothing counts what it does.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    watchkeeper_bench::main()
}
