//! The `watchkeeper` program.

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;
use tokio::runtime::Runtime;
use watchkeeper_cli::{
    exit::Failure,
    program::{Program, report},
};

/// The time that work on other threads has to end. Longer work ends with the process.
const LAST_WORK: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::Other(format!("cannot start the runtime: {error}"))).into(),
    };
    let ended = runtime.block_on(Program::parse().run());
    runtime.shutdown_timeout(LAST_WORK);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure).into(),
    }
}
