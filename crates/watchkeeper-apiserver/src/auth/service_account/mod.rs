//! Service accounts as users: their names, and the tokens that prove them.
//!
//! | module | content |
//! |---|---|
//! | [`name`] | user name and groups of an account |
//! | [`claims`] | the content of a token |
//! | [`key`] | the key that signs tokens, and the compact form of a signed token |
//! | [`issuer`] | tokens issued and verified, published keys |
//! | [`bound`] | the stored objects that a token depends on |
//!
//! A token is valid as long as its signature, its time and its audience are, and as long as the account and the object
//! that it is bound to exist. Nothing about issued tokens is stored.

mod bound;
mod claims;
mod issuer;
mod key;
mod name;

pub(crate) use self::{
    claims::{Claims, KubernetesClaims, Reference},
    issuer::{API_AUDIENCE, ISSUER, Rejection, TokenIssuer},
    name::AccountName,
};

/// The key under which a user's extra values name the node of the pod that a token is bound to.
pub(crate) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
