//! An in-memory server for tests: objects in a map, with the rules that controllers depend on.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    garbage::{LiveReads, OwnerLookup, remove_finalizer},
    object::{Meta, ObjectRef, Owner, is_same_kind},
    objects::{Deletion, ListableKind, Objects, ServerEvent},
};
use crate::{
    kinds::GroupVersionKind,
    rest::{FOREGROUND, ORPHAN, Propagation},
    status::ApiError,
    strategy::Part,
};

/// An in-memory server. Events are kept in a list until a test delivers them.
#[derive(Debug)]
pub(crate) struct InMemoryServer {
    kinds: RefCell<Vec<ListableKind>>,
    objects: RefCell<BTreeMap<ObjectRef, Value>>,
    changes: RefCell<Vec<ServerEvent>>,
    version: Cell<u64>,
    date: Cell<SystemTime>,
    /// Notified on every change.
    pub(crate) changed: Notify,
    /// The number of next writes that fail with a conflict.
    pub(crate) conflicts: Cell<u32>,
    /// The name of objects whose deletion is rejected.
    pub(crate) refused: Cell<Option<&'static str>>,
}

impl InMemoryServer {
    /// Creates a server with some built-in kinds and no objects.
    pub(crate) fn new() -> Self {
        let world = Self {
            kinds: RefCell::default(),
            objects: RefCell::default(),
            changes: RefCell::default(),
            version: Cell::new(1),
            date: Cell::new(SystemTime::UNIX_EPOCH),
            changed: Notify::new(),
            conflicts: Cell::default(),
            refused: Cell::default(),
        };
        for (kind, plural, is_namespaced) in [
            ("ConfigMap", "configmaps", true),
            ("Namespace", "namespaces", false),
            ("Node", "nodes", false),
            ("Pod", "pods", true),
            ("ServiceAccount", "serviceaccounts", true),
        ] {
            world.serve("", "v1", kind, plural, is_namespaced);
        }
        world.serve(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        );
        world.serve("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false);
        world.changes.borrow_mut().clear();
        world
    }

    /// Adds a served kind.
    pub(crate) fn serve(&self, group: &str, version: &str, kind: &str, plural: &str, is_namespaced: bool) {
        let kind = Arc::new(GroupVersionKind::new(group, version, kind));
        self.kinds.borrow_mut().push(ListableKind { kind, plural: plural.into(), is_namespaced });
        self.changes.borrow_mut().push(ServerEvent::Kinds);
    }

    /// Removes a served kind.
    pub(crate) fn stop_serving(&self, kind: &str) {
        self.kinds.borrow_mut().retain(|served| served.kind.kind != kind);
        self.changes.borrow_mut().push(ServerEvent::Kinds);
    }

    /// Returns the changes since the last call.
    pub(crate) fn drain_events(&self) -> Vec<ServerEvent> {
        self.changes.take()
    }

    /// Advances the date.
    pub(crate) fn advance(&self, duration: Duration) {
        self.date.set(self.date.get() + duration);
    }

    /// Returns all stored objects.
    pub(crate) fn all(&self) -> Vec<Meta> {
        self.objects
            .borrow()
            .iter()
            .filter_map(|(object_ref, object)| Meta::of(&object_ref.kind, object))
            .collect()
    }

    /// Creates an object with this metadata and content. Returns its uid.
    pub(crate) fn put(&self, object_ref: &ObjectRef, object: Value) -> Arc<str> {
        self.create(object_ref, object).unwrap();
        self.object(object_ref).unwrap().uid
    }

    /// Deletes an object as a user.
    pub(crate) fn user_deletes(&self, object_ref: &ObjectRef, propagation: Propagation) {
        if let Some(object) = self.object(object_ref) {
            let deletion =
                Deletion { uid: object.uid, resource_version: None, propagation, is_immediate: false };
            self.delete(object_ref, &deletion).unwrap();
        }
    }

    /// Changes an object as a user.
    pub(crate) fn user_edits(&self, object_ref: &ObjectRef, edit: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.read(object_ref) {
            edit(&mut object);
            self.replace(object_ref, Part::Main, object).unwrap();
        }
    }

    fn next_version(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }

    /// Stores `object`, or removes it if it is being deleted and no finalizer is left.
    fn commit(&self, object_ref: &ObjectRef, mut object: Value) {
        object["metadata"]["resourceVersion"] = self.next_version().to_string().into();
        let meta = Meta::of(&object_ref.kind, &object).unwrap();
        let is_kept = !meta.finalizers.is_empty()
            || object.pointer("/spec/finalizers").is_some_and(|finalizers| *finalizers != json!([]))
            || object.pointer("/metadata/deletionGracePeriodSeconds").is_some_and(|seconds| *seconds != 0);
        if meta.is_being_deleted() && !is_kept {
            self.objects.borrow_mut().remove(object_ref);
            self.changes.borrow_mut().push(ServerEvent::Deleted(meta));
        } else {
            self.objects.borrow_mut().insert(object_ref.clone(), object);
            self.changes.borrow_mut().push(ServerEvent::Observed(meta));
        }
        self.changed.notify_one();
    }

    fn served(&self, group: &str, kind: &str) -> Option<ListableKind> {
        self.kinds
            .borrow()
            .iter()
            .find(|served| served.kind.group == group && served.kind.kind == kind)
            .cloned()
    }

    fn check_conflict(&self) -> Result<(), ApiError> {
        let left = self.conflicts.get();
        if left > 0 {
            self.conflicts.set(left - 1);
            return Err(ApiError::new(409, "Conflict", "something else was written first"));
        }
        Ok(())
    }
}

impl LiveReads for InMemoryServer {
    fn object(&self, object_ref: &ObjectRef) -> Option<Meta> {
        self.served(&object_ref.kind.group, &object_ref.kind.kind)?;
        self.objects.borrow().get(object_ref).and_then(|object| Meta::of(&object_ref.kind, object))
    }

    fn owner(&self, owner: &Owner, namespace: &str) -> OwnerLookup {
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let Some(served) = self.served(group, &owner.kind).filter(|served| served.kind.version == version)
        else {
            return OwnerLookup::NotServed;
        };
        if served.is_namespaced && namespace.is_empty() {
            return OwnerLookup::InvalidScope;
        }
        let namespace = if served.is_namespaced { namespace } else { "" };
        let object_ref =
            ObjectRef { kind: served.kind, namespace: namespace.into(), name: owner.name.clone() };
        self.object(&object_ref).map_or(OwnerLookup::Absent, OwnerLookup::Found)
    }
}

impl Objects for InMemoryServer {
    fn kinds(&self) -> Vec<ListableKind> {
        self.kinds.borrow().clone()
    }

    fn list(&self, kind: &Arc<GroupVersionKind>, namespace: Option<&str>) -> Vec<Meta> {
        let is_match = |meta: &Meta| {
            is_same_kind(&meta.object_ref.kind, kind)
                && namespace.is_none_or(|name| *meta.object_ref.namespace == *name)
        };
        self.all().into_iter().filter(is_match).collect()
    }

    fn count(&self, kind: &Arc<GroupVersionKind>) -> usize {
        self.list(kind, None).len()
    }

    fn read(&self, object_ref: &ObjectRef) -> Option<Value> {
        self.objects.borrow().get(object_ref).cloned()
    }

    fn create(&self, object_ref: &ObjectRef, mut object: Value) -> Result<(), ApiError> {
        self.check_conflict()?;
        if self.objects.borrow().contains_key(object_ref) {
            return Err(ApiError::new(409, "AlreadyExists", "already exists"));
        }
        object["metadata"]["name"] = (*object_ref.name).into();
        object["metadata"]["namespace"] = (*object_ref.namespace).into();
        object["metadata"]["uid"] = format!("u{:05}", self.next_version()).into();
        if object_ref.is_of("", "Namespace") {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"]["phase"] = "Active".into();
        }
        self.commit(object_ref, object);
        Ok(())
    }

    fn replace(&self, object_ref: &ObjectRef, _part: Part<'_>, object: Value) -> Result<(), ApiError> {
        self.check_conflict()?;
        let old = self.read(object_ref).ok_or_else(|| ApiError::new(404, "NotFound", "not found"))?;
        if old["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(ApiError::new(409, "Conflict", "something else was written first"));
        }
        if old != object {
            self.commit(object_ref, object);
        }
        Ok(())
    }

    fn apply(&self, object_ref: &ObjectRef, _manager: &str, configuration: Value) -> Result<(), ApiError> {
        let mut object = self.read(object_ref).ok_or_else(|| ApiError::new(404, "NotFound", "not found"))?;
        for (member, value) in configuration.as_object().into_iter().flatten() {
            if member != "metadata" {
                object[member] = value.clone();
            }
        }
        self.replace(object_ref, Part::Main, object)
    }

    fn delete(&self, object_ref: &ObjectRef, deletion: &Deletion) -> Result<(), ApiError> {
        self.check_conflict()?;
        if self.refused.get() == Some(&*object_ref.name) {
            return Err(ApiError::new(500, "InternalError", "refused"));
        }
        let found = self.object(object_ref).ok_or_else(|| ApiError::new(404, "NotFound", "not found"))?;
        let is_other_version =
            deletion.resource_version.as_ref().is_some_and(|one| *one != found.resource_version);
        if found.uid != deletion.uid || is_other_version {
            return Err(ApiError::new(409, "Conflict", "the precondition does not hold"));
        }
        let mut object = self.read(object_ref).unwrap_or_default();
        for (finalizer, propagation) in [(FOREGROUND, Propagation::Foreground), (ORPHAN, Propagation::Orphan)]
        {
            remove_finalizer(&mut object["metadata"], finalizer);
            if deletion.propagation == propagation {
                let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                finalizers.push(finalizer.into());
                object["metadata"]["finalizers"] = finalizers.into();
            }
        }
        if object_ref.is_of("", "Pod") && object.pointer("/spec/nodeName").is_some() {
            let seconds = if deletion.is_immediate { 0 } else { 30 };
            object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
        }
        if !found.is_being_deleted() {
            let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64);
            let end = self.date.get() + Duration::from_secs(grace.unwrap_or_default());
            object["metadata"]["deletionTimestamp"] = super::timestamp::format(end).into();
            if object_ref.is_of("", "Namespace") {
                object["status"]["phase"] = "Terminating".into();
            }
        }
        if self.read(object_ref).as_ref() != Some(&object) {
            self.commit(object_ref, object);
        }
        Ok(())
    }

    fn publish(&self) -> bool {
        true
    }

    fn now(&self) -> SystemTime {
        self.date.get()
    }
}

/// Returns an owner reference to the object at `object_ref` with this uid.
pub(crate) fn reference(object_ref: &ObjectRef, uid: &str, blocks: bool) -> Value {
    json!({
        "apiVersion": object_ref.kind.api_version(),
        "kind": object_ref.kind.kind,
        "name": &*object_ref.name,
        "uid": uid,
        "blockOwnerDeletion": blocks,
    })
}

/// Returns a reference to a config map in the namespace `ns`.
pub(crate) fn config_map(name: &str) -> ObjectRef {
    ObjectRef::new("", "v1", "ConfigMap", "ns", name)
}
