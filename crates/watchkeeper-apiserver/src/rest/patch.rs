//! Patch, of every type.

use serde_json::Value;

use super::{
    Answer, Request, Rest,
    create::fit_namespace,
    errors,
    options::{WriteKind, WriteOptions},
    update::{Source, check_name},
    versions::ServedVersions,
};
use crate::{
    apply::{self, Manager, Subject},
    decode::{self, FieldValidation},
    field::{FieldError, FieldErrorKind},
    patch::{self, JsonPatch},
    schema::TypeRef,
    status::{ApiError, Details},
    strategy::Part,
};

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchType {
    /// JSON patch.
    Json,
    /// Merge patch.
    Merge,
    /// Strategic merge patch; built-in kinds only.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// The type a request names.
    pub(super) fn read(request: &Request) -> Result<Self, ApiError> {
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
        let mut told = Vec::new();
        let updated = if ty == PatchType::Apply {
            let config = decode::applied(&request.body, options.field_validation)?;
            told = config.warnings;
            let versions = ServedVersions::of(request);
            let subject = Subject::of(&request.kind, part, &versions);
            let manager = Manager { name: &options.manager, now: self.timestamp() };
            self.change(request, &options, part, Source::Apply, &mut warnings, |current| {
                if current.is_none() && part != Part::Main {
                    return Err(errors::not_found(&request.kind, &request.name));
                }
                let applied = apply::apply(current, &config.object, &subject, &manager, options.force)?;
                let mut applied = check_patched(request, &options, applied, Vec::new(), &mut told)?;
                fit_namespace(&mut applied, &request.kind, &request.namespace)?;
                check_name(&applied, &request.name)?;
                Ok(applied)
            })?
        } else {
            self.change(request, &options, part, Source::Patch, &mut warnings, |current| {
                let Some(current) = current else {
                    return Err(errors::not_found(&request.kind, &request.name));
                };
                let patched = patched_value(ty, &request.body, current, &request.kind.ty)?;
                let found = problems(ty, &request.body)?;
                let mut patched = check_patched(request, &options, patched, found, &mut told)?;
                fit_namespace(&mut patched, &request.kind, &request.namespace)?;
                check_name(&patched, &request.name)?;
                Ok(patched)
            })?
        };
        told.extend(warnings);
        let code = if updated.is_new { 201 } else { 200 };
        Ok(self.show(request, code, updated.object)?.with_warnings(told))
    }
}

/// What a patch makes of an object.
pub(super) fn patched_value(
    patch: PatchType,
    body: &[u8],
    current: &Value,
    ty: &TypeRef,
) -> Result<Value, ApiError> {
    match patch {
        PatchType::Json => patch::json_patch(current, body),
        PatchType::Merge => patch::object_body(body).map(|body| patch::merge(current, body)),
        PatchType::Strategic | PatchType::Apply => {
            patch::object_body(body).and_then(|body| patch::strategic(current, &body, ty))
        }
    }
}

/// What strict validation has against a patch itself: keys given twice, members no operation has.
fn problems(patch: PatchType, body: &[u8]) -> Result<Vec<String>, ApiError> {
    if patch == PatchType::Json {
        return Ok(JsonPatch::parse(body)?.unknown_fields().to_vec());
    }
    Ok(decode::duplicates(body))
}

/// A patched object must still be one of its kind, and its members must be known ones.
fn check_patched(
    request: &Request,
    options: &WriteOptions,
    mut patched: Value,
    found: Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let refuse = |shown: String, why: String| {
        let wrong = FieldError::new(FieldErrorKind::Invalid, "patch", Some(shown.into()), why);
        errors::invalid_as("", "", "", &[wrong])
    };
    let kind = &request.kind;
    // A patch that replaces the whole object may leave out what kind it is.
    for (member, value) in [("apiVersion", kind.api_version()), ("kind", kind.gvk.kind.clone())] {
        if let Some(members) = patched.as_object_mut() {
            members.entry(member).or_insert_with(|| value.into());
        }
    }
    let is_kind = patched.get("kind").is_some_and(|name| *name == kind.gvk.kind)
        && patched.get("apiVersion").is_some_and(|version| *version == kind.api_version());
    if !is_kind && kind.custom.is_some() && patched["apiVersion"] == kind.api_version() {
        return Err(decode::wrong_kind(&patched, &kind.gvk));
    }
    if !is_kind {
        return Err(refuse(
            patched.to_string(),
            format!("the patched object is no longer a {}", kind.gvk.kind),
        ));
    }
    let shown = patched.to_string();
    let checked = decode::check(patched, kind).map_err(|why| refuse(shown.clone(), why))?;
    let problems: Vec<String> = found.into_iter().chain(checked.problems).collect();
    warnings.clear();
    match options.field_validation {
        FieldValidation::Strict if !problems.is_empty() => {
            Err(refuse(shown, format!("strict decoding error: {}", problems.join(", "))))
        }
        FieldValidation::Warn => {
            warnings.extend(problems);
            Ok(checked.object)
        }
        _ => Ok(checked.object),
    }
}
