//! Who asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A user, as the server knows one: nothing but names.
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
        Self {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            ..Self::default()
        }
    }

    /// A user in `system:masters`: who uses a server that asks nobody for credentials.
    pub(crate) fn master(name: &str) -> Self {
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// In the group no role can refuse anything.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in("system:masters")
    }

    /// Returns whether the user gave no credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == "system:anonymous"
    }

    /// In `group`.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|of_user| of_user == group)
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
