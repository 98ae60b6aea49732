//! Authentication, impersonation and authorization.
//!
//! | module | content |
//! |---|---|
//! | [`authenticator`] | the user of a request or a token |
//! | [`tokens`] | bearer tokens from a file |
//! | [`service_account`] | tokens of service accounts: issued, verified, published keys |
//! | [`impersonation`] | requests that act as another user |
//! | [`rbac`], [`rule`], [`stored`] | decisions from stored roles and bindings |
//! | [`aggregation`] | aggregated cluster roles, which combine the rules of other roles |
//! | [`content`] | permissions that depend on the content of a write |
//! | [`escalation`] | writes of roles and bindings that would grant more than the writer has |
//! | [`resource_claims`] | allocations and devices of resource claims |
//! | [`signers`] | approvals and certificates in the name of a signer |
//! | [`bootstrap`] | the roles and bindings that every cluster has |
//! | [`reviews`] | access reviews, token reviews and self subject reviews |

pub(crate) mod aggregation;
pub(crate) mod attributes;
pub(crate) mod authenticator;
pub(crate) mod bootstrap;
pub(crate) mod content;
mod escalation;
pub(crate) mod impersonation;
pub(crate) mod rbac;
mod resource_claims;
pub(crate) mod reviews;
pub(crate) mod rule;
pub(crate) mod service_account;
mod signers;
pub(crate) mod stored;
pub(crate) mod tokens;
pub(crate) mod user;

use attributes::Attributes;
use rbac::RbacPolicy;
use rule::PolicyRule;
use user::User;

/// The result of an authorization check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// The reason, for people who debug their roles; may be empty.
    pub reason: String,
}

impl Decision {
    fn allowed(reason: impl Into<String>) -> Self {
        Self { is_allowed: true, reason: reason.into() }
    }

    fn denied(reason: impl Into<String>) -> Self {
        Self { is_allowed: false, reason: reason.into() }
    }
}

/// The user of a request, with the authorizer that decides on it.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    /// The user of the request.
    pub(crate) user: User,
    /// The authorizer of the server.
    pub(crate) authorizer: Authorizer,
}

impl Requester {
    /// Returns the server itself, which is permitted everything.
    pub(crate) fn server() -> Self {
        Self { user: User::master("system:apiserver"), authorizer: Authorizer::AlwaysAllow }
    }
}

/// The authorization mode.
#[derive(Debug, Clone, Default)]
pub(crate) enum Authorizer {
    /// Every request is allowed.
    #[default]
    AlwaysAllow,
    /// Stored roles and bindings decide. Members of `system:masters` are always allowed.
    Rbac(std::sync::Arc<RbacPolicy>),
}

impl Authorizer {
    /// Decides whether `user` may make a request with these attributes.
    pub(crate) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        match self {
            Self::AlwaysAllow => Decision::allowed(""),
            Self::Rbac(_) if user.is_master() => Decision::allowed(""),
            Self::Rbac(policy) => policy.decide(user, attributes),
        }
    }

    /// Returns every rule that `user` has in `namespace`, including cluster-wide rules, and the errors of roles that could
    /// not be resolved.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        match self {
            Self::Rbac(policy) if !user.is_master() => policy.rules_of(user, namespace),
            Self::AlwaysAllow | Self::Rbac(_) => (PolicyRule::everything(), Vec::new()),
        }
    }
}
