//! The user of a request.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group whose members are permitted everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of unauthenticated users.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of unauthenticated users.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The identity of a client: a name, a uid, groups and extra values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    /// The name, to which roles are bound.
    pub name: String,
    /// The uid, which identifies the user across changes of name.
    pub uid: String,
    /// The groups, to which roles are bound.
    pub groups: Vec<String>,
    /// Extra values that the authenticator attached to the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns the user of requests without credentials.
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Returns a user in `system:masters`, such as the user of a server without authentication.
    pub(crate) fn master(name: &str) -> Self {
        let groups = vec![MASTERS.into(), AUTHENTICATED.into()];
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Returns whether the user is in `system:masters`, whose members are always allowed.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Returns whether the user is unauthenticated.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == "system:anonymous"
    }

    /// Returns whether the user is in `group`.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|of_user| of_user == group)
    }

    /// Adds the user to `group`, once.
    pub(crate) fn join(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.into());
        }
    }

    /// Returns whether the user has neither a uid nor groups nor extra values.
    pub(crate) fn has_only_a_name(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// Returns the user as the `userInfo` of a review.
    pub(crate) fn to_value(&self) -> Value {
        let mut info = json!({ "username": self.name });
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}
