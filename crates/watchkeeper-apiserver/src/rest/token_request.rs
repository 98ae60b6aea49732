//! `serviceaccounts/<name>/token`: issues signed tokens for `TokenRequest`s.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ApiResponse, Request, Rest, errors, key_of, meta, options::WriteOptions};
use crate::{
    apply::{self, Manager, OneVersion, WriteTarget, mask::Mask},
    auth::service_account::{API_AUDIENCE, AccountName, Claims, ISSUER, KubernetesClaims, Reference},
    field::{FieldError, FieldErrorKind},
    kinds::GroupVersionKind,
    schema::{TypeRef, builtin, write_empty},
    status::{ApiError, Details},
    storage::Object,
};

/// The lifetime of a token whose request contains none.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
/// The lifetime that kubelets request for clients that may not support expiring tokens.
const EXTENDED_SECONDS: i64 = 60 * 60 + 7;
/// The actual lifetime of such tokens.
const EXTENSION_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The webhook configuration kinds, to which tokens can be bound behind a feature gate that is off by default.
const WEBHOOKS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

impl Rest {
    /// Issues a token for the service account that `request` names.
    pub(super) fn token_request(
        &self,
        request: &Request,
        options: &WriteOptions,
        gvk: &GroupVersionKind,
        mut body: Value,
    ) -> Result<ApiResponse, ApiError> {
        let sent_name = meta::text(&body, "name");
        if !sent_name.is_empty() && sent_name != request.name {
            let detail = "must match the service account name if specified";
            let wrong = invalid("metadata.name", sent_name.into(), detail);
            return Err(errors::invalid_as(&gvk.kind, &gvk.group, &request.name, &[wrong]));
        }
        let sent_namespace = meta::text(&body, "namespace");
        if !sent_namespace.is_empty() && sent_namespace != request.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let account = self.current(request)?;
        let account_uid: &str = &account.content.uid;
        let sent_uid = meta::text(&body, "uid");
        if !sent_uid.is_empty() && sent_uid != account_uid {
            let why = format!(
                "the UID in the token request ({sent_uid}) does not match the UID of the service account ({account_uid})"
            );
            return Err(conflict(&gvk.kind, &gvk.group, &request.name, &why));
        }
        if let Some(members) = body.as_object_mut() {
            members.remove("status");
        }
        let spec = &mut body["spec"];
        if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
            spec["audiences"] = json!([API_AUDIENCE]);
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
        spec["expirationSeconds"] = seconds.into();
        let wrong = invalid_value(spec);
        if !wrong.is_empty() {
            return Err(errors::invalid_as(&gvk.kind, &gvk.group, "", &wrong));
        }
        let mut bound = self.bound_to(request, &spec["boundObjectRef"])?;
        bound.namespace.clone_from(&request.namespace);
        bound.serviceaccount = Reference { name: request.name.clone(), uid: account_uid.to_owned() };
        let token = self.issue(bound, seconds, &spec["audiences"])?;

        let ty = TypeRef::builtin(builtin().find_kind(gvk));
        let metadata = meta::metadata(&mut body)?;
        metadata.insert("name".into(), request.name.clone().into());
        metadata.insert("namespace".into(), request.namespace.clone().into());
        let subject = WriteTarget::new(gvk, &ty, &OneVersion).through("token", Mask::All);
        let manager = Manager { name: &options.manager, now: self.timestamp() };
        apply::track_update(None, &mut body, &subject, &manager);
        write_empty(&mut body, &ty);
        let metadata = meta::metadata(&mut body)?;
        metadata.insert("uid".into(), account_uid.into());
        metadata.insert("creationTimestamp".into(), meta::timestamp(self.now()).into());
        let ends = self.now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        body["status"] = json!({ "token": token, "expirationTimestamp": meta::timestamp(ends) });
        Ok(ApiResponse::value(201, body))
    }

    /// Returns the claims about the object that a token will be bound to.
    fn bound_to(&self, request: &Request, reference: &Value) -> Result<KubernetesClaims, ApiError> {
        let mut claims = KubernetesClaims::default();
        if !reference.is_object() {
            return Ok(claims);
        }
        let text = |member: &str| reference[member].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let uid = match (group, kind) {
            ("", "Pod") => {
                let pod = self.find("pods", &request.namespace, name)?;
                let spec = pod.to_value("v1", "Pod");
                let spec_text = |member: &str| spec["spec"][member].as_str().unwrap_or_default().to_owned();
                if spec_text("serviceAccountName") != request.name {
                    return Err(ApiError::bad_request(format!(
                        "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                        request.name
                    )));
                }
                let node = spec_text("nodeName");
                if !node.is_empty() {
                    let uid = self.find("nodes", "", &node).map(|node| node.content.uid.to_string());
                    claims.node = Some(Reference { name: node, uid: uid.unwrap_or_default() });
                }
                claims.pod.insert(reference_to(&pod)).uid.clone()
            }
            ("", "Node") => claims.node.insert(reference_to(&*self.find("nodes", "", name)?)).uid.clone(),
            ("", "Secret") => {
                let secret = self.find("secrets", &request.namespace, name)?;
                claims.secret.insert(reference_to(&secret)).uid.clone()
            }
            _ => {
                let is_webhook =
                    (group, version) == ("admissionregistration.k8s.io", "v1") && WEBHOOKS.contains(&kind);
                let why = if is_webhook {
                    " (feature gate APIServerWebhookAuthenticationToken is disabled)"
                } else {
                    ""
                };
                return Err(ApiError::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}{why}"
                )));
            }
        };
        let requested = text("uid");
        if !requested.is_empty() && requested != uid {
            let why = format!(
                "the UID in the bound object reference ({requested}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            );
            return Err(conflict(kind, group, name, &why));
        }
        Ok(claims)
    }

    fn find(&self, table: &str, namespace: &str, name: &str) -> Result<std::sync::Arc<Object>, ApiError> {
        self.store.get(table, &key_of(namespace, name)).ok_or_else(|| {
            let details =
                Details { name: Some(name.to_owned()), kind: Some(table.to_owned()), ..Details::default() };
            ApiError::new(404, "NotFound", format!("{table} {name:?} not found")).with_details(details)
        })
    }

    fn issue(
        &self,
        mut kubernetes: KubernetesClaims,
        seconds: i64,
        audiences: &Value,
    ) -> Result<String, ApiError> {
        let now = self.timestamp().as_second();
        let aud: Vec<String> =
            audiences.as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect();
        let is_extended = kubernetes.pod.is_some()
            && seconds == EXTENDED_SECONDS
            && aud.iter().all(|audience| audience == API_AUDIENCE);
        if is_extended {
            kubernetes.warnafter = Some(now + seconds);
        }
        let account = AccountName { namespace: &kubernetes.namespace, name: &kubernetes.serviceaccount.name };
        let claims = Claims {
            aud,
            exp: now + if is_extended { EXTENSION_SECONDS } else { seconds },
            iat: now,
            iss: ISSUER.to_owned(),
            jti: meta::uid(&mut self.random.lock()),
            nbf: now,
            sub: account.user_name(),
            kubernetes,
        };
        self.issuer.issue(&claims)
    }
}

fn reference_to(object: &Object) -> Reference {
    Reference { name: object.content.name.to_string(), uid: object.content.uid.to_string() }
}

fn invalid(field: &str, value: Value, detail: &str) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, field, Some(value), detail)
}

fn invalid_value(spec: &Value) -> Vec<FieldError> {
    let is_filled = |value: &Value| value.as_object().is_some_and(|members| !members.is_empty());
    if is_filled(&spec["attestations"]) {
        let detail = "attestations may only be specified with a webhook bound object reference";
        return vec![invalid("spec.attestations", spec["attestations"].clone(), detail)];
    }
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or_default();
    let detail = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Vec::new(),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    vec![invalid("spec.expirationSeconds", seconds.into(), detail)]
}

/// Returns the 409 for an object that is named by its kind.
fn conflict(kind: &str, group: &str, name: &str, why: &str) -> ApiError {
    let subject = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    ApiError::new(409, "Conflict", format!("Operation cannot be fulfilled on {subject} {name:?}: {why}"))
        .with_details(Details {
            name: Some(name.to_owned()),
            group: Some(group.to_owned()),
            kind: Some(kind.to_owned()),
            ..Details::default()
        })
}
