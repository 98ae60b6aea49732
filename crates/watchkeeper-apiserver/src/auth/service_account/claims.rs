//! The claims of a token.

use serde::{Deserialize, Serialize};

use super::{AccountName, CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID, issuer::Rejection};
use crate::auth::user::{self, User};

/// The leeway for clock skew, in seconds. A token is accepted this long before and after its validity.
pub(super) const LEEWAY_SECONDS: i64 = 60;

/// The claims of a token. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The audiences of the token (`aud`).
    pub(crate) aud: Vec<String>,
    /// The expiration time (`exp`).
    pub(crate) exp: i64,
    /// The time of issue (`iat`).
    pub(crate) iat: i64,
    /// The issuer of the token.
    pub(crate) iss: String,
    /// The id of the token.
    pub(crate) jti: String,
    /// The account and the object that the token is bound to.
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: KubernetesClaims,
    /// The time before which the token is invalid (`nbf`).
    pub(crate) nbf: i64,
    /// The user name of the account.
    pub(crate) sub: String,
}

/// The private claims of Kubernetes (`kubernetes.io`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KubernetesClaims {
    /// The namespace of the account.
    pub(crate) namespace: String,
    /// The node that the token is bound to, or that runs the pod it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    /// The pod that the token is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    /// The secret that the token is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    /// The service account that the token authenticates.
    pub(crate) serviceaccount: Reference,
    /// The time from which on use of the token is considered stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// An object, by name and uid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    /// The name of the object.
    pub(crate) name: String,
    /// The uid of the object; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

impl Claims {
    /// Checks that the token is valid at `now`, in seconds since 1970.
    pub(super) fn check_time(&self, now: i64) -> Result<(), Rejection> {
        let (earliest, latest) = (now.saturating_add(LEEWAY_SECONDS), now.saturating_sub(LEEWAY_SECONDS));
        if earliest < self.nbf {
            Err(Rejection::new("service account token is not valid yet"))
        } else if latest > self.exp {
            Err(Rejection::new("service account token has expired"))
        } else if earliest < self.iat {
            Err(Rejection::new("service account token is issued in the future"))
        } else {
            Ok(())
        }
    }

    /// Returns those of the requested audiences that the token contains.
    ///
    /// # Errors
    /// If the token contains none of them.
    pub(super) fn check_audiences(&self, requested: &[String]) -> Result<Vec<String>, Rejection> {
        let common: Vec<String> =
            self.aud.iter().filter(|audience| requested.contains(audience)).cloned().collect();
        if common.is_empty() {
            return Err(Rejection::new(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&self.aud),
                quoted(requested)
            )));
        }
        Ok(common)
    }

    /// Returns the user that the token authenticates.
    pub(super) fn user(&self) -> User {
        let claims = &self.kubernetes;
        let account = AccountName { namespace: &claims.namespace, name: &claims.serviceaccount.name };
        let mut user = User {
            name: account.user_name(),
            uid: claims.serviceaccount.uid.clone(),
            groups: account.groups(),
            ..User::default()
        };
        user.join(user::AUTHENTICATED);
        let mut extra = |key: &str, value: String| user.extra.insert(key.into(), vec![value]);
        extra(CREDENTIAL_ID, format!("JTI={}", self.jti));
        if let Some(pod) = &claims.pod {
            extra(POD_NAME, pod.name.clone());
            extra(POD_UID, pod.uid.clone());
        }
        if let Some(node) = &claims.node {
            extra(NODE_NAME, node.name.clone());
            if !node.uid.is_empty() {
                extra(NODE_UID, node.uid.clone());
            }
        }
        user
    }
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            aud: vec!["a".into(), "b".into()],
            exp: 1_600,
            iat: 1_000,
            iss: "i".into(),
            jti: "j".into(),
            kubernetes: KubernetesClaims {
                namespace: "n".into(),
                serviceaccount: Reference { name: "robot".into(), uid: "u".into() },
                ..KubernetesClaims::default()
            },
            nbf: 1_000,
            sub: "system:serviceaccount:n:robot".into(),
        }
    }

    #[test]
    fn a_token_is_valid_between_nbf_and_exp_with_one_minute_of_leeway() {
        for (now, expected) in [(939, false), (940, true), (1_300, true), (1_660, true), (1_661, false)] {
            assert_eq!(claims().check_time(now).is_ok(), expected, "{now}");
        }
    }

    #[test]
    fn a_token_is_valid_for_the_requested_audiences_it_contains() {
        let requested = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(claims().check_audiences(&requested(&["b", "c"])).expect("one in common"), ["b"]);
        let rejection = claims().check_audiences(&requested(&["c"])).expect_err("none in common");
        assert_eq!(
            rejection.to_string(),
            "token audiences [\"a\" \"b\"] is invalid for the target audiences [\"c\"]"
        );
    }

    #[test]
    fn the_user_of_a_token_has_the_groups_of_its_account_and_its_pod_and_node_as_extra() {
        let mut claims = claims();
        claims.kubernetes.pod = Some(Reference { name: "p".into(), uid: "pu".into() });
        claims.kubernetes.node = Some(Reference { name: "m".into(), uid: String::new() });
        let user = claims.user();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:robot", "u"));
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"]
        );
        let extra: Vec<(&str, &str)> =
            user.extra.iter().map(|(key, values)| (key.as_str(), values[0].as_str())).collect();
        assert_eq!(
            extra,
            [
                ("authentication.kubernetes.io/credential-id", "JTI=j"),
                ("authentication.kubernetes.io/node-name", "m"),
                ("authentication.kubernetes.io/pod-name", "p"),
                ("authentication.kubernetes.io/pod-uid", "pu"),
            ]
        );
    }
}
