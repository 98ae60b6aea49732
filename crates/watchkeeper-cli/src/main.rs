//! The `watchkeeper` program.

use std::process::ExitCode;

use clap::Parser as _;
use watchkeeper_cli::program::{Program, report};

#[tokio::main]
async fn main() -> ExitCode {
    match Program::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure).into(),
    }
}
