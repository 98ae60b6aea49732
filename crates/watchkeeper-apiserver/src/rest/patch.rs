//! The patch verb, for all patch types.

use serde_json::Value;

use super::{
    ApiResponse, Request, Rest, add_warnings,
    create::ensure_namespace,
    errors, integer_wrap, meta,
    options::{WriteKind, WriteOptions},
    update::{WriteSource, check_name},
    versions::ServedVersions,
    with_request_warnings,
};
use crate::{
    apply::{self, Manager, WriteTarget},
    decode::{self, FieldValidation},
    field::{FieldError, FieldErrorKind},
    kinds::{GroupVersionKind, Kind},
    patch::{Patch, PatchFormat},
    schema::TypeRef,
    status::{ApiError, Details},
    strategy::Part,
};

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchType {
    /// A JSON patch.
    Json,
    /// A JSON merge patch.
    Merge,
    /// A strategic merge patch; built-in kinds only.
    Strategic,
    /// A server-side apply.
    Apply,
}

impl PatchType {
    /// Returns the patch type of a request.
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
    /// Executes a PATCH of an object, or of a subresource with the shape of the object.
    pub(crate) fn patch(&self, request: &Request, part: Part<'_>) -> Result<ApiResponse, ApiError> {
        let ty = PatchType::read(request)?;
        let write = if ty == PatchType::Apply { WriteKind::Apply } else { WriteKind::Patch };
        let options = WriteOptions::read(&request.parameters, write, request.user_agent.as_deref())?;
        let patched_kind = PatchedKind::of(&request.kind);
        let mut warnings = Vec::new();
        let mut request_warnings = Vec::new();
        let updated = if ty == PatchType::Apply {
            let config = decode::applied(&request.body, options.field_validation)?;
            request_warnings = config.warnings;
            let versions = ServedVersions::of(request);
            let subject = WriteTarget::of(&request.kind, part, &versions);
            let manager = Manager { name: &options.manager, now: self.timestamp() };
            self.change(request, &options, part, WriteSource::Apply, &mut warnings, |current| {
                if current.is_none() && part != Part::Main {
                    return Err(errors::not_found(&request.kind, &request.name));
                }
                let mut applied = apply::apply(current, &config.object, &subject, &manager, options.force)?;
                if request.kind.custom.is_none() {
                    integer_wrap::integers(&mut applied, &request.kind.ty);
                }
                let mut applied = check_applied(patched_kind, applied, &mut request_warnings)?;
                let uid = meta::text(&applied, "uid");
                if current.is_none() && !uid.is_empty() {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(errors::conflict(&request.kind, &request.name, &why));
                }
                ensure_namespace(&mut applied, &request.kind, &request.namespace)?;
                check_name(&applied, &request.name)?;
                Ok(applied)
            })
        } else {
            // A missing object is reported before an unreadable patch.
            let (patch, problems) = read_patch(ty, &request.body).map_err(|error| {
                if self.store.get(&request.table(), &request.key()).is_some() {
                    error
                } else {
                    errors::not_found(&request.kind, &request.name)
                }
            })?;
            self.change(request, &options, part, WriteSource::Patch, &mut warnings, |current| {
                let Some(current) = current else {
                    return Err(errors::not_found(&request.kind, &request.name));
                };
                let mut patched = patch.apply(current, &request.kind.ty)?;
                if ty == PatchType::Strategic {
                    integer_wrap::integers(&mut patched, &request.kind.ty);
                    // Such patches are applied to the type of the kind, so they cannot change it.
                    patched["apiVersion"] = request.kind.api_version().into();
                    patched["kind"] = request.kind.gvk.kind.clone().into();
                }
                let mut patched =
                    check_patched(patched_kind, &options, patched, &problems, &mut request_warnings)?;
                ensure_namespace(&mut patched, &request.kind, &request.namespace)?;
                check_name(&patched, &request.name)?;
                Ok(patched)
            })
        };
        add_warnings(&mut request_warnings, warnings);
        let updated = with_request_warnings(updated, &request_warnings)?;
        Ok(self.represent_written(request, updated)?.with_warnings(request_warnings))
    }
}

/// Parses the patch in a body. Returns the problems for strict validation too.
pub(super) fn read_patch(ty: PatchType, body: &[u8]) -> Result<(Patch, Vec<String>), ApiError> {
    let (form, whose) = match ty {
        PatchType::Json => (PatchFormat::Json, "json patch "),
        PatchType::Merge => (PatchFormat::Merge, ""),
        PatchType::Strategic | PatchType::Apply => (PatchFormat::Strategic, ""),
    };
    let (body, duplicates) = decode::patch(body)?;
    let patch = Patch::read(form, body)?;
    let duplicates = duplicates.iter().map(|duplicate| format!("{whose}{duplicate}"));
    let problems = duplicates.chain(patch.unknown_fields().iter().cloned()).collect();
    Ok((patch, problems))
}

/// The kind that a patched object must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatchedKind<'a> {
    pub(super) gvk: &'a GroupVersionKind,
    pub(super) ty: &'a TypeRef,
    pub(super) is_custom: bool,
}

impl<'a> PatchedKind<'a> {
    fn of(kind: &'a Kind) -> Self {
        Self { gvk: &kind.gvk, ty: &kind.ty, is_custom: kind.custom.is_some() }
    }
}

/// Checks the values of an object that results from an apply. Apply has already checked the members. An invalid value, such
/// as a text that is not base64, fails in the conversion upstream, which returns 500.
fn check_applied(
    kind: PatchedKind<'_>,
    applied: Value,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let checked = decode::check(applied, kind.ty, kind.is_custom)
        .map_err(|why| ApiError::new(500, "", format!("failed to convert the applied object: {why}")))?;
    add_warnings(warnings, checked.problems);
    Ok(checked.object)
}

/// Checks that a patched object still has its kind and no unknown members. `problems` are those of the patch itself.
pub(super) fn check_patched(
    kind: PatchedKind<'_>,
    options: &WriteOptions,
    mut patched: Value,
    problems: &[String],
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let refuse = |original: String, why: String| {
        let wrong = FieldError::new(FieldErrorKind::Invalid, "patch", Some(original.into()), why);
        errors::invalid_as("", "", "", &[wrong])
    };
    let PatchedKind { gvk, ty, is_custom } = kind;
    // A patch that replaces the whole object may omit apiVersion and kind.
    for (member, value) in [("apiVersion", gvk.api_version()), ("kind", gvk.kind.clone())] {
        if let Some(members) = patched.as_object_mut() {
            members.entry(member).or_insert_with(|| value.into());
        }
    }
    let is_version = patched.get("apiVersion").is_some_and(|version| *version == gvk.api_version());
    let is_kind = is_version && patched.get("kind").is_some_and(|name| *name == gvk.kind);
    if !is_kind && is_custom && is_version {
        return Err(decode::invalid_kind(&patched, gvk));
    }
    if !is_kind {
        let why = format!("the patched object is no longer a {}", gvk.kind);
        return Err(refuse(patched.to_string(), why));
    }
    let original = patched.to_string();
    let mut checked = decode::check(patched, ty, is_custom).map_err(|why| refuse(original.clone(), why))?;
    checked.problems.splice(..0, problems.iter().cloned());
    warnings.clear();
    match options.field_validation {
        FieldValidation::Strict if !checked.problems.is_empty() => {
            Err(refuse(original, format!("strict decoding error: {}", checked.problems.join(", "))))
        }
        FieldValidation::Warn => {
            warnings.extend(checked.problems);
            Ok(checked.object)
        }
        _ => Ok(checked.object),
    }
}
