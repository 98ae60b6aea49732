//! The paths of a document: the operations of each kind with their parameters and bodies.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::components::{builtin_name, gvk_of, list_name, name, reference};
use crate::kinds::{GroupVersion, GroupVersionKind, Kind};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The query parameters of lists and watches.
const LIST: [&str; 11] = [
    "allowWatchBookmarks:boolean",
    "continue:string",
    "fieldSelector:string",
    "labelSelector:string",
    "limit:integer",
    "pretty:string",
    "resourceVersion:string",
    "resourceVersionMatch:string",
    "sendInitialEvents:boolean",
    "timeoutSeconds:integer",
    "watch:boolean",
];
/// The query parameters of writes.
const WRITE: [&str; 3] = ["dryRun:string", "fieldManager:string", "fieldValidation:string"];
/// The query parameters of deletions.
const DELETE: [&str; 4] =
    ["dryRun:string", "gracePeriodSeconds:integer", "orphanDependents:boolean", "propagationPolicy:string"];

/// Returns all paths of a version. `base` is `api/v1` or `apis/apps/v1`.
pub(super) fn paths(base: &str, version: &GroupVersion) -> Value {
    let mut paths: BTreeMap<String, Value> = BTreeMap::new();
    for kind in &version.kinds {
        let scope = if kind.is_namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("/{base}{scope}/{}", kind.plural);
        let operations = Operations { kind, gvk: &kind.gvk, schema: name(kind), part: "" };
        let mut item = operations.collection();
        if !item.is_empty() {
            item.insert("parameters".into(), path_parameters(kind.is_namespaced, false));
            paths.insert(collection.clone(), item.into());
        }
        if kind.is_namespaced && kind.allows("list") {
            let everywhere = format!("/{base}/{}", kind.plural);
            paths.insert(everywhere, json!({"get": operations.list("ForAllNamespaces")}));
        }
        let mut item = operations.object(&kind.verbs);
        if !item.is_empty() {
            item.insert("parameters".into(), path_parameters(kind.is_namespaced, true));
            paths.insert(format!("{collection}/{{name}}"), item.into());
        }
        for subresource in &kind.subresources {
            let schema =
                if kind.gvk == subresource.gvk { Some(name(kind)) } else { builtin_name(&subresource.gvk) };
            // Kinds that occur only as options have no body to describe.
            let Some(schema) = schema else { continue };
            let operations = Operations { kind, gvk: &subresource.gvk, schema, part: &subresource.name };
            let mut item = operations.object(&subresource.verbs);
            if subresource.verbs.iter().any(|verb| verb == "create") {
                item.insert("post".into(), operations.create());
            }
            item.insert("parameters".into(), path_parameters(kind.is_namespaced, true));
            paths.insert(format!("{collection}/{{name}}/{}", subresource.name), item.into());
        }
    }
    json!(paths)
}

fn path_parameters(is_namespaced: bool, is_named: bool) -> Value {
    let parameter =
        |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let mut parameters = Vec::new();
    if is_named {
        parameters.push(parameter("name"));
    }
    if is_namespaced {
        parameters.push(parameter("namespace"));
    }
    parameters.push(query("pretty:string"));
    Value::Array(parameters)
}

fn query(parameter: &str) -> Value {
    let (name, ty) = parameter.split_once(':').unwrap_or((parameter, "string"));
    json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}})
}

/// The operations on a kind or on a subresource.
struct Operations<'a> {
    kind: &'a Kind,
    gvk: &'a GroupVersionKind,
    schema: String,
    part: &'a str,
}

impl Operations<'_> {
    /// Returns the operations on a collection.
    fn collection(&self) -> Map<String, Value> {
        let mut item = Map::new();
        if self.kind.allows("list") {
            item.insert("get".into(), self.list(""));
        }
        if self.kind.allows("create") {
            item.insert("post".into(), self.create());
        }
        if self.kind.allows("deletecollection") {
            let parameters: Vec<&str> =
                LIST.into_iter().filter(|name| !is_of_watches(name)).chain(DELETE).collect();
            let status = format!("{META}.Status");
            item.insert(
                "delete".into(),
                self.operation("deletecollection", "", &parameters, Some(delete_body()), &status),
            );
        }
        item
    }

    fn list(&self, suffix: &str) -> Value {
        self.operation("list", suffix, &LIST, None, &list_name(self.kind))
    }

    fn create(&self) -> Value {
        self.operation("create", "", &WRITE, Some(self.body()), &self.schema)
    }

    /// Returns the operations on one object.
    fn object(&self, verbs: &[String]) -> Map<String, Value> {
        let allows = |verb: &str| verbs.iter().any(|known| known == verb);
        let mut item = Map::new();
        if allows("get") {
            item.insert("get".into(), self.operation("get", "", &[], None, &self.schema));
        }
        if allows("update") {
            item.insert("put".into(), self.operation("update", "", &WRITE, Some(self.body()), &self.schema));
        }
        if allows("patch") {
            let parameters: Vec<&str> = WRITE.into_iter().chain(["force:boolean"]).collect();
            item.insert(
                "patch".into(),
                self.operation("patch", "", &parameters, Some(self.patch_body()), &self.schema),
            );
        }
        if allows("delete") {
            let status = format!("{META}.Status");
            item.insert("delete".into(), self.operation("delete", "", &DELETE, Some(delete_body()), &status));
        }
        item
    }

    fn operation(
        &self,
        verb: &str,
        suffix: &str,
        parameters: &[&str],
        body: Option<Value>,
        response: &str,
    ) -> Value {
        let action = match verb {
            "create" => "post",
            "update" => "put",
            other => other,
        };
        let content: Map<String, Value> = self
            .media_types()
            .map(|media_type| (media_type.to_owned(), json!({"schema": reference(response)})))
            .collect();
        let mut operation = json!({
            "operationId": self.id(verb, suffix),
            "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk_of(self.gvk),
        });
        if !parameters.is_empty() {
            operation["parameters"] = parameters.iter().map(|parameter| query(parameter)).collect();
        }
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }

    /// Returns the unique id of an operation, such as `patchAppsV1NamespacedDeploymentScale`.
    fn id(&self, verb: &str, suffix: &str) -> String {
        let capital = |word: &str| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().chain(letters).collect::<String>())
                .unwrap_or_default()
        };
        let group = self.kind.gvk.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        let (verb, all) = match verb {
            "get" => ("read", ""),
            "update" => ("replace", ""),
            "deletecollection" => ("delete", "Collection"),
            other => (other, ""),
        };
        let scope = if self.kind.is_namespaced && suffix.is_empty() { "Namespaced" } else { "" };
        let (group, version) = (capital(group), capital(&self.kind.gvk.version));
        format!("{verb}{group}{version}{all}{scope}{}{}{suffix}", self.kind.gvk.kind, capital(self.part))
    }

    fn media_types(&self) -> impl Iterator<Item = &'static str> {
        let is_custom = self.kind.custom.is_some();
        ["application/json", "application/yaml"]
            .into_iter()
            .chain((!is_custom).then_some("application/vnd.kubernetes.protobuf"))
    }

    fn body(&self) -> Value {
        json!({"content": {"*/*": {"schema": reference(&self.schema)}}, "required": true})
    }

    /// Returns the body of a patch. Custom kinds accept every patch type except strategic merge patch.
    fn patch_body(&self) -> Value {
        let types =
            ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
                .into_iter()
                .chain(self.kind.custom.is_none().then_some("application/strategic-merge-patch+json"));
        let content: Map<String, Value> = types
            .map(|media_type| (media_type.to_owned(), json!({"schema": reference(&format!("{META}.Patch"))})))
            .collect();
        json!({"content": content, "required": true})
    }
}

fn delete_body() -> Value {
    json!({"content": {"*/*": {"schema": reference(&format!("{META}.DeleteOptions"))}}})
}

fn is_of_watches(parameter: &str) -> bool {
    matches!(parameter.split(':').next(), Some("allowWatchBookmarks" | "watch"))
}
