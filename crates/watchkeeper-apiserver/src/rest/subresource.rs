//! What lies below a pod or a service account and is not the object itself: binding, eviction, token.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    ATTEMPTS, Answer, Request, Rest,
    delete::DeleteOptions,
    errors, meta,
    options::{WriteKind, WriteOptions},
    update::check_name,
};
use crate::{
    apply::{self, Manager, OneVersion, Subject, mask::Mask},
    decode,
    field::{FieldError, FieldErrorKind},
    kinds::{GroupVersionKind, Subresource},
    schema::{TypeRef, builtin, write_empty},
    selector,
    status::{ApiError, Cause, Details},
    storage::{Expected, Object, Query},
};

/// Seconds a token is good for whose request does not say.
const TOKEN_SECONDS: i64 = 3600;
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

impl Rest {
    /// POST to a subresource.
    pub(crate) fn create_subresource(
        &self,
        request: &Request,
        subresource: &Subresource,
    ) -> Result<Answer, ApiError> {
        let options =
            WriteOptions::read(&request.parameters, WriteKind::Create, request.user_agent.as_deref())?;
        let decoded = decode::subresource(
            request.content_type.as_deref(),
            &request.body,
            &subresource.gvk,
            options.field_validation,
        )?;
        let body = decoded.object;
        let answer = match subresource.name.as_str() {
            "binding" => self.bind(request, &options, &body),
            "eviction" => self.evict(request, &options, &body),
            "token" => self.token(request, &options, &subresource.gvk, body),
            _ => Err(errors::method_not_allowed()),
        };
        match answer {
            Ok(answer) => Ok(answer.with_warnings(decoded.warnings)),
            Err(error) => Err(error.with_warnings(decoded.warnings)),
        }
    }

    /// Puts the pod a binding names on a node.
    pub(super) fn create_binding(
        &self,
        request: &Request,
        options: &WriteOptions,
        binding: &Value,
    ) -> Result<Answer, ApiError> {
        let mut one = request.about(&request.namespace, meta::text(binding, "name"));
        one.kind = Arc::clone(request.kinds.by_path("", "v1", "pods").ok_or_else(errors::no_such_resource)?);
        self.bind(&one, options, binding)
    }

    /// Puts a pod on a node.
    fn bind(&self, request: &Request, options: &WriteOptions, binding: &Value) -> Result<Answer, ApiError> {
        check_name(binding, &request.name)?;
        let wrong = wrong_binding(binding);
        if !wrong.is_empty() {
            return Err(errors::invalid_as("Binding", "", &request.name, &wrong));
        }
        let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
        let name = &request.name;
        let refuse = |why: String| {
            let mut error = errors::conflict(&request.kind, name, &why);
            error.message = error.message.replacen("on pods ", "on pods/binding ", 1);
            if let Some(details) = &mut error.details {
                details.kind = Some("pods/binding".into());
            }
            error
        };
        self.edit(request, options.is_dry_run, |pod| {
            let (uid, sent) = (meta::text(pod, "uid"), meta::text(binding, "uid"));
            if !sent.is_empty() && sent != uid {
                let why =
                    format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {uid}");
                return Err(refuse(why));
            }
            if meta::is_being_deleted(pod) {
                return Err(refuse(format!("pod {name} is being deleted, cannot be assigned to a host")));
            }
            let current = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
            if !current.is_empty() {
                return Err(refuse(format!("pod {name} is already assigned to node {current:?}")));
            }
            pod["spec"]["nodeName"] = node.into();
            let metadata = meta::metadata(pod)?;
            for member in ["annotations", "labels"] {
                let given = binding.pointer(&format!("/metadata/{member}")).and_then(Value::as_object);
                if let Some(given) = given.filter(|given| !given.is_empty())
                    && let Some(known) = metadata.entry(member).or_insert_with(|| json!({})).as_object_mut()
                {
                    known.extend(given.clone());
                }
            }
            self.set_scheduled(pod);
            Ok(())
        })?;
        Ok(Answer::value(201, created()))
    }

    fn set_scheduled(&self, pod: &mut Value) {
        let condition = json!({
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": meta::timestamp(self.now()),
        });
        let conditions = &mut pod["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|known| known["type"] != "PodScheduled");
            conditions.push(condition);
        }
    }

    /// Deletes a pod, unless a disruption budget holds it.
    fn evict(&self, request: &Request, options: &WriteOptions, eviction: &Value) -> Result<Answer, ApiError> {
        check_name(eviction, &request.name)?;
        let given = eviction.get("deleteOptions").cloned().unwrap_or_default();
        let delete = DeleteOptions::of_eviction(&given, options.is_dry_run)?;
        let current = self.current(request)?;
        let pod = current.to_value("v1", "Pod");
        let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
        let is_free = meta::is_being_deleted(&pod) || matches!(phase, "Pending" | "Succeeded" | "Failed");
        if !is_free {
            self.ask_budget(request, &current, &pod, delete.is_dry_run())?;
        }
        self.delete_object(request, &delete)?;
        Ok(Answer::value(201, created()))
    }

    fn ask_budget(
        &self,
        request: &Request,
        current: &Object,
        pod: &Value,
        is_dry_run: bool,
    ) -> Result<(), ApiError> {
        let Some(kind) = request.kinds.by_path("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
        let prefix = request.prefix();
        let query = Query { prefix: &prefix, start: &prefix, at: None, limit: None, filter: None };
        let table = super::table_of(kind);
        let budgets = self.store.list(&table, query, self.now()).map(|page| page.objects).unwrap_or_default();
        let mut holding = budgets.iter().filter(|budget| {
            let budget = budget.to_value("policy/v1", "PodDisruptionBudget");
            selector::of_object(budget.pointer("/spec/selector"))
                .is_some_and(|selector| selector.matches(&current.content))
        });
        let Some(budget) = holding.next() else { return Ok(()) };
        if holding.next().is_some() {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        let mut one = request.about(&budget.content.namespace, &budget.content.name);
        one.kind = Arc::clone(kind);
        let is_ready =
            pod.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|conditions| {
                conditions.iter().any(|known| known["type"] == "Ready" && known["status"] == "True")
            });
        self.edit(&one, is_dry_run, |budget| {
            let number =
                |budget: &Value, path: &str| budget.pointer(path).and_then(Value::as_i64).unwrap_or(0);
            let (healthy, needed) =
                (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
            let always = budget
                .pointer("/spec/unhealthyPodEvictionPolicy")
                .is_some_and(|policy| policy == "AlwaysAllow");
            if !is_ready && (always || (needed > 0 && healthy >= needed)) {
                return Ok(());
            }
            if number(budget, "/status/observedGeneration") < number(budget, "/metadata/generation") {
                let name = meta::text(budget, "name");
                let cause = format!("The disruption budget {name} is still being processed by the server.");
                return Err(held(cause, Some(10)));
            }
            let allowed = number(budget, "/status/disruptionsAllowed");
            if allowed <= 0 {
                let name = meta::text(budget, "name");
                let cause = format!(
                    "The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
                );
                return Err(held(cause, None));
            }
            budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
            budget["status"]["disruptedPods"][&request.name] = meta::timestamp(self.now()).into();
            Ok(())
        })
    }

    /// A token for a service account.
    fn token(
        &self,
        request: &Request,
        options: &WriteOptions,
        gvk: &GroupVersionKind,
        mut body: Value,
    ) -> Result<Answer, ApiError> {
        let account = self.current(request)?;
        let given = meta::text(&body, "name");
        if !given.is_empty() && given != request.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({})",
                request.name
            )));
        }
        let ty = TypeRef::builtin(builtin().find_kind(gvk));
        let spec = &mut body["spec"];
        if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
            spec["audiences"] = json!(["https://kubernetes.default.svc.cluster.local"]);
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(TOKEN_SECONDS);
        spec["expirationSeconds"] = seconds.into();
        let wrong = match seconds {
            ..TOKEN_SECONDS_MIN => Some("may not specify a duration less than 10 minutes"),
            TOKEN_SECONDS_MIN..=TOKEN_SECONDS_MAX => None,
            _ => Some("may not specify a duration larger than 2^32 seconds"),
        };
        if let Some(detail) = wrong {
            let field = "spec.expirationSeconds";
            let wrong = FieldError::new(FieldErrorKind::Invalid, field, Some(seconds.into()), detail);
            return Err(errors::invalid_as("TokenRequest", &gvk.group, &request.name, &[wrong]));
        }
        let metadata = meta::metadata(&mut body)?;
        metadata.insert("name".into(), request.name.clone().into());
        metadata.insert("namespace".into(), request.namespace.clone().into());
        let subject = Subject::new(gvk, &ty, &OneVersion).through("token", Mask::All);
        let manager = Manager { name: &options.manager, now: self.timestamp() };
        if let Some(members) = body.as_object_mut() {
            members.remove("status");
        }
        apply::track_update(None, &mut body, &subject, &manager);
        write_empty(&mut body, &ty);
        let metadata = meta::metadata(&mut body)?;
        metadata.insert("uid".into(), (*account.content.uid).into());
        metadata.insert("creationTimestamp".into(), meta::timestamp(self.now()).into());
        let ends = self.now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        body["status"] = json!({
            "token": self.make_token(request, &account.content.uid, &body["spec"]["audiences"], seconds),
            "expirationTimestamp": meta::timestamp(ends),
        });
        Ok(Answer::value(201, body))
    }

    /// A token in the form of a service account's. Its signature is random: nothing checks it but this server, by name.
    fn make_token(&self, request: &Request, uid: &str, audiences: &Value, seconds: i64) -> String {
        let now = self.timestamp().as_second();
        let head = json!({"alg": "RS256", "typ": "JWT"});
        let claims = json!({
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": "https://kubernetes.default.svc.cluster.local",
            "kubernetes.io": {
                "namespace": request.namespace,
                "serviceaccount": {"name": request.name, "uid": uid},
            },
            "sub": format!("system:serviceaccount:{}:{}", request.namespace, request.name),
        });
        let signature: Vec<u8> = (0..32).map(|_| self.random.lock().u8(..)).collect();
        [head.to_string().into_bytes(), claims.to_string().into_bytes(), signature]
            .map(|part| BASE64_URL_SAFE_NO_PAD.encode(part))
            .join(".")
    }

    /// Changes an object in place, without the rules of an update.
    pub(super) fn edit(
        &self,
        request: &Request,
        is_dry_run: bool,
        mut change: impl FnMut(&mut Value) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        for _ in 0..ATTEMPTS {
            let current = self.current(request)?;
            let mut object = request.served().object(&current);
            let old = object.clone();
            change(&mut object)?;
            if is_dry_run || object == old {
                return Ok(());
            }
            write_empty(&mut object, &request.kind.ty);
            let content = request.served().content(&object)?;
            let expected = Expected::Version(current.version);
            if self.store.put(&request.table(), content, expected, self.now()).is_ok() {
                return Ok(());
            }
        }
        Err(errors::modified(&request.kind, &request.name))
    }

    /// What needs a kubelet or a network behind it: logs, exec, port-forward, proxy. Answered at once, as far as the
    /// objects say.
    pub(crate) fn connect(&self, request: &Request, subresource: &str) -> ApiError {
        let object = match self.current(request) {
            Ok(object) => object.to_value(&request.kind.api_version(), &request.kind.gvk.kind),
            Err(error) => return error,
        };
        let plural = &request.kind.plural;
        if plural == "pods" && subresource != "proxy" {
            let node = object.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
            if node.is_empty() {
                return ApiError::bad_request(format!("pod {} does not have a host assigned", request.name));
            }
            if self.store.get("nodes", node).is_none() {
                let details =
                    Details { name: Some(node.into()), kind: Some("pods".into()), ..Details::default() };
                return ApiError::new(404, "NotFound", format!("nodes {node:?} not found"))
                    .with_details(details);
            }
        }
        let message = format!("{plural}/{subresource} is not served: nothing runs behind this API server");
        let details = Details {
            name: Some(request.name.clone()),
            kind: Some(format!("{plural}/{subresource}")),
            ..Details::default()
        };
        ApiError::new(405, "MethodNotAllowed", message).with_details(details)
    }
}

fn wrong_binding(binding: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let target = |member: &str| {
        binding.pointer(&format!("/target/{member}")).and_then(Value::as_str).unwrap_or_default()
    };
    let kind = target("kind");
    if !matches!(kind, "" | "Node") {
        let detail = "supported values: \"Node\", \"<empty>\"";
        wrong.push(FieldError::new(FieldErrorKind::NotSupported, "target.kind", Some(kind.into()), detail));
    }
    if target("name").is_empty() {
        wrong.push(FieldError::new(FieldErrorKind::Required, "target.name", None, ""));
    }
    wrong
}

/// 429: a disruption budget holds the pod.
fn held(cause: String, retry_after_seconds: Option<u32>) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ApiError::new(429, "TooManyRequests", message).with_details(Details {
        causes: vec![Cause { reason: "DisruptionBudget".into(), message: cause, field: None }],
        retry_after_seconds,
        ..Details::default()
    })
}

fn created() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
