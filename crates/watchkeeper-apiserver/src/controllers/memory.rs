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
    garbage::{Live, OwnerLookup, Propagation, remove_finalizer},
    object::{FOREGROUND, Meta, ORPHAN, Owner, Place, is_same_kind},
    objects::{Change, Deletion, Objects, Served},
};
use crate::{kinds::GroupVersionKind, status::ApiError, strategy::Part};

/// The server. Changes are kept in a list until a test delivers them.
#[derive(Debug)]
pub(crate) struct World {
    kinds: RefCell<Vec<Served>>,
    objects: RefCell<BTreeMap<Place, Value>>,
    changes: RefCell<Vec<Change>>,
    version: Cell<u64>,
    date: Cell<SystemTime>,
    /// Notified on every change.
    pub(crate) changed: Notify,
    /// The number of next writes that fail with a conflict.
    pub(crate) conflicts: Cell<u32>,
    /// The name of objects whose deletion is rejected.
    pub(crate) refused: Cell<Option<&'static str>>,
}

impl World {
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
        self.kinds.borrow_mut().push(Served { kind, plural: plural.into(), is_namespaced });
        self.changes.borrow_mut().push(Change::Kinds);
    }

    /// Removes a served kind.
    pub(crate) fn stop_serving(&self, kind: &str) {
        self.kinds.borrow_mut().retain(|served| served.kind.kind != kind);
        self.changes.borrow_mut().push(Change::Kinds);
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_changes(&self) -> Vec<Change> {
        self.changes.take()
    }

    /// Advances the date.
    pub(crate) fn advance(&self, duration: Duration) {
        self.date.set(self.date.get() + duration);
    }

    /// Returns all stored objects.
    pub(crate) fn all(&self) -> Vec<Meta> {
        self.objects.borrow().iter().filter_map(|(place, object)| Meta::of(&place.kind, object)).collect()
    }

    /// Creates an object with this metadata and content. Returns its uid.
    pub(crate) fn put(&self, place: &Place, object: Value) -> Arc<str> {
        self.create(place, object).unwrap();
        self.object(place).unwrap().uid
    }

    /// Deletes an object as a user.
    pub(crate) fn user_deletes(&self, place: &Place, propagation: Propagation) {
        if let Some(object) = self.object(place) {
            let deletion =
                Deletion { uid: object.uid, resource_version: None, propagation, is_immediate: false };
            self.delete(place, &deletion).unwrap();
        }
    }

    /// Changes an object as a user.
    pub(crate) fn user_edits(&self, place: &Place, edit: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.read(place) {
            edit(&mut object);
            self.replace(place, Part::Main, object).unwrap();
        }
    }

    fn next_version(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }

    /// Stores `object`, or removes it if it is being deleted and no finalizer is left.
    fn commit(&self, place: &Place, mut object: Value) {
        object["metadata"]["resourceVersion"] = self.next_version().to_string().into();
        let meta = Meta::of(&place.kind, &object).unwrap();
        let is_kept = !meta.finalizers.is_empty()
            || object.pointer("/spec/finalizers").is_some_and(|finalizers| *finalizers != json!([]))
            || object.pointer("/metadata/deletionGracePeriodSeconds").is_some_and(|seconds| *seconds != 0);
        if meta.is_being_deleted() && !is_kept {
            self.objects.borrow_mut().remove(place);
            self.changes.borrow_mut().push(Change::Gone(meta));
        } else {
            self.objects.borrow_mut().insert(place.clone(), object);
            self.changes.borrow_mut().push(Change::Seen(meta));
        }
        self.changed.notify_one();
    }

    fn served(&self, group: &str, kind: &str) -> Option<Served> {
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

impl Live for World {
    fn object(&self, place: &Place) -> Option<Meta> {
        self.served(&place.kind.group, &place.kind.kind)?;
        self.objects.borrow().get(place).and_then(|object| Meta::of(&place.kind, object))
    }

    fn owner(&self, owner: &Owner, namespace: &str) -> OwnerLookup {
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let Some(served) = self.served(group, &owner.kind).filter(|served| served.kind.version == version)
        else {
            return OwnerLookup::NotServed;
        };
        if served.is_namespaced && namespace.is_empty() {
            return OwnerLookup::OutOfReach;
        }
        let namespace = if served.is_namespaced { namespace } else { "" };
        let place = Place { kind: served.kind, namespace: namespace.into(), name: owner.name.clone() };
        self.object(&place).map_or(OwnerLookup::Absent, OwnerLookup::Found)
    }
}

impl Objects for World {
    fn kinds(&self) -> Vec<Served> {
        self.kinds.borrow().clone()
    }

    fn list(&self, kind: &Arc<GroupVersionKind>, namespace: Option<&str>) -> Vec<Meta> {
        let is_wanted = |meta: &Meta| {
            is_same_kind(&meta.place.kind, kind)
                && namespace.is_none_or(|name| *meta.place.namespace == *name)
        };
        self.all().into_iter().filter(is_wanted).collect()
    }

    fn count(&self, kind: &Arc<GroupVersionKind>) -> usize {
        self.list(kind, None).len()
    }

    fn read(&self, place: &Place) -> Option<Value> {
        self.objects.borrow().get(place).cloned()
    }

    fn create(&self, place: &Place, mut object: Value) -> Result<(), ApiError> {
        self.check_conflict()?;
        if self.objects.borrow().contains_key(place) {
            return Err(ApiError::new(409, "AlreadyExists", "already exists"));
        }
        object["metadata"]["name"] = (*place.name).into();
        object["metadata"]["namespace"] = (*place.namespace).into();
        object["metadata"]["uid"] = format!("u{:05}", self.next_version()).into();
        if place.is_of("", "Namespace") {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"]["phase"] = "Active".into();
        }
        self.commit(place, object);
        Ok(())
    }

    fn replace(&self, place: &Place, _part: Part<'_>, object: Value) -> Result<(), ApiError> {
        self.check_conflict()?;
        let old = self.read(place).ok_or_else(|| ApiError::new(404, "NotFound", "not found"))?;
        if old["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(ApiError::new(409, "Conflict", "something else was written first"));
        }
        if old != object {
            self.commit(place, object);
        }
        Ok(())
    }

    fn apply(&self, place: &Place, _manager: &str, configuration: Value) -> Result<(), ApiError> {
        let mut object = self.read(place).ok_or_else(|| ApiError::new(404, "NotFound", "not found"))?;
        for (member, value) in configuration.as_object().into_iter().flatten() {
            if member != "metadata" {
                object[member] = value.clone();
            }
        }
        self.replace(place, Part::Main, object)
    }

    fn delete(&self, place: &Place, deletion: &Deletion) -> Result<(), ApiError> {
        self.check_conflict()?;
        if self.refused.get() == Some(&*place.name) {
            return Err(ApiError::new(500, "InternalError", "refused"));
        }
        let found = self.object(place).ok_or_else(|| ApiError::new(404, "NotFound", "not found"))?;
        let is_other_version =
            deletion.resource_version.as_ref().is_some_and(|one| *one != found.resource_version);
        if found.uid != deletion.uid || is_other_version {
            return Err(ApiError::new(409, "Conflict", "the precondition does not hold"));
        }
        let mut object = self.read(place).unwrap_or_default();
        for (finalizer, propagation) in [(FOREGROUND, Propagation::Foreground), (ORPHAN, Propagation::Orphan)]
        {
            remove_finalizer(&mut object["metadata"], finalizer);
            if deletion.propagation == propagation {
                let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                finalizers.push(finalizer.into());
                object["metadata"]["finalizers"] = finalizers.into();
            }
        }
        if place.is_of("", "Pod") && object.pointer("/spec/nodeName").is_some() {
            let seconds = if deletion.is_immediate { 0 } else { 30 };
            object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
        }
        if !found.is_being_deleted() {
            let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64);
            let end = self.date.get() + Duration::from_secs(grace.unwrap_or_default());
            object["metadata"]["deletionTimestamp"] = super::timestamp::format(end).into();
            if place.is_of("", "Namespace") {
                object["status"]["phase"] = "Terminating".into();
            }
        }
        if self.read(place).as_ref() != Some(&object) {
            self.commit(place, object);
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

/// Returns an owner reference to the object at `place` with this uid.
pub(crate) fn reference(place: &Place, uid: &str, blocks: bool) -> Value {
    json!({
        "apiVersion": place.kind.api_version(),
        "kind": place.kind.kind,
        "name": &*place.name,
        "uid": uid,
        "blockOwnerDeletion": blocks,
    })
}

/// Returns the place of a config map in the namespace `ns`.
pub(crate) fn config_map(name: &str) -> Place {
    Place::new("", "v1", "ConfigMap", "ns", name)
}
