//! Patch, of every type.

use serde_json::Value;

use super::{
    Answer, Request, Rest, errors, meta,
    options::{WriteKind, WriteOptions},
    update::{Source, check_name},
};
use crate::{
    field::{FieldError, FieldErrorKind},
    seam,
    status::{ApiError, Details},
    strategy::Part,
};

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    fn read(request: &Request) -> Result<Self, ApiError> {
        let media_type = request.content_type.as_deref().unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if request.kind.custom.is_none() => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ if request.kind.custom.is_some() => Err(ApiError::new(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
                .with_details(Details::default())),
        }
    }
}

impl Rest {
    /// PATCH of an object, or of a subresource that has the shape of the object.
    pub(crate) fn patch(&self, request: &Request, part: Part<'_>) -> Result<Answer, ApiError> {
        let ty = PatchType::read(request)?;
        let write = if ty == PatchType::Apply { WriteKind::Apply } else { WriteKind::Patch };
        let options = WriteOptions::read(&request.parameters, write, request.user_agent.as_deref())?;
        let mut warnings = Vec::new();
        let updated = self.change(request, &options, part, Source::Patch, &mut warnings, |current| {
            let Some(current) = current else {
                return Err(errors::not_found(&request.kind, &request.name));
            };
            let patched = apply_patch(ty, request, current)?;
            let patched = read_patched(request, &options, patched)?;
            check_name(&patched, &request.name)?;
            let namespace = meta::text(&patched, "namespace");
            if namespace != request.namespace {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            Ok(patched)
        })?;
        let code = if updated.is_new { 201 } else { 200 };
        Ok(self.show(request, code, updated.object)?.with_warnings(warnings))
    }
}

fn apply_patch(ty: PatchType, request: &Request, current: &Value) -> Result<Value, ApiError> {
    let body = || {
        serde_json::from_slice::<Value>(&request.body)
            .map_err(|_| ApiError::bad_request("invalid JSON patch"))
    };
    match ty {
        PatchType::Json => seam::json_patch(current, &request.body),
        PatchType::Merge => Ok(seam::merge(current, body()?)),
        PatchType::Strategic => seam::strategic(current, &body()?, &request.kind.ty),
        PatchType::Apply => Err(ApiError::internal("apply")),
    }
}

/// The patched object must still be one of its kind.
fn read_patched(request: &Request, options: &WriteOptions, patched: Value) -> Result<Value, ApiError> {
    let text = patched.to_string();
    seam::decode(Some("application/json"), text.as_bytes(), &request.kind, options.field_validation)
        .map(|decoded| decoded.object)
        .map_err(|error| {
            let wrong =
                FieldError::new(FieldErrorKind::Invalid, "patch", Some(text.clone().into()), error.message);
            errors::invalid_as("", "", "", &[wrong])
        })
}
