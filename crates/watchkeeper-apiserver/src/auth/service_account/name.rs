//! The user name and the groups of a service account.

use crate::strategy::names;

const PREFIX: &str = "system:serviceaccount:";
const ALL_ACCOUNTS: &str = "system:serviceaccounts";

/// A service account, by namespace and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountName<'a> {
    /// The namespace of the account.
    pub(crate) namespace: &'a str,
    /// The name of the account.
    pub(crate) name: &'a str,
}

impl<'a> AccountName<'a> {
    /// Reads a user name of the form `system:serviceaccount:<namespace>:<name>`; none for any other name.
    pub(crate) fn parse(user: &'a str) -> Option<Self> {
        let (namespace, name) = user.strip_prefix(PREFIX)?.split_once(':')?;
        let is_valid = names::dns_label(namespace).is_empty() && names::dns_subdomain(name).is_empty();
        is_valid.then_some(Self { namespace, name })
    }

    /// Returns the user name of the account.
    pub(crate) fn user_name(self) -> String {
        format!("{PREFIX}{}:{}", self.namespace, self.name)
    }

    /// Returns the groups of the account, without that of all authenticated users.
    pub(crate) fn groups(self) -> Vec<String> {
        vec![ALL_ACCOUNTS.into(), format!("{ALL_ACCOUNTS}:{}", self.namespace)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_user_names_are_service_accounts() {
        let account = AccountName { namespace: "shop", name: "robot.v1" };
        assert_eq!(AccountName::parse(&account.user_name()), Some(account));
        for name in [
            "robot",
            "system:serviceaccount:shop",
            "system:serviceaccount:shop:",
            "system:serviceaccount::robot",
            "system:serviceaccount:shop:robot:x",
            "system:serviceaccount:Shop:robot",
            "system:serviceaccount:sh.op:robot",
            "system:serviceaccounts:shop:robot",
        ] {
            assert_eq!(AccountName::parse(name), None, "{name}");
        }
    }
}
