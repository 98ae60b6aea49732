//! The update verb, and the common part of all changes of an object.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ATTEMPTS, ApiResponse, Request, Rest, add_warnings,
    create::ensure_namespace,
    errors, meta,
    options::{WriteKind, WriteOptions},
    versions::ServedVersions,
    with_request_warnings,
};
use crate::{
    apply::{self, Manager, WriteTarget},
    auth::content::{self, ContentWrite},
    decode,
    field::{FieldError, FieldErrorKind},
    schema::{write_empty, write_spec},
    status::ApiError,
    storage::{Object, Precondition},
    strategy::{Part, WriteContext},
};

/// The origin of a new object, for rules that depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteSource {
    /// A new object was sent, which must not exist.
    Post,
    /// A whole object was sent, whose uid is a precondition.
    Put,
    /// The current object was patched.
    Patch,
    /// A configuration was applied, with its managed fields already updated.
    Apply,
}

/// The result of a write.
#[derive(Debug)]
pub(super) struct WriteResult {
    /// The object as it is now, or its last state if it was removed.
    pub(super) object: Value,
    /// Whether the object was created.
    pub(super) is_new: bool,
    /// The stored object, if it was written.
    pub(super) stored: Option<Arc<Object>>,
}

impl Rest {
    /// Executes a PUT of an object, or of a subresource with the shape of the object.
    pub(crate) fn update(&self, request: &Request, part: Part<'_>) -> Result<ApiResponse, ApiError> {
        let options =
            WriteOptions::read(&request.parameters, WriteKind::Update, request.user_agent.as_deref())?;
        let read = || {
            decode::body(
                request.content_type.as_deref(),
                &request.body,
                &request.kind,
                &request.kinds,
                options.field_validation,
            )
            .and_then(|mut decoded| {
                ensure_namespace(&mut decoded.object, &request.kind, &request.namespace)?;
                check_name(&decoded.object, &request.name)?;
                Ok(decoded)
            })
        };
        let decoded = read()?;
        request.cancellation.check()?;
        let mut warnings = decoded.warnings;
        let mut object = Some(decoded.object);
        let is_creator = part == Part::Main && request.kind.strategy.settings().creates_on_update;
        let updated = self.change(request, &options, part, WriteSource::Put, &mut warnings, |current| {
            if current.is_none() && !is_creator {
                return Err(errors::not_found(&request.kind, &request.name));
            }
            // Conflicts are rare, so decoding the body again is cheaper than always copying it.
            let object = object.take().map_or_else(|| read().map(|decoded| decoded.object), Ok)?;
            if let Some(current) = current {
                check_uid(request, &object, meta::text(current, "uid"))?;
            } else {
                check_uid(request, &object, "")?;
            }
            Ok(object)
        });
        let updated = with_request_warnings(updated, &warnings)?;
        Ok(self.represent_written(request, updated)?.with_warnings(warnings))
    }

    /// Replaces the current object by the result of `produce`, again after each conflict. If no object exists, the result of
    /// `produce` without an object is created.
    pub(super) fn change(
        &self,
        request: &Request,
        options: &WriteOptions,
        part: Part<'_>,
        source: WriteSource,
        warnings: &mut Vec<String>,
        mut produce: impl FnMut(Option<&Value>) -> Result<Value, ApiError>,
    ) -> Result<WriteResult, ApiError> {
        let (table, key) = (request.table(), request.key());
        for _ in 0..ATTEMPTS {
            let Some(current) = self.store.get(&table, &key) else {
                let object = produce(None)?;
                match self.create_object(request, options, source, object, warnings) {
                    Ok(created) => return Ok(created),
                    // Another client created the object first, so it is updated.
                    Err(error)
                        if error.reason == "AlreadyExists" && self.store.get(&table, &key).is_some() =>
                    {
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            };
            request.cancellation.check()?;
            let old = request.served().object(&current);
            let new = produce(Some(&old))?;
            request.cancellation.check()?;
            if let Some(written) =
                self.replace(request, options, part, source, &current, &old, new, warnings)?
            {
                return Ok(written);
            }
        }
        Err(errors::modified(&request.kind, &request.name))
    }

    /// Updates the managed fields for the changes in `new`.
    pub(super) fn track(
        &self,
        request: &Request,
        options: &WriteOptions,
        part: Part<'_>,
        old: Option<&Value>,
        new: &mut Value,
    ) {
        let versions = ServedVersions::of(request);
        let subject = WriteTarget::of(&request.kind, part, &versions);
        let manager = Manager { name: &options.manager, now: self.timestamp() };
        apply::track_update(old, new, &subject, &manager);
    }

    /// Replaces `old` by `new`. Returns none if `old` was no longer current.
    #[expect(clippy::too_many_arguments, reason = "a write needs all of its inputs in one function")]
    fn replace(
        &self,
        request: &Request,
        options: &WriteOptions,
        part: Part<'_>,
        source: WriteSource,
        current: &Object,
        old: &Value,
        mut new: Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<WriteResult>, ApiError> {
        let not_written = |object| Some(WriteResult { object, is_new: false, stored: None });
        let kind = &request.kind;
        let strategy = &kind.strategy;
        check_version(request, &new, current.version)?;
        write_spec(&mut new, &kind.ty);
        if source == WriteSource::Apply {
            strategy.set_defaults_of_applied(&mut new);
        } else {
            strategy.set_defaults(&mut new);
        }
        strategy.set_timed_defaults(&mut new, &|| meta::timestamp(self.now()));
        keep_system_fields(&mut new, old)?;
        write_empty(&mut new, &kind.ty);
        if source != WriteSource::Apply {
            self.track(request, options, part, Some(old), &mut new);
        }
        strategy.prepare_for_update(part, &mut new, old);
        let timestamp = meta::timestamp(self.now());
        let context = WriteContext { now: &timestamp, user: &request.requester.user };
        strategy.set_request_fields(part, &mut new, Some(old), &context);
        write_empty(&mut new, &kind.ty);
        meta::drop_empty(meta::metadata(&mut new)?);
        let wrong = strategy.validate_update(part, &new, old);
        if !wrong.is_empty() {
            return Err(errors::invalid(kind, &request.name, &wrong));
        }
        request.cancellation.check()?;
        let allocation = self.allocate(request, &mut new, Some(old))?;
        let subresource = match part {
            Part::Main => "",
            Part::Subresource(name) => name,
        };
        let verb = if source == WriteSource::Put { "update" } else { "patch" };
        content::check(
            &request.requester,
            &ContentWrite { verb, subresource, object: &new, old: Some(old) },
        )?;
        let mut new = request.served().as_stored(new);
        add_warnings(warnings, strategy.warnings(&new, Some(old)));
        meta::metadata(&mut new)?.insert("resourceVersion".into(), current.version.to_string().into());
        apply::keep_times(old, &mut new);
        if new == *old {
            return Ok(not_written(new));
        }
        let table = request.table();
        let now = self.now();
        if can_be_removed(&new) {
            if options.is_dry_run || self.remove(request, old, current.version).is_some() {
                return Ok(not_written(new));
            }
            return Ok(None);
        }
        if options.is_dry_run {
            return Ok(not_written(new));
        }
        let content = request.served().content(&new)?;
        let Ok(stored) = self.store.put(&table, content, Precondition::Version(current.version), now) else {
            return Ok(None);
        };
        allocation.keep();
        self.record(kind, &new, Some(old));
        self.object_written(kind, &stored);
        meta::metadata(&mut new)?.insert("resourceVersion".into(), stored.version.to_string().into());
        Ok(Some(WriteResult { object: new, is_new: false, stored: Some(stored) }))
    }
}

/// Checks that the name in the object is that of the path.
pub(super) fn check_name(object: &Value, name: &str) -> Result<(), ApiError> {
    let given = meta::text(object, "name");
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

fn check_version(request: &Request, new: &Value, current: u64) -> Result<(), ApiError> {
    let kind = &request.kind;
    match meta::sent_version(new)? {
        0 if !kind.strategy.settings().takes_unconditional_update => {
            let wrong = FieldError::new(
                FieldErrorKind::Invalid,
                "metadata.resourceVersion",
                Some(0.into()),
                "must be specified for an update",
            );
            Err(errors::invalid_as(&kind.plural, &kind.gvk.group, &request.name, &[wrong]))
        }
        0 => Ok(()),
        version if version == current => Ok(()),
        _ => Err(errors::modified(kind, &request.name)),
    }
}

/// Checks that the uid of an object is `current`, the uid of the stored object (empty if none is stored).
fn check_uid(request: &Request, new: &Value, current: &str) -> Result<(), ApiError> {
    let given = meta::text(new, "uid");
    if given.is_empty() || given == current {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {current}");
    Err(errors::conflict(&request.kind, &request.name, &why))
}

/// Restores the fields that a client cannot change.
fn keep_system_fields(new: &mut Value, old: &Value) -> Result<(), ApiError> {
    let metadata = meta::metadata(new)?;
    let old = old.get("metadata");
    let was = |member: &str| old.and_then(|old| old.get(member));
    for member in ["creationTimestamp", "deletionTimestamp", "generation", "selfLink"] {
        match was(member) {
            // Most clients send the values that they read.
            value if value == metadata.get(member) => {}
            Some(value) => _ = metadata.insert(member.into(), value.clone()),
            None => _ = metadata.remove(member),
        }
    }
    // A grace period that was sent is compared with the current one.
    if metadata.get("deletionGracePeriodSeconds").is_none_or(Value::is_null)
        && let Some(grace) = was("deletionGracePeriodSeconds")
    {
        metadata.insert("deletionGracePeriodSeconds".into(), grace.clone());
    }
    if metadata.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty()
        && let Some(uid) = was("uid")
    {
        metadata.insert("uid".into(), uid.clone());
    }
    Ok(())
}

/// Returns whether an object that is being deleted has no finalizers and no grace period left.
pub(super) fn can_be_removed(object: &Value) -> bool {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    meta::is_being_deleted(object) && grace == 0 && !meta::has_finalizers(object)
}
