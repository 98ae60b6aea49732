//! The delete and deletecollection verbs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ATTEMPTS, ApiResponse, ListBody, Payload, Request, Rest,
    definitions::is_definition,
    errors, meta,
    options::{ListOptions, invalid_dry_run},
    read,
    represent::Representer,
    update::can_be_removed,
    with_request_warnings,
};
use crate::{
    crd, decode,
    field::{FieldError, FieldErrorKind},
    kinds::Kind,
    status::ApiError,
    storage::Precondition,
};

/// The finalizer that keeps an owner until its blocking dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that keeps an owner until no dependent refers to it.
pub(crate) const ORPHAN: &str = "orphan";
/// The namespaces that cannot be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
                           to remove them or set propagationPolicy=Orphan to suppress this warning";

/// The propagation policy of a deletion: what happens to the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents are deleted after the owner.
    Background,
    /// Dependents are deleted before the owner.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(super) struct DeleteOptions {
    is_dry_run: bool,
    grace_period_seconds: Option<i64>,
    propagation: Option<Propagation>,
    orphans_dependents: Option<bool>,
    uid: Option<String>,
    version: Option<String>,
}

/// The result of a deletion.
#[derive(Debug)]
pub(super) struct Deleted {
    /// The object as it is now, or its last state if it was removed.
    object: Value,
    /// Whether the object was removed.
    is_removed: bool,
}

impl Rest {
    /// Executes a DELETE of an object.
    pub(crate) fn delete(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        let options = DeleteOptions::read(request)?;
        let is_namespace = request.kind.gvk.kind == "Namespace" && request.kind.gvk.group.is_empty();
        if is_namespace && IMMORTAL_NAMESPACES.contains(&request.name.as_str()) {
            return Err(errors::forbidden(&request.kind, &request.name, "this namespace may not be deleted"));
        }
        let warnings = options.warnings(&request.kind);
        let deleted = with_request_warnings(self.delete_object(request, &options), &warnings)?;
        let waits = !deleted.is_removed && options.orphans_dependents == Some(false);
        let code = if waits { 202 } else { 200 };
        if deleted.is_removed && !request.kind.strategy.settings().delete_returns_object {
            return Ok(ApiResponse::value(code, success(request, &deleted.object)).with_warnings(warnings));
        }
        Ok(self.represent(request, code, deleted.object)?.with_warnings(warnings))
    }

    /// Executes a DELETE of a collection. Returns the objects that existed.
    pub(crate) async fn delete_collection(&self, request: &Request) -> Result<ApiResponse, ApiError> {
        let options = DeleteOptions::read(request)?;
        let mut list = ListOptions::read(&request.parameters, false)?;
        read::name_fields(&request.kind, &mut list)?;
        read::check_form(&request.form, &request.kind, true)?;
        let (page, token) = self.page(request, &list).await?;
        for object in &page.objects {
            request.cancellation.check()?;
            let one = request.for_object(&object.content.namespace, &object.content.name);
            match self.delete_object(&one, &options) {
                // Another client deleted the object concurrently.
                Err(error) if error.code == 404 => {}
                other => {
                    other?;
                }
            }
        }
        let representer = Representer::new(request.served(), request.form.clone(), self.now());
        let metadata = read::list_metadata(&page, token, request, list.selector.is_empty());
        let list = ListBody::new(representer, page.objects, metadata);
        Ok(ApiResponse::new(200, Payload::List(list)).with_warnings(options.warnings(&request.kind)))
    }

    /// Removes an object from the store. Returns the version of the deletion, or none if the object has changed.
    pub(super) fn remove(&self, request: &Request, object: &Value, version: u64) -> Option<u64> {
        let removed = self.store.delete(&request.table(), &request.key(), version, self.now()).ok()?;
        self.forget(request, object);
        self.object_changed(&request.kind);
        Some(removed)
    }

    /// Deletes an object, or marks it as being deleted if finalizers or a grace period hold it.
    pub(super) fn delete_object(
        &self,
        request: &Request,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let mut options = options.clone();
        let mut marked = None;
        for _ in 0..ATTEMPTS {
            let Some(current) = self.store.get(&request.table(), &request.key()) else {
                // After the mark, another writer may remove the object first, which has the same result.
                return match marked {
                    Some(object) => Ok(Deleted { object, is_removed: true }),
                    None => Err(errors::not_found(&request.kind, &request.name)),
                };
            };
            let old = request.served().object(&current);
            options.check_preconditions(request, &old)?;
            let (new, is_kept) = match self.next_step(request, &options, &old)? {
                Step::Remove if options.is_dry_run => return Ok(Deleted { object: old, is_removed: true }),
                Step::Remove => {
                    let Some(version) = self.remove(request, &old, current.version) else { continue };
                    return Ok(Deleted { object: at_version(old, version)?, is_removed: true });
                }
                Step::Mark(new) if new == old => return Ok(Deleted { object: new, is_removed: false }),
                Step::Mark(new) => (new, true),
                Step::MarkAndRemove(new) => (new, false),
            };
            if options.is_dry_run {
                return Ok(Deleted { object: new, is_removed: !is_kept });
            }
            let content = request.served().content(&new)?;
            let expected = Precondition::Version(current.version);
            let Ok(stored) = self.store.put(&request.table(), content, expected, self.now()) else {
                continue;
            };
            self.object_changed(&request.kind);
            let object = at_version(new, stored.version)?;
            if is_kept {
                return Ok(Deleted { object, is_removed: false });
            }
            if let Some(version) = self.remove(request, &object, stored.version) {
                return Ok(Deleted { object: at_version(object, version)?, is_removed: true });
            }
            // The mark changed the version that the client named.
            options = options.after_mark(stored.version);
            marked = Some(object);
        }
        Err(errors::modified(&request.kind, &request.name))
    }

    /// Decides the effect of a DELETE on the stored object `old`.
    fn next_step(&self, request: &Request, options: &DeleteOptions, old: &Value) -> Result<Step, ApiError> {
        let kind = &request.kind;
        let is_namespace = kind.gvk.kind == "Namespace" && kind.gvk.group.is_empty();
        let mut new = old.clone();
        if is_namespace || is_definition(kind) {
            options.set_finalizers(kind, &mut new)?;
            if is_definition(kind) {
                crd::begin_deletion(&mut new, &self.timestamp_after(0));
            } else if !meta::is_being_deleted(old) {
                meta::metadata(&mut new)?.insert("deletionTimestamp".into(), self.timestamp_after(0).into());
                new["status"]["phase"] = "Terminating".into();
            }
            return Ok(if can_be_removed(&new) { Step::Remove } else { Step::Mark(new) });
        }
        let grace = match self.set_grace(kind, options, &mut new)? {
            Grace::Pending => return Ok(Step::Mark(old.clone())),
            Grace::Seconds(seconds) => Some(seconds),
            Grace::None => None,
        };
        if collects_garbage(kind) {
            options.set_finalizers(kind, &mut new)?;
        }
        Ok(match (grace, meta::has_finalizers(&new)) {
            (Some(0), false) => Step::MarkAndRemove(new),
            (Some(_), _) => Step::Mark(new),
            (None, true) => {
                self.mark_without_grace(&mut new)?;
                Step::Mark(new)
            }
            (None, false) => Step::Remove,
        })
    }

    /// Sets the deletionTimestamp and the grace period of an object whose kind has graceful deletion.
    fn set_grace(&self, kind: &Kind, options: &DeleteOptions, object: &mut Value) -> Result<Grace, ApiError> {
        // A negative period means the shortest graceful one.
        let at_least_one = |seconds: i64| if seconds < 0 { 1 } else { seconds };
        let requested = options.grace_period_seconds.map(at_least_one);
        let mut subject = object.clone();
        if let Some(requested) = requested {
            // The strategy decides whether the period applies: an unscheduled pod has none.
            subject["spec"]["terminationGracePeriodSeconds"] = requested.into();
        }
        let Some(seconds) = kind.strategy.grace_period_seconds(&subject).map(i64::from) else {
            return Ok(Grace::None);
        };
        let was_marked = meta::is_being_deleted(object);
        let marked_for: Option<jiff::Timestamp> = meta::text(object, "deletionTimestamp").parse().ok();
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        let metadata = meta::metadata(object)?;
        if !was_marked {
            metadata.insert("deletionTimestamp".into(), self.timestamp_after(seconds).into());
            metadata.insert("deletionGracePeriodSeconds".into(), seconds.into());
            if let Some(generation) = generation.filter(|generation| *generation > 0) {
                metadata.insert("generation".into(), (generation + 1).into());
            }
            return Ok(Grace::Seconds(seconds));
        }
        let left = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).map_or(0, at_least_one);
        if left == 0 {
            return Ok(Grace::None);
        }
        let Some(requested) = requested.filter(|requested| *requested < left) else {
            return Ok(Grace::Pending);
        };
        // The period counts from the first DELETE, and cannot end in the past.
        let now = self.timestamp();
        let ends = marked_for.map_or(now.as_second(), |marked| marked.as_second() - left + requested);
        let is_over = ends < now.as_second();
        let period = if is_over { requested.min(1) } else { requested };
        let ends = if is_over { now.as_second() } else { ends };
        metadata.insert("deletionTimestamp".into(), self.timestamp_after(ends - now.as_second()).into());
        metadata.insert("deletionGracePeriodSeconds".into(), period.into());
        Ok(Grace::Seconds(requested))
    }

    /// Marks an object without grace period that waits for its finalizers.
    fn mark_without_grace(&self, object: &mut Value) -> Result<(), ApiError> {
        let was_marked = meta::is_being_deleted(object);
        let marked_for: Option<jiff::Timestamp> = meta::text(object, "deletionTimestamp").parse().ok();
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        let metadata = meta::metadata(object)?;
        if !was_marked && let Some(generation) = generation.filter(|generation| *generation > 0) {
            metadata.insert("generation".into(), (generation + 1).into());
        }
        if marked_for.is_none_or(|marked_for| marked_for > self.timestamp()) {
            metadata.insert("deletionTimestamp".into(), self.timestamp_after(0).into());
        }
        metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
        Ok(())
    }

    fn timestamp_after(&self, seconds: i64) -> String {
        meta::timestamp(self.now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }
}

/// The effect of a DELETE on a stored object.
#[derive(Debug)]
enum Step {
    /// The object is stored with its deletion marks and remains.
    Mark(Value),
    /// The object is stored with its deletion marks, then removed.
    MarkAndRemove(Value),
    /// The object is removed unchanged.
    Remove,
}

/// The grace period of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grace {
    /// The kind has no graceful deletion, or the period of the object is over.
    None,
    /// An earlier DELETE is pending, and this one does not shorten it.
    Pending,
    /// The object may continue for this many seconds.
    Seconds(i64),
}

fn at_version(mut object: Value, version: u64) -> Result<Value, ApiError> {
    meta::metadata(&mut object)?.insert("resourceVersion".into(), version.to_string().into());
    Ok(object)
}

impl DeleteOptions {
    /// Parses the options in an eviction. A dry run if the request is one.
    pub(super) fn of_eviction(options: &Value, is_dry_run: bool) -> Result<Self, ApiError> {
        let mut read = Self::check(options)?;
        read.is_dry_run |= is_dry_run;
        Ok(read)
    }

    /// Returns whether nothing is stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Returns whether the options require a version of the object.
    pub(super) fn has_version(&self) -> bool {
        self.version.is_some()
    }

    /// Returns the options with `version` as the required version.
    pub(super) fn at_version(&self, version: u64) -> Self {
        Self { version: Some(version.to_string()), ..self.clone() }
    }

    /// Returns the options after the server itself wrote `version` of the object.
    pub(super) fn after_mark(&self, version: u64) -> Self {
        if self.has_version() { self.at_version(version) } else { self.clone() }
    }

    /// Returns the warnings about orphaned dependents.
    fn warnings(&self, kind: &Kind) -> Vec<String> {
        let orphans_silently = self.propagation.is_none() && is_job(kind);
        orphans_silently.then(|| JOB_WARNING.to_owned()).into_iter().collect()
    }

    /// Parses and checks the options, from the body if there is one, otherwise from the query.
    pub(super) fn read(request: &Request) -> Result<Self, ApiError> {
        let given = if request.body.iter().all(u8::is_ascii_whitespace) {
            from_query(request)?
        } else {
            decode::delete_options(request.content_type.as_deref(), &request.body)?
        };
        Self::check(&given)
    }

    fn check(given: &Value) -> Result<Self, ApiError> {
        let mut wrong = Vec::new();
        let text = |path: &str| given.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let dry_run = given.get("dryRun").and_then(Value::as_array).cloned().unwrap_or_default();
        let orphans_dependents = given.get("orphanDependents").and_then(Value::as_bool);
        let policy = text("/propagationPolicy");
        if orphans_dependents.is_some()
            && let Some(policy) = &policy
        {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let value = Some(policy.as_str().into());
            wrong.push(FieldError::new(FieldErrorKind::Invalid, "propagationPolicy", value, detail));
        }
        let propagation = match policy.as_deref() {
            None => orphans_dependents
                .map(|is_orphaned| if is_orphaned { Propagation::Orphan } else { Propagation::Background }),
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let detail = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let value = Some(other.into());
                wrong.push(FieldError::new(FieldErrorKind::NotSupported, "propagationPolicy", value, detail));
                None
            }
        };
        wrong.extend(invalid_dry_run(dry_run.iter().filter_map(Value::as_str)));
        if !wrong.is_empty() {
            return Err(errors::invalid_as("DeleteOptions", "meta.k8s.io", "", &wrong));
        }
        Ok(Self {
            is_dry_run: !dry_run.is_empty(),
            grace_period_seconds: given.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation,
            orphans_dependents,
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
        })
    }

    /// Checks that the object has the uid and the version that the options require.
    pub(super) fn check_preconditions(&self, request: &Request, current: &Value) -> Result<(), ApiError> {
        let uid = meta::text(current, "uid");
        if let Some(requested) = self.uid.as_deref().filter(|requested| *requested != uid) {
            let why = format!(
                "the UID in the precondition ({requested}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            );
            return Err(errors::precondition(&request.kind, &request.name, &why));
        }
        let version = meta::text(current, "resourceVersion");
        if let Some(requested) = self.version.as_deref().filter(|requested| *requested != version) {
            let why = format!(
                "the ResourceVersion in the precondition ({requested}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            );
            return Err(errors::precondition(&request.kind, &request.name, &why));
        }
        Ok(())
    }

    /// Sets the finalizers of the garbage collector for the requested propagation policy, or for the default of the object
    /// or its kind.
    fn set_finalizers(&self, kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
        let metadata = meta::metadata(object)?;
        let known: Vec<Value> =
            metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let finalizer = match self.propagation {
            Some(Propagation::Orphan) => Some(ORPHAN),
            Some(Propagation::Foreground) => Some(FOREGROUND),
            Some(Propagation::Background) => None,
            None if known.iter().any(|name| name == ORPHAN) => Some(ORPHAN),
            None if known.iter().any(|name| name == FOREGROUND) => Some(FOREGROUND),
            None => orphans_by_default(kind).then_some(ORPHAN),
        };
        let mut finalizers: Vec<Value> =
            known.iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).cloned().collect();
        finalizers.extend(finalizer.map(Value::from));
        if finalizers.len() == known.len() && finalizers.iter().all(|name| known.contains(name)) {
            return Ok(());
        }
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".into(), finalizers.into());
        }
        Ok(())
    }
}

fn is_job(kind: &Kind) -> bool {
    kind.gvk.group == "batch" && kind.gvk.kind == "Job"
}

/// Returns whether a kind orphans its dependents by default, as two old kinds do.
fn orphans_by_default(kind: &Kind) -> bool {
    is_job(kind) || kind.gvk.group.is_empty() && kind.gvk.kind == "ReplicationController"
}

/// Returns whether objects of this kind can have dependents. Events cannot.
fn collects_garbage(kind: &Kind) -> bool {
    !(kind.gvk.kind == "Event" && matches!(kind.gvk.group.as_str(), "" | "events.k8s.io"))
}

fn from_query(request: &Request) -> Result<Value, ApiError> {
    let parameters = &request.parameters;
    let mut given = json!({});
    if let Some(seconds) = parameters.number("gracePeriodSeconds")? {
        given["gracePeriodSeconds"] = seconds.into();
    }
    if let Some(orphans) = parameters.flag("orphanDependents") {
        given["orphanDependents"] = orphans.into();
    }
    if let Some(policy) = parameters.text("propagationPolicy") {
        given["propagationPolicy"] = policy.into();
    }
    let dry_run: Vec<&str> = parameters.all("dryRun").collect();
    if !dry_run.is_empty() {
        given["dryRun"] = dry_run.into();
    }
    Ok(given)
}

fn success(request: &Request, object: &Value) -> Value {
    let mut details =
        json!({"name": request.name, "kind": request.kind.plural, "uid": meta::text(object, "uid")});
    if !request.kind.gvk.group.is_empty() {
        details["group"] = request.kind.gvk.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
