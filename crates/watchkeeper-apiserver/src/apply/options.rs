//! Names of managers, and the options of a patch that concern them.

use crate::field::{FieldError, FieldErrorKind};

/// The longest name of a manager, in bytes.
pub(crate) const MAX_MANAGER_BYTES: usize = 128;

/// Returns the manager of a write: the requested name, or else the name of the client program from its `User-Agent`.
pub(crate) fn manager_name(requested: &str, user_agent: &str) -> String {
    if !requested.is_empty() {
        return requested.to_owned();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for character in program.chars().filter(|character| is_printable(*character)) {
        if name.len() + character.len_utf8() > MAX_MANAGER_BYTES {
            break;
        }
        name.push(character);
    }
    name
}

/// Validates the `fieldManager` of a write.
pub(crate) fn check_manager(name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > MAX_MANAGER_BYTES {
        let detail = format!("may not be more than {MAX_MANAGER_BYTES} bytes");
        errors.push(FieldError::new(FieldErrorKind::TooLong, "fieldManager", None, detail));
    }
    for (index, character) in name.char_indices().filter(|(_, character)| !is_printable(*character)) {
        let detail = format!("invalid character U+{:04X} (at position {index})", u32::from(character));
        errors.push(FieldError::new(FieldErrorKind::Invalid, "fieldManager", Some(name.into()), detail));
    }
    errors
}

/// Validates `fieldManager` and `force` of a patch. Only apply accepts `force`, and apply must name its manager.
pub(crate) fn check_patch(name: &str, force: Option<bool>, is_apply: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_apply && name.is_empty() {
        let detail = "is required for apply patch";
        errors.push(FieldError::new(FieldErrorKind::Required, "fieldManager", None, detail));
    }
    if !is_apply && force.is_some() {
        let detail = "may not be specified for non-apply patch";
        errors.push(FieldError::new(FieldErrorKind::Forbidden, "force", None, detail));
    }
    errors.extend(check_manager(name));
    errors
}

fn is_printable(character: char) -> bool {
    character == ' ' || !(character.is_control() || character.is_whitespace())
}
