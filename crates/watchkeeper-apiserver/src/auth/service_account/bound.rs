//! The stored objects that a token depends on.

use serde::Deserialize;

use super::{
    claims::{Claims, LEEWAY_SECONDS, Reference},
    issuer::Rejection,
};
use crate::storage::Storage;

const INVALIDATED: &str = "service account token has been invalidated";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<jiff::Timestamp>,
}

/// Checks that the account of a token and the object that it is bound to exist and are the ones it was issued for.
///
/// An object that is being deleted counts as deleted from its deletionTimestamp on, with the leeway that all times of a
/// token have. The node of a token that is bound to a pod is informational and is not checked.
///
/// # Errors
/// Returns a rejection if one of them does not exist or was replaced. The message is for reviews, not for the client that sent
/// the token.
pub(super) fn check(claims: &Claims, store: &dyn Storage, now: i64) -> Result<(), Rejection> {
    let bound = &claims.kubernetes;
    let namespace = bound.namespace.as_str();
    let bound_check = BoundObjectCheck { store, deleted_before: now.saturating_sub(LEEWAY_SECONDS) };
    let account = &bound.serviceaccount;
    bound_check.check("serviceaccounts", namespace, account, |mismatch| match mismatch {
        ObjectMismatch::Absent => format!("serviceaccounts {:?} not found", account.name),
        ObjectMismatch::Replaced(uid) => {
            format!("service account UID ({uid}) does not match claim ({})", account.uid)
        }
        ObjectMismatch::Deleted => format!("service account {namespace}/{} has been deleted", account.name),
    })?;
    if let Some(secret) = &bound.secret {
        bound_check.check("secrets", namespace, secret, replaced("secret", secret))?;
    }
    if let Some(pod) = &bound.pod {
        bound_check.check("pods", namespace, pod, replaced("pod", pod))?;
    } else if let Some(node) = &bound.node {
        bound_check.check("nodes", "", node, replaced("node", node))?;
    }
    Ok(())
}

/// Returns the messages for a bound object.
fn replaced<'a>(kind: &'a str, claim: &'a Reference) -> impl FnOnce(ObjectMismatch) -> String + 'a {
    move |mismatch| match mismatch {
        ObjectMismatch::Absent | ObjectMismatch::Deleted => INVALIDATED.to_owned(),
        ObjectMismatch::Replaced(uid) => {
            format!("{kind} UID ({uid}) does not match service account {kind} ref claim ({})", claim.uid)
        }
    }
}

/// The reason why a bound object does not match the token.
enum ObjectMismatch {
    Absent,
    /// Another object has the name. Carries the uid of that object.
    Replaced(String),
    Deleted,
}

struct BoundObjectCheck<'a> {
    store: &'a dyn Storage,
    deleted_before: i64,
}

impl BoundObjectCheck<'_> {
    fn check(
        &self,
        table: &str,
        namespace: &str,
        claim: &Reference,
        describe: impl FnOnce(ObjectMismatch) -> String,
    ) -> Result<(), Rejection> {
        let key = crate::rest::key_of(namespace, &claim.name);
        let mismatch = match self.store.get(table, &key) {
            None => ObjectMismatch::Absent,
            Some(object) if *object.content.uid != *claim.uid => {
                ObjectMismatch::Replaced(object.content.uid.to_string())
            }
            Some(object) => {
                let metadata: Metadata = object.content.metadata().unwrap_or_default();
                let is_deleted =
                    metadata.deletion_timestamp.is_some_and(|time| time.as_second() < self.deleted_before);
                if !is_deleted {
                    return Ok(());
                }
                ObjectMismatch::Deleted
            }
        };
        Err(Rejection::new(describe(mismatch)))
    }
}
