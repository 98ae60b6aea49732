//! Who asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group of users that may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of users that gave valid credentials.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of users that gave none.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of users that gave no credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The identity of a client: a name, a uid, groups and extra values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    /// The name roles are bound to.
    pub name: String,
    /// An identity that outlives the name.
    pub uid: String,
    /// The groups roles are bound to.
    pub groups: Vec<String>,
    /// What else whoever vouched for the user said.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whoever gave no credentials.
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// A user in `system:masters`: who uses a server that asks nobody for credentials.
    pub(crate) fn master(name: &str) -> Self {
        let groups = vec![MASTERS.into(), AUTHENTICATED.into()];
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// In the group no role can refuse anything.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    /// Returns whether the user gave no credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == "system:anonymous"
    }

    /// In `group`.
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

    /// As `userInfo` of a review.
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
