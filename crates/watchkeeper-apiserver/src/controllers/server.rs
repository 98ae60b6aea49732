//! The interface of controllers, implemented on the server.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use super::{
    garbage::{LiveReads, OwnerLookup},
    object::{Meta, ObjectRef, Owner},
    objects::{Deletion, ListableKind, Objects},
};
use crate::{
    kinds::{GroupVersionKind, Kind, Kinds},
    rest::{Propagation, Request, Rest, key_of, options::Parameters, stored, table_of},
    status::ApiError,
    storage::{Object, Query},
    strategy::Part,
};

/// The field manager of the controllers' writes.
const MANAGER: &str = "kube-controller-manager";

/// Returns the kinds whose objects are stored and can be deleted, each once, by table name.
pub(super) fn stored_kinds(kinds: &Kinds) -> BTreeMap<String, Arc<Kind>> {
    let mut tables: BTreeMap<String, Arc<Kind>> = BTreeMap::new();
    for kind in kinds.iter().chain(kinds.hidden()).filter(|kind| kind.allows("list") && kind.allows("delete"))
    {
        let table = table_of(kind);
        if kind.gvk == kind.storage || !tables.contains_key(&table) {
            tables.insert(table, Arc::clone(kind));
        }
    }
    tables
}

/// Returns the served kind of a reference. If that version is not served, returns another version or, if none is served, the
/// kind as stored.
fn kind_of(kinds: &Kinds, kind: &GroupVersionKind) -> Option<Arc<Kind>> {
    let in_any_version = || {
        let versions = &kinds.group(&kind.group)?.versions;
        versions.iter().flat_map(|version| &version.kinds).find(|known| known.gvk.kind == kind.kind)
    };
    let hidden = || kinds.hidden().find(|known| known.gvk.group == kind.group && known.gvk.kind == kind.kind);
    kinds.by_gvk(kind).or_else(in_any_version).or_else(hidden).cloned()
}

impl Rest {
    fn request(&self, object_ref: &ObjectRef, body: &Value) -> Result<Request, ApiError> {
        let kinds = self.registry.kinds();
        let kind = kind_of(&kinds, &object_ref.kind).ok_or_else(|| {
            ApiError::new(404, "NotFound", format!("the server serves no kind {:?}", object_ref.kind.kind))
        })?;
        Ok(Request {
            content_type: Some("application/json".to_owned()),
            body: body.to_string().into(),
            user_agent: Some(MANAGER.to_owned()),
            ..Request::internal(kind, kinds, &object_ref.namespace, &object_ref.name)
        })
    }

    fn stored(&self, kind: &Kind, object_ref: &ObjectRef) -> Option<Arc<Object>> {
        self.store.get(&table_of(kind), &key_of(&object_ref.namespace, &object_ref.name))
    }
}

impl LiveReads for Rest {
    fn object(&self, object_ref: &ObjectRef) -> Option<Meta> {
        let kind = kind_of(&self.registry.kinds(), &object_ref.kind)?;
        Some(Meta::of_stored(&object_ref.kind, &*self.stored(&kind, object_ref)?))
    }

    fn owner(&self, owner: &Owner, namespace: &str) -> OwnerLookup {
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let named = GroupVersionKind::new(group, version, &*owner.kind);
        let kinds = self.registry.kinds();
        let Some(kind) = kinds.by_gvk(&named).filter(|kind| kind.allows("get")) else {
            return OwnerLookup::NotServed;
        };
        if kind.is_namespaced && namespace.is_empty() {
            return OwnerLookup::InvalidScope;
        }
        let namespace = if kind.is_namespaced { namespace } else { "" };
        match self.store.get(&table_of(kind), &key_of(namespace, &owner.name)) {
            Some(object) => OwnerLookup::Found(Meta::of_stored(&Arc::new(named), &object)),
            None => OwnerLookup::Absent,
        }
    }
}

impl Objects for Rest {
    fn kinds(&self) -> Vec<ListableKind> {
        let served = |kind: Arc<Kind>| ListableKind {
            kind: Arc::new(kind.gvk.clone()),
            plural: kind.plural.as_str().into(),
            is_namespaced: kind.is_namespaced,
        };
        stored_kinds(&self.registry.kinds()).into_values().map(served).collect()
    }

    fn list(&self, kind: &Arc<GroupVersionKind>, namespace: Option<&str>) -> Vec<Meta> {
        let Some(served) = kind_of(&self.registry.kinds(), kind) else { return Vec::new() };
        let prefix = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let query = Query { prefix: &prefix, start: &prefix, at: None, limit: None, filter: None };
        // A list at the current version cannot be expired.
        let Ok(page) = self.store.list(&table_of(&served), query, self.clock.wall_time()) else {
            return Vec::new();
        };
        page.objects.iter().map(|object| Meta::of_stored(kind, object)).collect()
    }

    fn count(&self, kind: &Arc<GroupVersionKind>) -> usize {
        kind_of(&self.registry.kinds(), kind).map_or(0, |kind| self.store.count(&table_of(&kind)))
    }

    fn read(&self, object_ref: &ObjectRef) -> Option<Value> {
        let kinds = self.registry.kinds();
        let kind = kind_of(&kinds, &object_ref.kind)?;
        let object = self.stored(&kind, object_ref)?;
        Some(stored::ServedKind::new(&kind, &kinds).object(&object))
    }

    fn create(&self, object_ref: &ObjectRef, object: Value) -> Result<(), ApiError> {
        self.create(&self.request(object_ref, &object)?).map(|_| ())
    }

    fn replace(&self, object_ref: &ObjectRef, part: Part<'_>, object: Value) -> Result<(), ApiError> {
        self.update(&self.request(object_ref, &object)?, part).map(|_| ())
    }

    fn apply(&self, object_ref: &ObjectRef, manager: &str, configuration: Value) -> Result<(), ApiError> {
        let request = Request {
            content_type: Some("application/apply-patch+yaml".to_owned()),
            parameters: Parameters::parse(Some(&format!("fieldManager={manager}&force=true"))),
            ..self.request(object_ref, &configuration)?
        };
        self.patch(&request, Part::Main).map(|_| ())
    }

    fn delete(&self, object_ref: &ObjectRef, deletion: &Deletion) -> Result<(), ApiError> {
        let propagation = match deletion.propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": &*deletion.uid },
            "propagationPolicy": propagation,
        });
        if let Some(version) = &deletion.resource_version {
            options["preconditions"]["resourceVersion"] = (**version).into();
        }
        if deletion.is_immediate {
            options["gracePeriodSeconds"] = 0.into();
        }
        self.delete(&self.request(object_ref, &options)?).map(|_| ())
    }

    fn publish(&self) -> bool {
        Self::publish(self)
    }

    fn now(&self) -> SystemTime {
        self.clock.wall_time()
    }
}
