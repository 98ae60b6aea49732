//! The scale subresource: the number of replicas, uniform for all scalable kinds.

use serde_json::{Map, Value, json};

use super::{
    ApiResponse, Request, Rest, errors, integer_wrap, meta,
    options::{WriteKind, WriteOptions},
    patch::{PatchType, PatchedKind, check_patched, read_patch},
    update::{WriteSource, check_name},
    with_request_warnings,
};
use crate::{
    apply::{self, Manager, OneVersion, WriteTarget, mask::Mask, scale::ReplicasPaths},
    decode,
    field::{FieldError, FieldErrorKind},
    kinds::{GroupVersionKind, Kind},
    schema::{TypeRef, builtin, write_empty},
    selector,
    status::ApiError,
    strategy::Part,
};

/// The paths of the values of a scale in its object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParsedScalePaths {
    /// The path of the desired number of replicas.
    spec: Vec<String>,
    /// The path of the actual number of replicas.
    status: Vec<String>,
    /// The path of the selector, a text or a selector object; empty if there is none.
    selector: Vec<String>,
}

/// Returns the scale paths of a kind. None for kinds that cannot be scaled.
fn scale_paths(kind: &Kind) -> Option<ParsedScalePaths> {
    kind.subresource("scale")?;
    let path = |text: &str| text.trim_start_matches('.').split('.').map(str::to_owned).collect();
    Some(match &kind.custom {
        Some(custom) => {
            let scale = custom.scale.as_ref()?;
            ParsedScalePaths {
                spec: path(&scale.spec_replicas),
                status: path(&scale.status_replicas),
                selector: scale.label_selector.as_deref().map(path).unwrap_or_default(),
            }
        }
        None => ParsedScalePaths {
            spec: path("spec.replicas"),
            status: path("status.replicas"),
            selector: path("spec.selector"),
        },
    })
}

/// Returns the path of the replicas in each version of the kind of a request, because managers may have written in any
/// version.
fn replicas_paths(request: &Request) -> ReplicasPaths {
    let kind = &request.kind.gvk;
    let versions = request.kinds.group(&kind.group).map(|group| &*group.versions).unwrap_or_default();
    let kinds =
        versions.iter().flat_map(|version| &version.kinds).filter(|other| other.gvk.kind == kind.kind);
    kinds.fold(ReplicasPaths::default(), |paths, version| {
        let own = scale_paths(version);
        let spec: Option<Vec<&str>> = own.as_ref().map(|own| own.spec.iter().map(String::as_str).collect());
        paths.with(&version.api_version(), spec.as_deref())
    })
}

fn gvk() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v1", "Scale")
}

fn ty() -> TypeRef {
    TypeRef::builtin(builtin().find_kind(&gvk()))
}

impl Rest {
    /// Executes a GET of a scale.
    pub(crate) fn scale(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        let current = self.current(request)?;
        let object = request.served().object(&current);
        let Scale { scale, has_replicas } = scale_of(&object, &request.kind)?;
        if !has_replicas {
            let path = scale_paths(&request.kind).map(|paths| paths.spec.join(".")).unwrap_or_default();
            return Err(ApiError::internal(format!("the spec replicas field \".{path}\" does not exist")));
        }
        self.represent(request, 200, scale)
    }

    /// Executes a PUT of a scale.
    pub(crate) fn update_scale(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        let options =
            WriteOptions::read(&request.parameters, WriteKind::Update, request.user_agent.as_deref())?;
        let content_type = request.content_type.as_deref();
        let decoded = decode::subresource(content_type, &request.body, &gvk(), options.field_validation)?;
        check_name(&decoded.object, &request.name)?;
        let scale = decoded.object;
        let result = self.change_scale(request, &options, WriteSource::Put, |_| Ok(scale.clone()));
        Ok(with_request_warnings(result, &decoded.warnings)?.with_warnings(decoded.warnings))
    }

    /// Executes a PATCH of a scale.
    pub(crate) fn patch_scale(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        let patch = PatchType::read(request)?;
        let write = if patch == PatchType::Apply { WriteKind::Apply } else { WriteKind::Patch };
        let options = WriteOptions::read(&request.parameters, write, request.user_agent.as_deref())?;
        if patch == PatchType::Apply {
            let config = decode::applied(&request.body, options.field_validation)?;
            let (gvk, ty) = (gvk(), ty());
            let subject = WriteTarget::new(&gvk, &ty, &OneVersion).through("scale", Mask::All);
            let manager = Manager { name: &options.manager, now: self.timestamp() };
            return self.change_scale(request, &options, WriteSource::Apply, |scale| {
                apply::apply(Some(scale), &config.object, &subject, &manager, options.force)
            });
        }
        let is_strategic = patch == PatchType::Strategic;
        let (patch, problems) = read_patch(patch, &request.body)?;
        let (gvk, ty) = (gvk(), ty());
        let kind = PatchedKind { gvk: &gvk, ty: &ty, is_custom: false };
        let mut warnings = Vec::new();
        let result = self.change_scale(request, &options, WriteSource::Patch, |scale| {
            let mut scale = patch.apply(scale, &ty)?;
            if is_strategic {
                integer_wrap::integers(&mut scale, &ty);
            }
            let scale = check_patched(kind, &options, scale, &problems, &mut warnings)?;
            check_name(&scale, &request.name)?;
            Ok(scale)
        });
        let result = with_request_warnings(result, &warnings)?;
        warnings.extend(result.warnings.iter().cloned());
        Ok(result.with_warnings(warnings))
    }

    fn change_scale(
        &self,
        request: &Request,
        options: &WriteOptions,
        source: WriteSource,
        mut produce: impl FnMut(&Value) -> Result<Value, ApiError>,
    ) -> Result<ApiResponse, ApiError> {
        let kind = &request.kind;
        let paths = scale_paths(kind).ok_or_else(errors::no_such_resource)?;
        let replicas_paths = replicas_paths(request);
        let (gvk, ty) = (gvk(), ty());
        let unreadable =
            |error| ApiError::internal(format!("the managers of the object cannot be read: {error}"));
        let mut warnings = Vec::new();
        let part = Part::Subresource("scale");
        let updated = self.change(request, options, part, WriteSource::Apply, &mut warnings, |current| {
            let Some(current) = current else { return Err(errors::not_found(kind, &request.name)) };
            let Scale { scale: mut old, has_replicas } = scale_of(current, kind)?;
            if !has_replicas {
                // Distinguishes a patch that sets no replicas from one that sets zero.
                old["spec"]["replicas"] = NO_REPLICAS.into();
            }
            let entries = current.pointer("/metadata/managedFields");
            if let Some(entries) = apply::scale::to_scale(entries, &replicas_paths).map_err(unreadable)? {
                old["metadata"]["managedFields"] = entries;
            }
            let mut new = produce(&old)?;
            write_empty(&mut new, &ty);
            if source != WriteSource::Apply {
                let subject = WriteTarget::new(&gvk, &ty, &OneVersion).through("scale", Mask::All);
                let manager = Manager { name: &options.manager, now: self.timestamp() };
                apply::track_update(Some(&old), &mut new, &subject, &manager);
            }
            let replicas = new.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
            if kind.custom.is_some() && replicas == NO_REPLICAS {
                let path = paths.spec.join(".");
                let message = format!("the spec replicas field \".{path}\" cannot be empty");
                return Err(ApiError::bad_request(message));
            }
            // Custom resources are validated as a whole, with the path of their definition.
            if replicas < 0 && kind.custom.is_none() {
                let detail = "must be greater than or equal to 0";
                let value = Some(replicas.into());
                let wrong = FieldError::new(FieldErrorKind::Invalid, "spec.replicas", value, detail);
                return Err(errors::invalid_as("Scale", "autoscaling", &request.name, &[wrong]));
            }
            let mut object = current.clone();
            set(&mut object, &paths.spec, replicas.into());
            let managed = apply::scale::to_parent(
                entries,
                new.pointer("/metadata/managedFields"),
                &kind.api_version(),
                &replicas_paths,
            )
            .map_err(unreadable)?;
            let metadata = meta::metadata(&mut object)?;
            match managed {
                Some(managed) => metadata.insert("managedFields".into(), managed),
                None => metadata.remove("managedFields"),
            };
            let version = meta::text(&new, "resourceVersion").to_owned();
            if !version.is_empty() {
                metadata.insert("resourceVersion".into(), version.into());
            }
            let uid = meta::text(&new, "uid").to_owned();
            let own = meta::text(current, "uid");
            let is_checked = source == WriteSource::Put || kind.custom.is_none();
            if is_checked && !uid.is_empty() && uid != own {
                let why =
                    format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own}");
                return Err(errors::conflict(kind, &request.name, &why));
            }
            Ok(object)
        })?;
        let Scale { scale, .. } = scale_of(&updated.object, kind)?;
        Ok(self.represent(request, 200, scale)?.with_warnings(warnings))
    }
}

/// The sentinel for a scale whose object has no replicas. Valid replicas are not negative.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The scale of an object.
struct Scale {
    scale: Value,
    /// Whether the object has the member for the replicas. Always true for built-in kinds.
    has_replicas: bool,
}

/// Returns the scale of an object.
fn scale_of(object: &Value, kind: &Kind) -> Result<Scale, ApiError> {
    let paths = scale_paths(kind).ok_or_else(errors::no_such_resource)?;
    let number = |path: &[String]| get(object, path).and_then(Value::as_i64);
    let replicas = number(&paths.spec);
    let mut metadata = Map::new();
    for member in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{member}")) {
            metadata.insert(member.into(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": number(&paths.status).unwrap_or(0)},
    });
    if let Some(replicas) = replicas.filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    let selector = match get(object, &paths.selector) {
        Some(Value::String(text)) => text.clone(),
        Some(selector) => selector::selector_text(selector),
        None => String::new(),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    Ok(Scale { scale, has_replicas: replicas.is_some() || kind.custom.is_none() })
}

fn get<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    if path.is_empty() {
        return None;
    }
    path.iter().try_fold(object, |object, member| object.get(member))
}

fn set(object: &mut Value, path: &[String], value: Value) {
    let mut field = object;
    for member in path {
        if !field.is_object() {
            *field = json!({});
        }
        field = &mut field[member.as_str()];
    }
    *field = value;
}
