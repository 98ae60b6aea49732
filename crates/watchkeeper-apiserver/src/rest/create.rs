//! The create verb.

use serde_json::Value;

use super::{
    ApiResponse, Request, Rest, add_warnings, errors, key_of, meta,
    options::{WriteKind, WriteOptions},
    table_of,
    update::{WriteResult, WriteSource},
    with_request_warnings,
};
use crate::{
    auth::content::{self, ContentWrite},
    decode,
    kinds::Kind,
    schema::{write_empty, write_spec},
    status::{ApiError, Cause, Details},
    storage::Precondition,
    strategy::{Part, WriteContext},
};

/// The number of attempts to generate a name that is not in use.
const NAME_ATTEMPTS: usize = 8;

impl Rest {
    /// Executes a POST to a collection.
    pub(crate) fn create(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        let options =
            WriteOptions::read(&request.parameters, WriteKind::Create, request.user_agent.as_deref())?;
        let decoded = decode::body(
            request.content_type.as_deref(),
            &request.body,
            &request.kind,
            &request.kinds,
            options.field_validation,
        )?;
        let mut warnings = decoded.warnings;
        request.cancellation.check()?;
        // A binding is not stored; its effect is on the pod.
        if request.kind.gvk.kind == "Binding" && request.kind.gvk.group.is_empty() {
            let bound = self.create_binding(request, &options, &decoded.object);
            return Ok(with_request_warnings(bound, &warnings)?.with_warnings(warnings));
        }
        let created = self.create_object(request, &options, WriteSource::Post, decoded.object, &mut warnings);
        let created = with_request_warnings(created, &warnings)?;
        Ok(self.represent_written(request, created)?.with_warnings(warnings))
    }

    /// Creates an object that was decoded from a body, by POST, PUT or apply.
    pub(super) fn create_object(
        &self,
        request: &Request,
        options: &WriteOptions,
        source: WriteSource,
        mut object: Value,
        warnings: &mut Vec<String>,
    ) -> Result<WriteResult, ApiError> {
        let kind = &request.kind;
        ensure_namespace(&mut object, kind, &request.namespace)?;
        let sent_version = meta::text(&object, "resourceVersion").to_owned();
        let metadata = meta::metadata(&mut object)?;
        for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            metadata.remove(member);
        }
        write_spec(&mut object, &kind.ty);
        if source == WriteSource::Apply {
            kind.strategy.set_defaults_of_applied(&mut object);
        } else {
            kind.strategy.set_defaults(&mut object);
        }
        kind.strategy.set_timed_defaults(&mut object, &|| meta::timestamp(self.now()));
        write_empty(&mut object, &kind.ty);
        if source != WriteSource::Apply {
            self.track(request, options, Part::Main, None, &mut object);
        }
        let strategy = &kind.strategy;
        let prefix = meta::text(&object, "generateName").to_owned();
        let is_named = !meta::text(&object, "name").is_empty();
        let given_name = meta::text(&object, "name").to_owned();
        self.check_definition(request)?;
        self.check_namespace(request, &given_name)?;
        // PUT and apply compare the version with the stored one, so it must be a number; POST never parses it.
        if source != WriteSource::Post && !sent_version.is_empty() && sent_version.parse::<u64>().is_err() {
            return Err(errors::unreadable_version(&sent_version));
        }

        let mut template = object;
        for attempt in 1.. {
            // Only a generated name can be replaced by another one on a collision.
            let mut object = if is_named { std::mem::take(&mut template) } else { template.clone() };
            self.set_system_fields(&mut object)?;
            if !is_named && !prefix.is_empty() {
                let name = meta::generated_name(&prefix, &mut self.random.lock());
                meta::metadata(&mut object)?.insert("name".into(), name.into());
            }
            strategy.prepare_for_create(&mut object);
            let now = meta::timestamp(self.now());
            let context = WriteContext { now: &now, user: &request.requester.user };
            strategy.set_request_fields(Part::Main, &mut object, None, &context);
            write_empty(&mut object, &kind.ty);
            let wrong = strategy.validate_create(&object);
            let name = meta::text(&object, "name").to_owned();
            if !wrong.is_empty() {
                return Err(errors::invalid(kind, &name, &wrong));
            }
            request.cancellation.check()?;
            let allocation = self.allocate(request, &mut object, None)?;
            if source != WriteSource::Post {
                content::check_create(&request.requester, &request.create_attributes())?;
            }
            let write = ContentWrite { verb: "create", subresource: "", object: &object, old: None };
            content::check(&request.requester, &write)?;
            let mut object = request.served().as_stored(object);
            add_warnings(warnings, strategy.warnings(&object, None));
            let key = key_of(&request.namespace, &name);
            if options.is_dry_run {
                if let Some(current) = self.store.get(&table_of(kind), &key) {
                    let current = request.served().object(&current);
                    return Err(errors::already_exists(kind, &name, meta::is_being_deleted(&current)));
                }
                // A dry run stores nothing, so the object keeps the version that was sent.
                if !sent_version.is_empty() {
                    meta::metadata(&mut object)?.insert("resourceVersion".into(), sent_version.into());
                }
                return Ok(WriteResult { object, is_new: true, stored: None });
            }
            // The storage layer rejects versions, so all other errors are reported first.
            if source == WriteSource::Post && sent_version.parse::<u64>().is_ok_and(|version| version != 0) {
                let message = "resourceVersion should not be set on objects to be created";
                return Err(ApiError::new(500, "", message));
            }
            let content = request.served().content(&object)?;
            match self.store.put(&table_of(kind), content, Precondition::Absent, self.now()) {
                Ok(stored) => {
                    allocation.keep();
                    self.record(kind, &object, None);
                    self.object_written(kind, &stored);
                    meta::metadata(&mut object)?
                        .insert("resourceVersion".into(), stored.version.to_string().into());
                    return Ok(WriteResult { object, is_new: true, stored: Some(stored) });
                }
                Err(_) if !is_named && attempt < NAME_ATTEMPTS => {}
                Err(conflict) => {
                    let is_being_deleted = conflict
                        .current
                        .is_some_and(|current| meta::is_being_deleted(&request.served().object(&current)));
                    return Err(errors::already_exists(kind, &name, is_being_deleted));
                }
            }
        }
        Err(ApiError::internal("all generated names are in use; retry the request"))
    }

    /// Sets the fields of a new object that only the server may set.
    fn set_system_fields(&self, object: &mut Value) -> Result<(), ApiError> {
        let metadata = meta::metadata(object)?;
        metadata.insert("uid".into(), meta::uid(&mut self.random.lock()).into());
        metadata.insert("creationTimestamp".into(), meta::timestamp(self.now()).into());
        meta::drop_empty(metadata);
        Ok(())
    }

    /// Checks that the namespace of a new object exists and is not being deleted.
    fn check_namespace(&self, request: &Request, name: &str) -> Result<(), ApiError> {
        if request.namespace.is_empty() {
            return Ok(());
        }
        let namespace = &request.namespace;
        let Some(current) = self.store.get("namespaces", namespace) else {
            let details = Details {
                name: Some(namespace.clone()),
                kind: Some("namespaces".into()),
                ..Details::default()
            };
            let message = format!("namespaces {namespace:?} not found");
            return Err(ApiError::new(404, "NotFound", message).with_details(details));
        };
        if !meta::is_being_deleted(&current.to_value("v1", "Namespace")) {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = errors::forbidden(&request.kind, name, &why);
        if let Some(details) = &mut error.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {namespace} is being terminated"),
                field: Some("metadata.namespace".into()),
            });
        }
        Err(error)
    }
}

/// Checks that the namespace of an object is that of the path, and sets it if it is absent.
pub(super) fn ensure_namespace(object: &mut Value, kind: &Kind, namespace: &str) -> Result<(), ApiError> {
    let given = meta::text(object, "namespace");
    if kind.is_namespaced {
        if !given.is_empty() && given != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        meta::metadata(object)?.insert("namespace".into(), namespace.into());
    } else if !given.is_empty() {
        meta::metadata(object)?.remove("namespace");
    }
    Ok(())
}
