//! The review kinds: requests that are evaluated into their status and never stored.

use serde_json::{Map, Value, json};

use super::{
    Authorizer,
    attributes::{Attributes, ResourceAttributes},
    authenticator::Authenticator,
    service_account::API_AUDIENCE,
    user::User,
};
use crate::{
    field::{FieldError, FieldErrorKind},
    rest::errors,
    status::ApiError,
};

/// The inputs for evaluating a review.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reviewer<'a> {
    /// The user of the request.
    pub user: &'a User,
    /// The authorizer of this server.
    pub authorizer: &'a Authorizer,
    /// The authenticator of reviewed tokens.
    pub authenticator: Authenticator<'a>,
    /// The time, formatted as in objects.
    pub now: &'a str,
}

impl Reviewer<'_> {
    /// Evaluates `review`, sent to `namespace` if its kind is namespaced. Returns none if the kind is not a review.
    ///
    /// # Errors
    /// 400 or 422 if the review is incomplete.
    pub(crate) fn evaluate(&self, review: Value, namespace: &str) -> Option<Result<Value, ApiError>> {
        let kind = review["kind"].as_str().unwrap_or_default().to_owned();
        Some(match kind.as_str() {
            "SelfSubjectAccessReview" => self.subject_access(self.user, review, &Scope::Own),
            "SubjectAccessReview" => self.subject_access(&subject(&review), review, &Scope::Any),
            "LocalSubjectAccessReview" => {
                self.subject_access(&subject(&review), review, &Scope::Namespace(namespace))
            }
            "SelfSubjectRulesReview" => self.subject_rules(&review),
            "SelfSubjectReview" => Ok(self.subject_user(&review)),
            "TokenReview" => self.token(review),
            _ => return None,
        })
    }

    fn subject_access(&self, user: &User, mut review: Value, scope: &Scope<'_>) -> Result<Value, ApiError> {
        let wrong = wrong_with(&review, scope);
        if !wrong.is_empty() {
            return Err(invalid(&review, &wrong));
        }
        let decision = self.authorizer.decide(user, &attributes(&review["spec"]));
        let mut status = json!({ "allowed": decision.is_allowed });
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        review["status"] = status;
        Ok(review)
    }

    fn subject_rules(&self, review: &Value) -> Result<Value, ApiError> {
        let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let (rules, missing) = self.authorizer.rules_of(self.user, namespace);
        let (paths, resources): (Vec<_>, Vec<_>) =
            rules.iter().partition(|rule| !rule.non_resource_urls.is_empty());
        let mut status = json!({
            "resourceRules": resources.iter().map(|rule| rule.to_value()).collect::<Vec<_>>(),
            "nonResourceRules": paths.iter().map(|rule| rule.to_value()).collect::<Vec<_>>(),
            "incomplete": !missing.is_empty(),
        });
        if !missing.is_empty() {
            status["evaluationError"] = missing.join(", ").into();
        }
        Ok(json!({
            "kind": review["kind"], "apiVersion": review["apiVersion"],
            "metadata": {}, "spec": {}, "status": status,
        }))
    }

    fn subject_user(&self, review: &Value) -> Value {
        json!({
            "kind": review["kind"], "apiVersion": review["apiVersion"],
            "metadata": { "creationTimestamp": self.now },
            "status": { "userInfo": self.user.to_value() },
        })
    }

    fn token(&self, mut review: Value) -> Result<Value, ApiError> {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        let requested = texts(&review["spec"]["audiences"]);
        let audiences = if requested.is_empty() { vec![API_AUDIENCE.to_owned()] } else { requested };
        review["status"] = match self.authenticator.token(token, &audiences) {
            Ok(Some((user, audiences))) => {
                json!({ "authenticated": true, "user": user.to_value(), "audiences": audiences })
            }
            Ok(None) => json!({ "user": {}, "error": "invalid bearer token" }),
            Err(rejection) => json!({ "user": {}, "error": rejection.to_string() }),
        };
        Ok(review)
    }
}

enum Scope<'a> {
    Own,
    Any,
    Namespace(&'a str),
}

fn subject(review: &Value) -> User {
    let spec = &review["spec"];
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: texts(&spec["groups"]),
        extra: spec["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, list)| (name.clone(), texts(list)))
            .collect(),
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
}

fn attributes(spec: &Value) -> Attributes {
    let text = |of: &Value, member: &str| of[member].as_str().unwrap_or_default().to_owned();
    let requested = &spec["resourceAttributes"];
    if requested.is_object() {
        return Attributes::Resource(ResourceAttributes {
            verb: text(requested, "verb"),
            group: text(requested, "group"),
            resource: text(requested, "resource"),
            subresource: text(requested, "subresource"),
            namespace: text(requested, "namespace"),
            name: text(requested, "name"),
        });
    }
    let requested = &spec["nonResourceAttributes"];
    Attributes::Path { verb: text(requested, "verb"), path: text(requested, "path") }
}

fn wrong_with(review: &Value, scope: &Scope<'_>) -> Vec<FieldError> {
    let spec = &review["spec"];
    let (resource, path) =
        (spec["resourceAttributes"].is_object(), spec["nonResourceAttributes"].is_object());
    let invalid = |at: &str, what: &Value, detail: &str| {
        FieldError::new(FieldErrorKind::Invalid, at, Some(what.clone()), detail)
    };
    let mut wrong = Vec::new();
    if resource == path {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        wrong.push(invalid("spec", &spec["nonResourceAttributes"], detail));
    }
    if !matches!(scope, Scope::Own) {
        let is_named = spec["user"].as_str().is_some_and(|name| !name.is_empty());
        if !is_named && spec["groups"].as_array().is_none_or(Vec::is_empty) {
            wrong.push(invalid("spec.user", &json!(""), "at least one of user or group must be specified"));
        }
    }
    for selector in ["fieldSelector", "labelSelector"] {
        wrong.extend(wrong_with_selector(selector, &spec["resourceAttributes"][selector]));
    }
    let set: Map<String, Value> = review["metadata"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(member, value)| !is_empty(value) && *member != "managedFields")
        .map(|(member, value)| (member.clone(), value.clone()))
        .collect();
    match scope {
        Scope::Own | Scope::Any if !set.is_empty() => {
            wrong.push(invalid("metadata", &set.into(), "must be empty"));
        }
        Scope::Namespace(_) if set.keys().any(|member| member != "namespace") => {
            wrong.push(invalid("metadata", &set.into(), "must be empty except for namespace"));
        }
        Scope::Own | Scope::Any | Scope::Namespace(_) => {}
    }
    if let Scope::Namespace(namespace) = scope {
        let requested = &spec["resourceAttributes"]["namespace"];
        if resource && requested.as_str().unwrap_or_default() != *namespace {
            wrong.push(invalid(
                "spec.resourceAttributes.namespace",
                requested,
                "must match metadata.namespace",
            ));
        }
        if path {
            let at = "spec.nonResourceAttributes";
            wrong.push(invalid(at, &spec["nonResourceAttributes"], "disallowed on this kind of request"));
        }
    }
    wrong
}

/// Checks that a selector uses only one of its two forms.
fn wrong_with_selector(member: &str, selector: &Value) -> Option<FieldError> {
    if !selector.is_object() {
        return None;
    }
    let at = format!("spec.resourceAttributes.{member}");
    let (raw, requirements) = (&selector["rawSelector"], &selector["requirements"]);
    match (is_empty(raw), is_empty(requirements)) {
        (false, false) => {
            let detail = "may not specified at the same time as requirements";
            let field = format!("{at}.rawSelector");
            Some(FieldError::new(FieldErrorKind::Invalid, field, Some(raw.clone()), detail))
        }
        (true, true) => {
            let detail = format!("when {at} is specified, requirements or rawSelector is required");
            Some(FieldError::new(FieldErrorKind::Required, format!("{at}.requirements"), None, detail))
        }
        _ => None,
    }
}

/// Returns whether a value is empty in one of the ways clients encode an unset member. Protobuf has no other encoding for
/// it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn invalid(review: &Value, wrong: &[FieldError]) -> ApiError {
    let group = review["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group);
    // The error does not name the kind of the review, as upstream.
    errors::invalid_as("", group, "", wrong)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        auth::{
            rbac::{RbacObjects, RbacPolicy},
            service_account::TokenIssuer,
            tokens::Tokens,
        },
        storage::{HistoryWindow, MemoryStore},
    };

    fn evaluate(user: &User, review: Value, namespace: &str) -> Result<Value, ApiError> {
        let policy = RbacPolicy::new(RbacObjects {
            cluster_roles: &[json!({"metadata": {"name": "reader"}, "rules": [
                {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
                {"verbs": ["get"], "nonResourceURLs": ["/version"]}]})],
            cluster_role_bindings: &[
                json!({"metadata": {"name": "ann"}, "roleRef": {"kind": "ClusterRole", "name": "reader"},
                                            "subjects": [{"kind": "User", "name": "ann"}]}),
            ],
            ..RbacObjects::default()
        });
        let tokens = Tokens::parse("secret,bob,uid-bob,ops").expect("one line");
        let authorizer = Authorizer::Rbac(Arc::new(policy));
        let history = HistoryWindow { events: 1, age: std::time::Duration::ZERO, bytes: usize::MAX };
        let authenticator = Authenticator {
            tokens: &tokens,
            issuer: &TokenIssuer::default(),
            store: &MemoryStore::new(history),
            now: 0,
        };
        let reviewer = Reviewer { user, authorizer: &authorizer, authenticator, now: "2000-01-01T00:00:00Z" };
        reviewer.evaluate(review, namespace).expect("a review kind")
    }

    fn ann() -> User {
        User { name: "ann".into(), groups: vec!["dev".into()], ..User::default() }
    }

    #[test]
    fn self_subject_access_review_evaluates_the_requesting_user() {
        for (verb, expected) in [("get", true), ("delete", false)] {
            let review = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
                                "spec": {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "n"}}});
            let answered = evaluate(&ann(), review, "").expect("a complete question");
            assert_eq!(answered["status"]["allowed"], expected, "{verb}");
            assert_eq!(
                answered["spec"]["resourceAttributes"]["verb"], verb,
                "the spec is returned unchanged"
            );
        }
    }

    #[test]
    fn subject_access_review_evaluates_the_user_in_its_spec() {
        let review = |user: &str| {
            json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {"user": user, "nonResourceAttributes": {"verb": "get", "path": "/version"}}})
        };
        assert_eq!(
            evaluate(&User::master("root"), review("ann"), "").expect("complete")["status"]["allowed"],
            true
        );
        assert_eq!(
            evaluate(&User::master("root"), review("bob"), "").expect("complete")["status"]["allowed"],
            false
        );
    }

    #[test]
    fn an_incomplete_review_is_rejected_with_the_missing_field() {
        let group = "authorization.k8s.io/v1";
        let pods = json!({"verb": "get", "resource": "pods", "namespace": "other"});
        let cases = [
            (json!({"kind": "SelfSubjectAccessReview", "apiVersion": group, "spec": {}}), "spec"),
            (
                json!({"kind": "SubjectAccessReview", "apiVersion": group, "spec": {"resourceAttributes": pods}}),
                "spec.user",
            ),
            (
                json!({"kind": "SelfSubjectAccessReview", "apiVersion": group, "metadata": {"name": "x"},
                    "spec": {"resourceAttributes": pods}}),
                "metadata",
            ),
            (
                json!({"kind": "LocalSubjectAccessReview", "apiVersion": group, "metadata": {"namespace": "n"},
                    "spec": {"user": "ann", "resourceAttributes": pods}}),
                "spec.resourceAttributes.namespace",
            ),
        ];
        for (review, field) in cases {
            let refused = evaluate(&ann(), review.clone(), "n").expect_err("incomplete");
            assert_eq!(refused.code, 422, "{review}");
            let details = refused.details.expect("which field");
            assert_eq!(details.causes[0].field.as_deref(), Some(field), "{review}");
        }
    }

    #[test]
    fn metadata_of_empty_members_counts_as_empty() {
        let review = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
                            "metadata": {"name": "", "generation": 0, "labels": {}, "creationTimestamp": null},
                            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "n"}}});
        assert_eq!(evaluate(&ann(), review, "").expect("a complete question")["status"]["allowed"], true);
    }

    #[test]
    fn self_subject_rules_and_self_subject_reviews_describe_the_requesting_user() {
        let rules = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "n"}});
        let answered = evaluate(&ann(), rules, "").expect("complete");
        assert_eq!(answered["status"]["resourceRules"][0]["resources"], json!(["pods"]));
        assert_eq!(answered["status"]["nonResourceRules"][0]["nonResourceURLs"], json!(["/version"]));
        let me = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
        assert_eq!(
            evaluate(&ann(), me, "").expect("complete")["status"]["userInfo"],
            json!({"username": "ann", "groups": ["dev"]})
        );
    }

    #[test]
    fn token_reviews_authenticate_tokens() {
        let review = |token: &str| json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}});
        let known = evaluate(&ann(), review("secret"), "").expect("complete");
        assert_eq!(known["status"]["user"]["username"], "bob");
        let unknown = evaluate(&ann(), review("other"), "").expect("complete");
        assert_eq!(unknown["status"]["authenticated"], Value::Null);
        assert_eq!(evaluate(&ann(), review(""), "").expect_err("no token").code, 400);
    }
}
