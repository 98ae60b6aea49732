//! Messages of panics.

use std::any::Any;

/// Returns the message of a caught panic, or a placeholder if the payload is not text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}
