//! Definitions of custom kinds: updates the served kinds and the status of definitions.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{Request, Rest, errors, meta};
use crate::{
    crd::{self, CustomKinds},
    kinds::{CustomKind, Kind},
    schema::TypeRef,
    status::ApiError,
    storage::{Object, Precondition, Query},
};

/// The definitions as they were when last served, by group and plural.
pub(crate) type KnownDefinitions = BTreeMap<(String, String), Value>;

const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "CustomResourceDefinition";

/// Returns whether a kind is `CustomResourceDefinition`.
pub(super) fn is_definition(kind: &Kind) -> bool {
    kind.gvk.kind == KIND && kind.gvk.group == "apiextensions.k8s.io"
}

impl Rest {
    /// Updates derived state after a write of an object of `kind`, so that the served kinds are current when the response is
    /// sent.
    pub(super) fn object_written(&self, kind: &Kind, written: &Object) {
        self.schedule_event_expiry(kind, written);
        self.object_changed(kind);
    }

    /// Updates the served kinds after a write or a deletion of an object of `kind`.
    pub(super) fn object_changed(&self, kind: &Kind) {
        if is_definition(kind) {
            self.update_served_definitions();
        }
    }

    /// Checks that the kind of a new object is not being deleted.
    pub(super) fn check_definition(&self, request: &Request) -> Result<(), ApiError> {
        if request.kind.custom.is_none() || !self.is_terminating(&request.kind) {
            return Ok(());
        }
        let mut error = errors::method_not_allowed();
        "create not allowed while custom resource definition is terminating".clone_into(&mut error.message);
        Err(error)
    }

    fn is_terminating(&self, kind: &Kind) -> bool {
        let name = format!("{}.{}", kind.plural, kind.gvk.group);
        let definition = self.store.get(TABLE, &name);
        definition.is_some_and(|definition| meta::is_being_deleted(&definition.to_value(API_VERSION, KIND)))
    }

    /// Updates the status of every definition and the served kinds. Definitions that are being deleted are served until the
    /// controllers have deleted their objects.
    fn update_served_definitions(&self) {
        let mut known = self.definitions.lock();
        let query = Query { prefix: "", start: "", at: None, limit: None, filter: None };
        let Ok(page) = self.store.list(TABLE, query, self.now()) else { return };
        let mut definitions: Vec<(Arc<Object>, Value)> = page
            .objects
            .into_iter()
            .map(|object| {
                let value = object.to_value(API_VERSION, KIND);
                (object, value)
            })
            .collect();
        for name in 0..definitions.len() {
            let (others_before, rest) = definitions.split_at_mut(name);
            let Some(((object, definition), others_after)) = rest.split_first_mut() else { break };
            let others = others_before.iter().chain(others_after.iter()).map(|(_, other)| other);
            let now = meta::timestamp(self.now());
            if crd::status_after_write(definition, others, &now)
                && let Some(stored) = self.store_definition(definition, object.version)
            {
                *object = stored;
            }
        }
        let served: Vec<&Value> = definitions.iter().map(|(_, definition)| definition).collect();
        self.serve(&served, &mut known);
    }

    fn store_definition(&self, definition: &Value, version: u64) -> Option<Arc<Object>> {
        let content = crate::storage::Content::new(definition, Box::default()).ok()?;
        self.store.put(TABLE, content, Precondition::Version(version), self.now()).ok()
    }

    /// Serves the kinds of `definitions`. `known` are the definitions as they were when last served: only a change of these
    /// changes the served kinds.
    fn serve(&self, definitions: &[&Value], known: &mut KnownDefinitions) {
        let factory =
            CustomKinds::new(TypeRef::builtin_named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
        let mut current = KnownDefinitions::new();
        for definition in definitions.iter().filter(|definition| crd::is_established(definition)) {
            let text =
                |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = (text("/spec/group"), text("/spec/names/plural"));
            let settings = json!([definition["spec"], definition["status"]["acceptedNames"]]);
            if known.get(&name) != Some(&settings) {
                match factory.kinds(definition) {
                    Ok(kinds) => self.registry.set_custom(&name.0, &name.1, kinds),
                    Err(error) => tracing::warn!(%error, "cannot serve custom resource definition"),
                }
            }
            current.insert(name, settings);
        }
        for (group, plural) in known.keys().filter(|name| !current.contains_key(*name)) {
            self.registry.set_custom(group, plural, CustomKind::default());
        }
        *known = current;
    }
}
