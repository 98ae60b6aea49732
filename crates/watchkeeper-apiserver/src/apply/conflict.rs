//! Conflicts between an apply and the fields of other managers.

use super::{
    managed::{ManagerId, ManagerOperation},
    set::{FieldPath, FieldSet},
};
use crate::status::{ApiError, Cause, Details};

/// The fields that an apply would take from other managers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conflicts {
    /// The conflicting fields, sorted by manager.
    by_manager: Vec<(ManagerId, String, FieldSet)>,
}

impl Conflicts {
    /// Adds the fields of one manager. Managers must be added in order.
    pub(super) fn add(&mut self, manager: &ManagerId, fields: FieldSet) {
        if !fields.is_empty() {
            self.by_manager.push((manager.clone(), describe(manager), fields));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_manager.is_empty()
    }

    /// Removes the fields in `allowed` from the conflicts.
    pub(super) fn allow(&mut self, allowed: &FieldSet) {
        self.by_manager.retain_mut(|(_, _, fields)| {
            fields.subtract(allowed);
            !fields.is_empty()
        });
    }

    /// Returns the 409 with a cause for each field and its manager.
    pub(super) fn into_error(self) -> ApiError {
        let found: Vec<(String, Vec<FieldPath>)> =
            self.by_manager.into_iter().map(|(_, manager, fields)| (manager, fields.paths())).collect();
        let causes: Vec<_> = found
            .iter()
            .flat_map(|(manager, paths)| paths.iter().map(move |path| (manager, path)))
            .map(|(manager, path)| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {manager}"),
                field: Some(path.to_string()),
            })
            .collect();
        let message = message(&found);
        ApiError::new(409, "Conflict", message).with_details(Details { causes, ..Details::default() })
    }
}

fn message(found: &[(String, Vec<FieldPath>)]) -> String {
    if let [(manager, paths)] = found
        && let [path] = &**paths
    {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let count: usize = found.iter().map(|(_, paths)| paths.len()).sum();
    let by_manager = found.iter().map(|(manager, paths)| {
        paths.iter().fold(format!("conflicts with {manager}:"), |text, path| format!("{text}\n- {path}"))
    });
    format!("Apply failed with {count} conflicts: {}", by_manager.collect::<Vec<_>>().join("\n"))
}

fn describe(manager: &ManagerId) -> String {
    let ManagerId { name, operation, api_version, subresource } = manager;
    let through =
        if subresource.is_empty() { String::new() } else { format!(" with subresource {subresource:?}") };
    let using =
        if *operation == ManagerOperation::Update { format!(" using {api_version}") } else { String::new() };
    format!("{name:?}{through}{using}")
}
