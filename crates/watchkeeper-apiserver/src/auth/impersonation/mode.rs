//! The modes of impersonation, and the permissions each of them needs.

use std::collections::BTreeMap;

use crate::{
    auth::{
        Authorizer,
        attributes::{Attributes, ResourceAttributes},
        service_account::{self, AccountName},
        user::{self, User},
    },
    status::ApiError,
    strategy::names,
};

const AUTHENTICATION: &str = "authentication.k8s.io";
const NODE_PREFIX: &str = "system:node:";
const NODES_GROUP: &str = "system:nodes";
/// The number of values from which a constrained mode first checks for the permission to impersonate all of them.
const MANY: usize = 4;

/// A way to impersonate. All modes but the legacy one are constrained: they also need the permission to make this very
/// request in the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImpersonationMode {
    /// A service account impersonates the node that its pod runs on.
    AssociatedNode,
    /// Any node, by its name alone.
    ArbitraryNode,
    /// A service account, by its name alone.
    ServiceAccount,
    /// Any other user, with groups, uid and extra values.
    UserInfo,
    /// Any user, for any request, with the verb `impersonate`.
    Legacy,
}

impl ImpersonationMode {
    /// All modes, in the order in which they are tried.
    pub(super) const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    /// Returns the name of a constrained mode, as verbs carry it.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    /// Returns whether this mode applies to `requestor` and `requested`, regardless of permissions.
    pub(super) fn applies(self, requested: &User, requestor: &User) -> bool {
        let node = node_name(&requested.name);
        let account = AccountName::parse(&requested.name);
        match self {
            Self::AssociatedNode => {
                requested.has_only_a_name()
                    && node.is_some_and(|node| {
                        AccountName::parse(&requestor.name).is_some()
                            && requestor
                                .extra
                                .get(service_account::NODE_NAME)
                                .is_some_and(|names| *names == [node])
                    })
            }
            Self::ArbitraryNode => requested.has_only_a_name() && node.is_some(),
            Self::ServiceAccount => requested.has_only_a_name() && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    /// Returns the user that a request acts as if `requestor` may impersonate `requested` in this mode.
    ///
    /// # Errors
    /// 403 naming the first permission that is missing.
    pub(super) fn check(
        self,
        authorizer: &Authorizer,
        requestor: &User,
        requested: &User,
        request: &Attributes,
    ) -> Result<User, ApiError> {
        let check = Check { mode: self, authorizer, requestor };
        if let Some(mode) = self.name() {
            check.permission(&request.with_verb(|verb| format!("impersonate-on:{mode}:{verb}")))?;
        }
        let mut user = requested.clone();
        check.name(requested, &mut user)?;
        if !requested.uid.is_empty() {
            check.permission(&check.part(AUTHENTICATION, "uids", &requested.uid))?;
        }
        check.groups(&requested.groups)?;
        check.extra(&requested.extra)?;
        if user.name == user::ANONYMOUS {
            user.join(user::UNAUTHENTICATED);
        } else if !user.is_in(user::UNAUTHENTICATED) {
            user.join(user::AUTHENTICATED);
        }
        Ok(user)
    }
}

/// The checks of one mode for one requestor.
struct Check<'a> {
    mode: ImpersonationMode,
    authorizer: &'a Authorizer,
    requestor: &'a User,
}

impl Check<'_> {
    fn is_constrained(&self) -> bool {
        self.mode != ImpersonationMode::Legacy
    }

    /// Returns the attributes of impersonating one part of a user.
    fn part(&self, group: &str, resource: &str, name: &str) -> Attributes {
        Attributes::Resource(ResourceAttributes {
            verb: self.mode.name().map_or_else(|| "impersonate".into(), |mode| format!("impersonate:{mode}")),
            group: group.into(),
            resource: resource.into(),
            name: name.into(),
            ..ResourceAttributes::default()
        })
    }

    /// Returns the API group of users, groups and service accounts, which differs between the modes.
    fn user_group(&self) -> &'static str {
        if self.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn permission(&self, attributes: &Attributes) -> Result<(), ApiError> {
        let decision = self.authorizer.decide(self.requestor, attributes);
        if decision.is_allowed { Ok(()) } else { Err(attributes.forbidden(self.requestor, &decision.reason)) }
    }

    /// Checks the name, and gives `user` the groups that follow from it.
    fn name(&self, requested: &User, user: &mut User) -> Result<(), ApiError> {
        let group = self.user_group();
        if let Some(node) = node_name(&requested.name).filter(|_| self.is_constrained()) {
            user.groups = vec![NODES_GROUP.into()];
            // The permission to impersonate the associated node does not depend on which node that is.
            let name = if self.mode == ImpersonationMode::AssociatedNode { "*" } else { node };
            return self.permission(&self.part(group, "nodes", name));
        }
        let Some(account) = AccountName::parse(&requested.name) else {
            return self.permission(&self.part(group, "users", &requested.name));
        };
        if requested.groups.is_empty() {
            user.groups = account.groups();
        }
        let mut attributes = self.part(group, "serviceaccounts", account.name);
        if let Attributes::Resource(attributes) = &mut attributes {
            account.namespace.clone_into(&mut attributes.namespace);
        }
        self.permission(&attributes)
    }

    fn groups(&self, groups: &[String]) -> Result<(), ApiError> {
        let attributes = |name: &str| self.part(self.user_group(), "groups", name);
        if self.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(attributes("").forbidden(self.requestor, why));
            }
            if groups.iter().any(|group| group == user::MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(attributes(user::MASTERS).forbidden(self.requestor, why));
            }
            if groups.len() >= MANY && self.permission(&attributes("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.permission(&attributes(group)))
    }

    fn extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        let attributes = |key: &str, value: &str| {
            let mut attributes = self.part(AUTHENTICATION, "userextras", value);
            if let Attributes::Resource(attributes) = &mut attributes {
                key.clone_into(&mut attributes.subresource);
            }
            attributes
        };
        if self.is_constrained() && !extra.is_empty() {
            if let Some(why) = invalid_extra(extra) {
                return Err(attributes("", "").forbidden(self.requestor, &why));
            }
            let is_large = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if is_large && self.permission(&attributes("*", "*")).is_ok() {
                return Ok(());
            }
        }
        let mut parts = extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        parts.try_for_each(|(key, value)| self.permission(&attributes(key, value)))
    }
}

/// Returns the name of the node whose user name this is.
fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| names::dns_subdomain(name).is_empty())
}

/// Returns why a constrained mode rejects extra values, if it does.
fn invalid_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            Some("impersonating the empty string key in extra is not allowed".into())
        } else if !is_domain_prefixed_path(key) {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            Some(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key:?}: {why}"
            ))
        } else if *key != key.to_lowercase() {
            Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"))
        } else if values.iter().any(String::is_empty) {
            Some("impersonating the empty string value in extra is not allowed".into())
        } else {
            None
        }
    })
}

fn is_domain_prefixed_path(key: &str) -> bool {
    let is_path = |path: &str| {
        !path.is_empty()
            && path
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(letter))
    };
    key.split_once('/').is_some_and(|(domain, path)| names::dns_subdomain(domain).is_empty() && is_path(path))
}
