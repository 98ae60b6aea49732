//! `watchkeeper completions`: completion scripts of shells.

use std::io;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{exit::Failure, program::Program};

/// Prints the completion script of a shell.
///
/// # Errors
/// Returns a [`Failure`] if the output cannot be written.
pub(crate) fn print(shell: Shell) -> Result<(), Failure> {
    // clap_complete panics if it cannot write, so it writes to memory.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Program::command(), "watchkeeper", &mut text);
    io::Write::write_all(&mut io::stdout(), &text)?;
    Ok(())
}
