//! Defaults and validation of `CustomResourceDefinition`s.
//!
//! The real server validates definitions in an internal form, in which properties that all versions share are at the top
//! level. The paths of errors refer to that form. [`internal`] creates it.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::{pattern::Patterns, schema_check};
use crate::{
    field::{FieldError, FieldErrorKind},
    strategy::{Cursor, Errors, edit, names},
};

const COLUMN_TYPES: &str = "must be one of boolean,date,integer,number,string";
const COLUMN_FORMATS: [&str; 11] =
    ["int32", "int64", "float", "double", "byte", "binary", "date", "date-time", "password", "name", ""];
/// The maximum number of selectable fields of one version.
const SELECTABLE: usize = 16;

/// Sets the defaults of a definition.
pub(crate) fn defaults(definition: &mut Value) {
    if let Some(names) = edit::object_at(definition, &["spec", "names"]) {
        let kind = edit::text(names, "kind").to_owned();
        if edit::text(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if edit::text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    if let Some(spec) = edit::object(definition, "spec") {
        let conversion = spec.entry("conversion").or_insert(Value::Null);
        if conversion.is_null() {
            *conversion = json!({"strategy": "None"});
        }
    }
    edit::fill_all(
        definition,
        &[
            ("spec.conversion.webhook.clientConfig.service", "port", edit::DefaultValue::IntPtr(443)),
            ("", "status", edit::DefaultValue::EmptyObject),
            ("status", "acceptedNames", edit::DefaultValue::EmptyObject),
            ("status.acceptedNames", "plural", edit::DefaultValue::Str("")),
            ("status.acceptedNames", "kind", edit::DefaultValue::Str("")),
            ("status", "conditions", edit::DefaultValue::Null),
        ],
    );
    // Some clients write false, which is the default.
    if let Some(spec) = edit::object(definition, "spec")
        && spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(false)
    {
        spec.remove("preserveUnknownFields");
    }
}

/// Adds the storage version to `status.storedVersions`.
pub(crate) fn stored_versions(definition: &mut Value) {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let is_storage = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    let storage =
        versions.into_iter().flatten().find(is_storage).and_then(|version| version.get("name")).cloned();
    let Some(status) = edit::object(definition, "status") else { return };
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    if let Some(storage) = storage {
        match stored {
            Value::Array(stored) if stored.contains(&storage) => {}
            Value::Array(stored) => stored.push(storage),
            other => *other = json!([storage]),
        }
    }
}

/// Validates a definition. `old` is the definition before a change.
pub(crate) fn validate(definition: &Value, old: Option<&Value>, errors: &mut Errors) {
    let form = internal(definition);
    let root = Cursor::root(&form);
    let spec = root.at("spec");
    if old.is_none() {
        name(&root, errors);
    }
    group(&spec.at("group"), errors);
    spec.at("scope").required_one_of(&["Cluster", "Namespaced"], errors);
    versions(&spec, errors);
    for member in ["plural", "singular", "kind", "listKind"] {
        spec.at("names").at(member).required(errors);
    }
    names(&spec.at("names"), errors);
    let status = root.at("status");
    names(&status.at("acceptedNames"), errors);
    conversion(&spec, errors);
    stored(&status.at("storedVersions"), &spec.at("versions"), errors);
    approval(&root, errors);
    if spec.at("preserveUnknownFields").is_true()
        && old.is_none_or(|old| old.pointer("/spec/preserveUnknownFields").is_none())
    {
        let member = spec.at("preserveUnknownFields");
        errors.push(member.invalid("cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"));
    }
    if let Some(old) = old {
        update(&spec, old, errors);
    }
}

fn name(root: &Cursor<'_>, errors: &mut Errors) {
    let (metadata, spec) = (root.at("metadata"), root.at("spec"));
    let (name, names) = (metadata.at("name"), spec.at("names"));
    let expected = format!("{}.{}", names.at("plural").text(), spec.at("group").text());
    if !name.is_empty() && name.text() != expected {
        errors.push(name.invalid("must be spec.names.plural+\".\"+spec.group"));
    }
}

fn group(group: &Cursor<'_>, errors: &mut Errors) {
    if !group.required(errors) {
        return;
    }
    let wrong = names::dns_subdomain(group.text());
    if !wrong.is_empty() {
        errors.push(group.invalid(wrong.join(",")));
    } else if !group.text().contains('.') {
        errors.push(group.invalid("should be a domain with at least one dot"));
    }
}

/// Returns the internal form of the real server, with the properties that all versions share at the top level.
fn internal(definition: &Value) -> Value {
    let mut form = definition.clone();
    let Some(spec) = edit::object(&mut form, "spec") else { return form };
    let Some(Value::Array(mut versions)) = spec.remove("versions") else { return form };
    for version in &mut versions {
        edit::each(version, "additionalPrinterColumns[]", &mut |column| {
            if let Some(path) = column.remove("jsonPath") {
                column.insert("JSONPath".to_owned(), path);
            }
        });
    }
    if let Some(name) = versions.first().and_then(|version| version.get("name")) {
        spec.insert("version".to_owned(), name.clone());
    }
    let shared = [
        ("schema", "validation"),
        ("subresources", "subresources"),
        ("additionalPrinterColumns", "additionalPrinterColumns"),
        ("selectableFields", "selectableFields"),
    ];
    for (member, path) in shared {
        let first = versions.first().and_then(|version| version.get(member)).cloned();
        if !versions.iter().all(|version| version.get(member) == first.as_ref()) {
            continue;
        }
        for version in &mut versions {
            if let Some(members) = version.as_object_mut() {
                members.remove(member);
            }
        }
        if let Some(first) = first {
            spec.insert(path.to_owned(), first);
        }
    }
    spec.insert("versions".to_owned(), versions.into());
    form
}

fn versions(spec: &Cursor<'_>, errors: &mut Errors) {
    let versions = spec.at("versions");
    let mut seen = BTreeSet::new();
    let shared_schema = spec.at("validation").at("openAPIV3Schema").is_set();
    let shared_status = spec.at("subresources").at("status").is_set();
    for version in versions.items() {
        let name = version.at("name");
        let wrong = names::dns_1035_label(name.text());
        if !wrong.is_empty() {
            errors.push(name.invalid(wrong.join(",")));
        }
        seen.insert(name.text().to_owned());
        let schema = version.at("schema");
        if !shared_schema && !schema.at("openAPIV3Schema").is_set() {
            errors.push(schema.at("openAPIV3Schema").missing(""));
        }
        let warning = version.at("deprecationWarning");
        if warning.is_set() && !version.at("deprecated").is_true() {
            errors.push(warning.invalid("can only be set for deprecated versions"));
        }
        let has_status = shared_status || version.at("subresources").at("status").is_set();
        described(&version, &schema, has_status, errors);
    }
    let storage = versions.items().filter(|version| version.at("storage").is_true()).count();
    if storage != 1 {
        errors.push(versions.invalid("must have exactly one version marked as storage version"));
    }
    if seen.len() != versions.items().count() {
        errors.push(versions.invalid("must contain unique version names"));
    }
    let version = spec.at("version");
    let wrong = names::dns_1035_label(version.text());
    if !version.is_empty() && !wrong.is_empty() {
        errors.push(version.invalid(wrong.join(",")));
    }
    let has_status =
        shared_status || versions.items().any(|version| version.at("subresources").at("status").is_set());
    described(spec, &spec.at("validation"), has_status, errors);
}

/// Validates the properties of one version, or those that all versions share: schema, subresources, columns, fields.
fn described(of: &Cursor<'_>, schema: &Cursor<'_>, has_status: bool, errors: &mut Errors) {
    let schema = schema.at("openAPIV3Schema");
    if schema.is_set() {
        schema_check::check(&schema, has_status, errors);
        if !Patterns::are_within_limit(schema.value) {
            errors.push(schema.forbidden("the patterns of the schema take too much memory"));
        }
    }
    let subresources = of.at("subresources");
    let scale = subresources.at("scale");
    if scale.is_set() {
        for (member, roots) in
            [("specReplicasPath", &[".spec."][..]), ("statusReplicasPath", &[".status."][..])]
        {
            let path = scale.at(member);
            if path.required(errors) {
                simple_path(&path, roots, errors);
            }
        }
        let selector = scale.at("labelSelectorPath");
        if !selector.is_empty() {
            simple_path(&selector, &[".spec.", ".status."], errors);
        }
    }
    for column in of.at("additionalPrinterColumns").items() {
        column.at("name").required(errors);
        let (kind, path, format) = (column.at("type"), column.at("JSONPath"), column.at("format"));
        if kind.is_empty() {
            errors.push(kind.missing(COLUMN_TYPES));
        } else if !["boolean", "date", "integer", "number", "string"].contains(&kind.text()) {
            errors.push(kind.invalid(COLUMN_TYPES));
        }
        if !COLUMN_FORMATS.contains(&format.text()) {
            errors.push(format.invalid(format!("must be one of {}", COLUMN_FORMATS.join(","))));
        }
        if path.required(errors) {
            simple_path(&path, &[], errors);
        }
    }
    selectable(&of.at("selectableFields"), &schema, errors);
}

fn simple_path(path: &Cursor<'_>, roots: &[&str], errors: &mut Errors) {
    if !path.text().starts_with('.') {
        errors.push(path.invalid("must be a simple json path starting with ."));
    } else if !roots.is_empty() && !roots.iter().any(|root| path.text().starts_with(root)) {
        let under = match roots {
            [root] => root.trim_end_matches('.').to_owned(),
            _ => "either .spec or .status".to_owned(),
        };
        errors.push(path.invalid(format!("should be a json path under {under}")));
    }
}

fn selectable(fields: &Cursor<'_>, schema: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let count = fields.items().count();
    if count > SELECTABLE {
        let detail = format!("must have at most {SELECTABLE} items");
        errors.push(FieldError::new(FieldErrorKind::TooMany, fields.path(), Some(count.into()), detail));
    }
    for field in fields.items() {
        let path = field.at("jsonPath");
        if !path.required(errors) {
            continue;
        }
        if !seen.insert(path.text().to_owned()) {
            errors.push(path.duplicate());
            continue;
        }
        let Some(names) = path.text().strip_prefix('.') else {
            errors.push(path.invalid("is an invalid path: must begin with a '.'"));
            continue;
        };
        if names == "metadata" || names.starts_with("metadata.") {
            errors.push(path.invalid("must not point to fields in metadata"));
            continue;
        }
        let found =
            names.split('.').try_fold(schema.value, |schema, name| schema.get("properties")?.get(name));
        match found {
            None => errors.push(path.invalid("is an invalid path: does not refer to a valid field")),
            Some(found) => {
                let kind = found.get("type").and_then(Value::as_str).unwrap_or_default();
                if !matches!(kind, "string" | "integer" | "boolean") {
                    errors.push(path.invalid("must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."));
                }
            }
        }
    }
}

fn names(names: &Cursor<'_>, errors: &mut Errors) {
    let joined = |at: &Cursor<'_>, wrong: Vec<String>, errors: &mut Errors| {
        if !at.is_empty() && !wrong.is_empty() {
            errors.push(at.invalid(wrong.join(",")));
        }
    };
    for member in ["plural", "singular"] {
        let name = names.at(member);
        joined(&name, names::dns_1035_label(name.text()), errors);
    }
    for member in ["kind", "listKind"] {
        let name = names.at(member);
        joined(&name, names::mixed_case_label(name.text()), errors);
    }
    for member in ["shortNames", "categories"] {
        for name in names.at(member).items() {
            let wrong = names::dns_1035_label(name.text());
            if !wrong.is_empty() {
                errors.push(name.invalid(wrong.join(",")));
            }
        }
    }
    let (kind, list) = (names.at("kind"), names.at("listKind"));
    if !kind.is_empty() && kind.text() == list.text() {
        errors.push(list.invalid("kind and listKind may not be the same"));
    }
}

fn conversion(spec: &Cursor<'_>, errors: &mut Errors) {
    let conversion = spec.at("conversion");
    if !conversion.is_set() {
        return;
    }
    let strategy = conversion.at("strategy");
    strategy.required_one_of(&["None", "Webhook"], errors);
    let webhook = conversion.at("webhook");
    let config = webhook.at("clientConfig");
    // Named as in the internal form of the real server.
    let (config_path, versions_path) =
        (conversion.at("webhookClientConfig"), conversion.at("conversionReviewVersions"));
    let versions = webhook.at("conversionReviewVersions");
    if strategy.text() == "Webhook" {
        if !config.is_set() {
            errors.push(config_path.missing("required when strategy is set to Webhook"));
        } else if config.at("url").is_set() == config.at("service").is_set() {
            errors.push(config_path.missing("exactly one of url or service is required"));
        }
        if versions.is_empty() {
            errors.push(versions_path.missing(""));
        }
    } else if strategy.text() == "None" {
        if config.is_set() {
            errors.push(config_path.forbidden("should not be set when strategy is not set to Webhook"));
        }
        if !versions.is_empty() {
            errors.push(versions_path.forbidden("should not be set when strategy is not set to Webhook"));
        }
    }
}

fn stored(stored: &Cursor<'_>, versions: &Cursor<'_>, errors: &mut Errors) {
    if stored.is_empty() {
        errors.push(stored.invalid("must have at least one stored version"));
        return;
    }
    let names: HashSet<&str> = stored.items().map(|stored| stored.text()).collect();
    for version in versions.items() {
        let name = version.at("name");
        if version.at("storage").is_true() && !names.contains(name.text()) {
            errors.push(stored.invalid(format!("must have the storage version {}", name.text())));
        }
    }
    let served: HashSet<&str> =
        versions.items().filter_map(|version| version.value.get("name")?.as_str()).collect();
    for name in stored.items() {
        if !served.contains(name.text()) {
            let version = name.text();
            errors.push(name.invalid(format!("missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions")));
        }
    }
}

/// Checks that definitions in community groups have the approval annotation.
fn approval(root: &Cursor<'_>, errors: &mut Errors) {
    let spec = root.at("spec");
    let group = spec.at("group").text();
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group == *domain || group.strip_suffix(domain).is_some_and(|front| front.ends_with('.'))
    });
    if !is_protected {
        return;
    }
    let metadata = root.at("metadata");
    let annotations = metadata.at("annotations");
    let annotation = annotations.key("api-approved.kubernetes.io");
    let text = annotation.text();
    if text.is_empty() {
        errors.push(annotation.missing("protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"));
    } else if !text.starts_with("unapproved") && !text.contains("://") {
        errors.push(annotation.invalid("protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"));
    }
}

fn update(spec: &Cursor<'_>, old: &Value, errors: &mut Errors) {
    let old_root = Cursor::root(old);
    let old_spec = old_root.at("spec");
    let (names, old_names) = (spec.at("names"), old_spec.at("names"));
    if super::is_established(old) {
        spec.at("scope").immutable(&old_spec.at("scope"), errors);
        names.at("kind").immutable(&old_names.at("kind"), errors);
    }
    spec.at("group").immutable(&old_spec.at("group"), errors);
    names.at("plural").immutable(&old_names.at("plural"), errors);
}
