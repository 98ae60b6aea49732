//! What standard output is.

use std::io::{IsTerminal as _, stdout};

use crate::table::Size;

/// When no terminal says how large it is.
const USUAL: Size = Size { columns: 80, lines: 24 };

/// Whether what is written is looked at by a person, on a terminal that can be drawn on.
pub(crate) fn is_interactive() -> bool {
    stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// How large the terminal is.
#[cfg(unix)]
pub(crate) fn size() -> Size {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            Size { columns: size.ws_col.into(), lines: size.ws_row.into() }
        }
        _ => USUAL,
    }
}

/// How large the terminal is.
#[cfg(not(unix))]
pub(crate) fn size() -> Size {
    USUAL
}
