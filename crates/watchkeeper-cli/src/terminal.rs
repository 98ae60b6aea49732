//! Properties of standard output.

use std::io::{IsTerminal as _, stdout};

use crate::table::Size;

/// The size if the terminal does not report one.
const USUAL: Size = Size { columns: 80, lines: 24 };

/// Returns whether standard output is a terminal that can be drawn on.
pub(crate) fn is_interactive() -> bool {
    stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// Returns the size of the terminal.
#[cfg(unix)]
pub(crate) fn size() -> Size {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            Size { columns: size.ws_col.into(), lines: size.ws_row.into() }
        }
        _ => USUAL,
    }
}

/// Returns the size of the terminal.
#[cfg(not(unix))]
pub(crate) fn size() -> Size {
    USUAL
}
