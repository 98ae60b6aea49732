//! Subresources of a pod with another kind: binding, and those that need a kubelet.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ATTEMPTS, ApiResponse, Request, Rest, errors, meta,
    options::{WriteKind, WriteOptions},
    update::check_name,
    with_request_warnings,
};
use crate::{
    decode,
    field::{FieldError, FieldErrorKind},
    kinds::Subresource,
    schema::write_empty,
    status::{ApiError, Details},
    storage::Precondition,
};

impl Rest {
    /// Executes a POST to a subresource.
    pub(crate) fn create_subresource(
        &self,
        request: &Request,
        subresource: &Subresource,
    ) -> Result<ApiResponse, ApiError> {
        let options =
            WriteOptions::read(&request.parameters, WriteKind::Create, request.user_agent.as_deref())?;
        let decoded = decode::subresource(
            request.content_type.as_deref(),
            &request.body,
            &subresource.gvk,
            options.field_validation,
        )?;
        let body = decoded.object;
        let result = match subresource.name.as_str() {
            "binding" => self.bind(request, &options, &body),
            "eviction" => self.evict(request, &options, &body),
            "token" => self.token_request(request, &options, &subresource.gvk, body),
            _ => Err(errors::method_not_allowed()),
        };
        Ok(with_request_warnings(result, &decoded.warnings)?.with_warnings(decoded.warnings))
    }

    /// Assigns the pod that a binding names to a node.
    pub(super) fn create_binding(
        &self,
        request: &Request,
        options: &WriteOptions,
        binding: &Value,
    ) -> Result<ApiResponse, ApiError> {
        let mut one = request.for_object(&request.namespace, meta::text(binding, "name"));
        one.kind = Arc::clone(request.kinds.by_path("", "v1", "pods").ok_or_else(errors::no_such_resource)?);
        self.bind(&one, options, binding)
    }

    /// Assigns a pod to a node.
    fn bind(
        &self,
        request: &Request,
        options: &WriteOptions,
        binding: &Value,
    ) -> Result<ApiResponse, ApiError> {
        check_name(binding, &request.name)?;
        let wrong = invalid_binding(binding);
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
        Ok(ApiResponse::value(201, created()))
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

    /// Changes an object in place, without the rules of an update. Returns the new version.
    pub(super) fn edit(
        &self,
        request: &Request,
        is_dry_run: bool,
        mut change: impl FnMut(&mut Value) -> Result<(), ApiError>,
    ) -> Result<u64, ApiError> {
        for _ in 0..ATTEMPTS {
            let current = self.current(request)?;
            let mut object = request.served().object(&current);
            let old = object.clone();
            change(&mut object)?;
            if is_dry_run || object == old {
                return Ok(current.version);
            }
            write_empty(&mut object, &request.kind.ty);
            let content = request.served().content(&object)?;
            let expected = Precondition::Version(current.version);
            if let Ok(stored) = self.store.put(&request.table(), content, expected, self.now()) {
                return Ok(stored.version);
            }
        }
        Err(errors::modified(&request.kind, &request.name))
    }

    /// Responds to subresources that need a kubelet or a network: log, exec, portforward, proxy. The error depends on the
    /// stored objects only.
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

fn invalid_binding(binding: &Value) -> Vec<FieldError> {
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

pub(super) fn created() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
