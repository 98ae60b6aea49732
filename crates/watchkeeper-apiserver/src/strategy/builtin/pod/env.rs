//! Environment variables of containers, and the downward API.

use crate::strategy::{
    cursor::{Cursor, Errors},
    formats, names,
    quantity::Quantity,
    table::{
        self,
        Rule::{Check, EvenEmpty, Format, Pointer, Required},
        RuleTable,
    },
};

const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

const VARIABLE: RuleTable = &[("name", &[Required, Format(names::env_name)]), ("", &[Check(value_from)])];

const VALUE_FROM: RuleTable = &[
    ("fieldRef", &[Pointer(&[("", &[Check(variable_field)])])]),
    ("resourceFieldRef", &[Pointer(&[("", &[Check(variable_resource)])])]),
    ("configMapKeyRef", &[Pointer(KEY)]),
    ("secretKeyRef", &[Pointer(KEY)]),
    ("fileKeyRef", &[Pointer(FILE_KEY)]),
];

const KEY: RuleTable =
    &[("name", &[EvenEmpty(names::dns_subdomain)]), ("key", &[Required, Format(names::config_key)])];

const FILE_KEY: RuleTable = &[
    ("key", &[Required, Format(names::env_name)]),
    ("volumeName", &[Required, Format(names::dns_label)]),
    ("path", &[Required, Format(formats::no_parent_references)]),
];

const FROM: RuleTable = &[
    ("prefix", &[Format(names::env_name)]),
    ("configMapRef|secretRef", &[Pointer(&[("name", &[Required, Format(name_prefix)])])]),
];

/// The fields that environment variables can refer to, and those that files can refer to.
const VARIABLE_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const FILE_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The further field names that the downward API recognizes. Not all of them can be used.
const OTHER_FIELDS: [&str; 5] =
    ["spec.host", "spec.restartPolicy", "spec.schedulerName", "spec.nodeName", "status.phase"];

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn env(env: &Cursor<'_>, errors: &mut Errors) {
    for variable in env.items() {
        table::check(VARIABLE, &variable, errors);
    }
}

fn value_from(variable: &Cursor<'_>, errors: &mut Errors) {
    let from = variable.at("valueFrom");
    if !from.is_set() {
        return;
    }
    table::check(VALUE_FROM, &from, errors);
    let count = SOURCES.iter().filter(|source| from.at(source).is_set()).count();
    let wrong = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !variable.at("value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    let mut error = from.invalid(wrong);
    error.bad_value = Some("".into());
    errors.push(error);
}

/// Checks a name to which more characters are appended.
fn name_prefix(text: &str) -> Vec<String> {
    names::NameRule::Subdomain.check(text, true)
}

/// Checks the sources of `envFrom`. Upstream reports a wrong number of sources at the whole list.
pub(super) fn env_from(sources: &Cursor<'_>, errors: &mut Errors) {
    for source in sources.items() {
        table::check(FROM, &source, errors);
        let wrong = match (source.at("configMapRef").is_set(), source.at("secretRef").is_set()) {
            (false, false) => "must specify one of: `configMapRef` or `secretRef`",
            (true, true) => "may not have more than one field specified at a time",
            _ => continue,
        };
        let mut error = sources.invalid(wrong);
        error.bad_value = Some("".into());
        errors.push(error);
    }
}

fn variable_field(field: &Cursor<'_>, errors: &mut Errors) {
    field_of_pod(field, VARIABLE_FIELDS, errors);
}

pub(super) fn file_field(field: &Cursor<'_>, errors: &mut Errors) {
    field_of_pod(field, FILE_FIELDS, errors);
}

fn field_of_pod(field: &Cursor<'_>, allowed: &[&str], errors: &mut Errors) {
    let (version, path) = (field.at("apiVersion"), field.at("fieldPath"));
    if !version.required(errors) || !path.required(errors) {
        return;
    }
    let mut unknown = |detail: String| {
        errors.push(path.invalid(format!("error converting fieldPath: {detail}")));
    };
    if version.text() != "v1" {
        return unknown(format!("unsupported pod version: {}", version.text()));
    }
    if let Some((list, key)) = path.text().strip_suffix("']").and_then(|path| path.split_once("['")) {
        let wrong = match list {
            "metadata.labels" => names::qualified(key),
            "metadata.annotations" => names::qualified(&key.to_lowercase()),
            _ => return unknown(format!("field label does not support subscript: {}", path.text())),
        };
        errors.extend(wrong.into_iter().map(|detail| field.invalid(detail)));
        return;
    }
    let known = [VARIABLE_FIELDS, FILE_FIELDS, &OTHER_FIELDS].concat();
    if !known.contains(&path.text()) {
        unknown(format!("field label not supported: {}", path.text()));
    } else if !allowed.contains(&path.text()) {
        errors.push(path.unsupported(allowed));
    }
}

fn variable_resource(resource: &Cursor<'_>, errors: &mut Errors) {
    resource_of_container(resource, errors);
}

pub(super) fn file_resource(resource: &Cursor<'_>, errors: &mut Errors) {
    let container = resource.at("containerName");
    if container.required(errors) {
        resource_of_container(resource, errors);
    } else {
        divisor(resource, errors);
    }
}

fn resource_of_container(field: &Cursor<'_>, errors: &mut Errors) {
    let name = field.at("resource");
    if name.required(errors)
        && !RESOURCES.contains(&name.text())
        && !["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| name.text().starts_with(prefix))
    {
        errors.push(name.unsupported(RESOURCES));
    }
    divisor(field, errors);
}

/// Checks a divisor: one or a thousandth for CPU, units of bytes for other resources.
fn divisor(field: &Cursor<'_>, errors: &mut Errors) {
    const BYTES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let divisor = field.at("divisor");
    let Some(amount) = Quantity::from_value(divisor.value).filter(|amount| !amount.is_zero()) else { return };
    let text = amount.canonical();
    let resource = field.at("resource").text();
    let (is_allowed, detail) = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => (
            matches!(text.as_str(), "1" | "1m"),
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned(),
        ),
        Some(name) => {
            let title = match name {
                "ephemeral-storage" => "local ephemeral storage",
                "memory" => "memory",
                _ if name.starts_with("hugepages-") => "hugepages",
                _ => return,
            };
            (
                BYTES.contains(&text.as_str()),
                format!(
                    "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {title} resource"
                ),
            )
        }
        None => return,
    };
    if !is_allowed {
        let mut error = divisor.invalid(detail);
        error.bad_value = Some(resource.into());
        errors.push(error);
    }
}
