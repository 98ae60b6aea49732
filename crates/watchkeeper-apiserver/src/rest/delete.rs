//! Delete, and delete of a collection.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ATTEMPTS, Answer, ListBody, Payload, Request, Rest,
    definitions::is_definition,
    errors, meta,
    options::{ListOptions, wrong_dry_run},
    read,
    represent::Representer,
    update::is_done,
};
use crate::{
    crd, decode,
    field::{FieldError, FieldErrorKind},
    kinds::Kind,
    status::ApiError,
    storage::Expected,
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Namespaces that nobody may delete.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background \
                           to remove them or set propagationPolicy=Orphan to suppress this warning";

/// What becomes of what an object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    Orphan,
    Background,
    Foreground,
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

/// What became of an object.
#[derive(Debug)]
pub(super) struct Deleted {
    /// As it is now, or was when it went away.
    object: Value,
    /// Nothing holds it any more.
    is_gone: bool,
}

impl Rest {
    /// DELETE of an object.
    pub(crate) fn delete(&self, request: &Request) -> Result<Answer, ApiError> {
        let options = DeleteOptions::read(request)?;
        let is_namespace = request.kind.gvk.kind == "Namespace" && request.kind.gvk.group.is_empty();
        if is_namespace && IMMORTAL_NAMESPACES.contains(&request.name.as_str()) {
            return Err(errors::forbidden(&request.kind, &request.name, "this namespace may not be deleted"));
        }
        let warnings = options.warnings(&request.kind);
        let deleted = self.delete_object(request, &options);
        let deleted = deleted.map_err(|error| error.with_warnings(warnings.iter().cloned()))?;
        let waits = !deleted.is_gone && options.orphans_dependents == Some(false);
        let code = if waits { 202 } else { 200 };
        if deleted.is_gone && !request.kind.strategy.rules().delete_returns_object {
            return Ok(Answer::value(code, success(request, &deleted.object)).with_warnings(warnings));
        }
        Ok(self.show(request, code, deleted.object)?.with_warnings(warnings))
    }

    /// DELETE of a collection: answers what was there.
    pub(crate) async fn delete_collection(&self, request: &Request) -> Result<Answer, ApiError> {
        let options = DeleteOptions::read(request)?;
        let mut list = ListOptions::read(&request.parameters, false)?;
        read::name_fields(&request.kind, &mut list)?;
        read::check_form(&request.form, &request.kind, true)?;
        let (page, token) = self.page(request, &list).await?;
        for object in &page.objects {
            request.budget.check()?;
            let one = request.about(&object.content.namespace, &object.content.name);
            match self.delete_object(&one, &options) {
                // Someone else was faster.
                Err(error) if error.code == 404 => {}
                other => {
                    other?;
                }
            }
        }
        let representer = Representer::new(request.served(), request.form.clone(), self.now());
        let metadata = read::list_metadata(&page, token, request, list.selector.is_empty());
        let list = Payload::List(ListBody::new(representer, page.objects, metadata));
        Ok(Answer::new(200, list).with_warnings(options.warnings(&request.kind)))
    }

    /// Takes an object out of the store; whether it was still of this version.
    pub(super) fn remove(&self, request: &Request, object: &Value, version: u64) -> bool {
        let is_gone = self.store.delete(&request.table(), &request.key(), version, self.now()).is_ok();
        if is_gone {
            self.forget(request, object);
            self.after_change(&request.kind);
        }
        is_gone
    }

    pub(super) fn delete_object(
        &self,
        request: &Request,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let table = request.table();
        for _ in 0..ATTEMPTS {
            let current = self.current(request)?;
            let old = request.served().object(&current);
            options.check_preconditions(request, &old)?;
            let new = self.marked(request, options, &old)?;
            if is_done(&new) {
                if options.is_dry_run || self.remove(request, &old, current.version) {
                    return Ok(Deleted { object: new, is_gone: true });
                }
                continue;
            }
            if new == old || options.is_dry_run {
                return Ok(Deleted { object: new, is_gone: false });
            }
            let content = request.served().content(&new)?;
            if let Ok(stored) =
                self.store.put(&table, content, Expected::Version(current.version), self.now())
            {
                let mut object = new;
                meta::metadata(&mut object)?
                    .insert("resourceVersion".into(), stored.version.to_string().into());
                self.after_change(&request.kind);
                return Ok(Deleted { object, is_gone: false });
            }
        }
        Err(errors::modified(&request.kind, &request.name))
    }

    /// The object with the marks of its deletion: when, for how long it may go on, and what it waits for.
    fn marked(&self, request: &Request, options: &DeleteOptions, old: &Value) -> Result<Value, ApiError> {
        let mut new = old.clone();
        let kind = &request.kind;
        let was_marked = meta::is_being_deleted(old);
        let counts = old.pointer("/metadata/generation").and_then(Value::as_i64).filter(|count| *count > 0);
        let is_namespace = kind.gvk.kind == "Namespace" && kind.gvk.group.is_empty();
        options.set_finalizers(kind, &mut new)?;
        let default_grace = kind.strategy.grace_period_seconds(old).map(i64::from);
        let grace = match (default_grace, options.grace_period_seconds) {
            (None | Some(0), _) => 0,
            (Some(_), Some(asked)) => asked.max(0),
            (Some(default), None) => default,
        };
        if is_definition(kind) {
            crd::begin_deletion(&mut new, &self.in_seconds(0));
            return Ok(new);
        }
        let metadata = meta::metadata(&mut new)?;
        if was_marked {
            let left = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
            // The time left can be made shorter, not longer.
            if default_grace.is_some() && grace < left && options.grace_period_seconds.is_some() {
                metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
                metadata.insert("deletionTimestamp".into(), self.in_seconds(grace).into());
            }
            return Ok(new);
        }
        metadata.insert("deletionTimestamp".into(), self.in_seconds(grace).into());
        if is_namespace {
            new["status"]["phase"] = "Terminating".into();
            return Ok(new);
        }
        metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        if let Some(counts) = counts {
            metadata.insert("generation".into(), (counts + 1).into());
        }
        Ok(new)
    }

    fn in_seconds(&self, seconds: i64) -> String {
        meta::timestamp(self.now() + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }
}

impl DeleteOptions {
    /// The options inside an eviction; a dry run if the request is one.
    pub(super) fn of_eviction(options: &Value, is_dry_run: bool) -> Result<Self, ApiError> {
        let mut read = Self::check(options)?;
        read.is_dry_run |= is_dry_run;
        Ok(read)
    }

    /// Whether nothing is to be stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Returns the warnings about what these options leave behind.
    fn warnings(&self, kind: &Kind) -> Vec<String> {
        let is_silent = self.propagation.is_none() && is_job(kind);
        is_silent.then(|| JOB_WARNING.to_owned()).into_iter().collect()
    }

    /// Reads and checks the options, from the body if there is one, else from the query.
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
        wrong.extend(wrong_dry_run(dry_run.iter().filter_map(Value::as_str)));
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

    fn check_preconditions(&self, request: &Request, current: &Value) -> Result<(), ApiError> {
        let uid = meta::text(current, "uid");
        if let Some(asked) = self.uid.as_deref().filter(|asked| *asked != uid) {
            let why = format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            );
            return Err(errors::precondition(&request.kind, &request.name, &why));
        }
        let version = meta::text(current, "resourceVersion");
        if let Some(asked) = self.version.as_deref().filter(|asked| *asked != version) {
            let why = format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            );
            return Err(errors::precondition(&request.kind, &request.name, &why));
        }
        Ok(())
    }

    /// The finalizers that make the garbage collector do what is asked for, or else what the object or its kind asks for.
    fn set_finalizers(&self, kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
        let metadata = meta::metadata(object)?;
        let known: Vec<Value> =
            metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let wanted = match self.propagation {
            Some(Propagation::Orphan) => Some(ORPHAN),
            Some(Propagation::Foreground) => Some(FOREGROUND),
            Some(Propagation::Background) => None,
            None if known.iter().any(|name| name == ORPHAN) => Some(ORPHAN),
            None if known.iter().any(|name| name == FOREGROUND) => Some(FOREGROUND),
            None => orphans_by_default(kind).then_some(ORPHAN),
        };
        let mut finalizers: Vec<Value> =
            known.iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).cloned().collect();
        finalizers.extend(wanted.map(Value::from));
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

/// Two old kinds leave behind what they own unless they are told otherwise.
fn orphans_by_default(kind: &Kind) -> bool {
    is_job(kind) || kind.gvk.group.is_empty() && kind.gvk.kind == "ReplicationController"
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
