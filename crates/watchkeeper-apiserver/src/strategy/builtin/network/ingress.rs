//! Ingress and `IngressClass`.

use serde_json::Value;

use super::super::row::{CLUSTER, PLAIN, StrategyRow};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, Str},
    },
    formats, names,
    table::{
        self, FieldCondition,
        Rule::{
            Absent, Check, Format, FormatIfSet, Immutable, MaxLength, OneOf, Pointer, Present, Required,
            Struct, When,
        },
        RuleTable,
    },
};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) const INGRESS: StrategyRow = StrategyRow {
    generation: &["spec"],
    status: Some(|| None),
    zeros: &[("", "spec", EmptyObject), ("", "status", EmptyObject), ("status", "loadBalancer", EmptyObject)],
    table: &[("spec", &[Struct(SPEC)])],
    status_table: &[("status.loadBalancer.ingress[]", &[Struct(LOAD_BALANCER_INGRESS)])],
    validate_create: |object, errors| {
        let (metadata, spec) = (object.at("metadata"), object.at("spec"));
        let annotations = metadata.at("annotations");
        let (annotation, class) = (annotations.key(CLASS_ANNOTATION), spec.at("ingressClassName"));
        if annotation.is_set() && class.is_set() && annotation.value != class.value {
            let mut error = annotation.invalid("must match `ingressClassName` when both are specified");
            error.path = format!("annotations.{CLASS_ANNOTATION}");
            errors.push(error);
        }
    },
    warnings: |object, old| {
        let annotation = "/metadata/annotations/kubernetes.io~1ingress.class";
        if old.is_none() && object.pointer(annotation).is_some() {
            return vec!["annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead".to_owned()];
        }
        Vec::new()
    },
    ..PLAIN
};

pub(super) const INGRESS_CLASS: StrategyRow = StrategyRow {
    generation: &["spec"],
    defaults: |object| {
        edit::fill_all(object, &[("", "spec", EmptyObject), ("spec.parameters", "scope", Str("Cluster"))]);
    },
    table: &[
        ("spec.controller", &[MaxLength(250)]),
        ("spec.controller", &[Required, Format(formats::domain_prefixed_path), Immutable]),
        ("spec.parameters", &[Pointer(PARAMETERS)]),
    ],
    ..CLUSTER
};

const SPEC: RuleTable = &[
    ("", &[Check(has_rules)]),
    ("defaultBackend", &[Pointer(BACKEND)]),
    ("rules[]", &[Struct(RULE)]),
    ("tls[]", &[Struct(TLS)]),
    ("ingressClassName", &[FormatIfSet(names::dns_subdomain)]),
];

const RULE: RuleTable =
    &[("host", &[Check(host)]), ("http", &[Pointer(&[("paths", &[Required]), ("paths[]", &[Check(path)])])])];

const TLS: RuleTable = &[("hosts[]", &[Check(tls_host)]), ("secretName", &[Format(names::dns_subdomain)])];

const BACKEND: RuleTable = &[("", &[Check(backend)])];

const RESOURCE: RuleTable = &[
    ("apiGroup", &[FormatIfSet(names::dns_subdomain)]),
    ("kind", &[Required, Format(names::path_segment)]),
    ("name", &[Required, Format(names::path_segment)]),
];

const PARAMETERS: RuleTable = &[
    ("", &[Struct(RESOURCE)]),
    ("scope", &[Present(""), OneOf(&["Cluster", "Namespace"])]),
    (
        "",
        &[
            When(
                FieldCondition::Is("scope", "Namespace"),
                &[(
                    "namespace",
                    &[Present("`parameters.scope` is set to 'Namespace'"), FormatIfSet(names::dns_label)],
                )],
            ),
            When(
                FieldCondition::Is("scope", "Cluster"),
                &[("namespace", &[Absent("`parameters.scope` is set to 'Cluster'")])],
            ),
        ],
    ),
];

const LOAD_BALANCER_INGRESS: RuleTable =
    &[("ip", &[Format(names::ip)]), ("hostname", &[Format(names::dns_subdomain), Check(no_ip)])];

fn has_rules(spec: &Cursor<'_>, errors: &mut Errors) {
    if spec.at("rules").is_empty() && !spec.at("defaultBackend").is_set() {
        let mut error = spec.invalid("either `defaultBackend` or `rules` must be specified");
        error.bad_value = Some(Value::Null);
        errors.push(error);
    }
}

fn no_ip(host: &Cursor<'_>, errors: &mut Errors) {
    if formats::is_ip(host.text()) {
        errors.push(host.invalid("must be a DNS name, not an IP address"));
    }
}

fn host(host: &Cursor<'_>, errors: &mut Errors) {
    no_ip(host, errors);
    if !host.is_empty() {
        tls_host(host, errors);
    }
}

fn tls_host(host: &Cursor<'_>, errors: &mut Errors) {
    let is_wildcard = host.text().contains('*');
    let format = if is_wildcard { names::wildcard_subdomain } else { names::dns_subdomain };
    errors.extend(format(host.text()).into_iter().map(|detail| host.invalid(detail)));
}

fn path(of: &Cursor<'_>, errors: &mut Errors) {
    let (kind, path) = (of.at("pathType"), of.at("path"));
    if !kind.is_set() {
        errors.push(kind.missing("pathType must be specified"));
        return;
    }
    match kind.text() {
        "Exact" | "Prefix" => {
            if !path.text().starts_with('/') {
                let mut error = path.invalid("must be an absolute path");
                error.bad_value = Some(path.text().into());
                errors.push(error);
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.text().contains(sequence) {
                    errors.push(path.invalid(format!("must not contain '{sequence}'")));
                }
            }
            for suffix in ["/..", "/."] {
                if path.text().ends_with(suffix) {
                    errors.push(path.invalid(format!("cannot end with '{suffix}'")));
                }
            }
        }
        "ImplementationSpecific" => path.format(formats::absolute_path, errors),
        _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    backend(&of.at("backend"), errors);
}

fn backend(backend: &Cursor<'_>, errors: &mut Errors) {
    let empty = |detail: &str| {
        let mut error = backend.invalid(detail);
        error.bad_value = Some("".into());
        error
    };
    let (service, resource) = (backend.at("service"), backend.at("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => errors.push(empty("cannot set both resource and service backends")),
        (false, false) => errors.push(empty("resource or service backend is required")),
        (false, true) => table::check(RESOURCE, &resource, errors),
        (true, false) => {
            service.at("name").required_format(names::dns_label, errors);
            let port = service.at("port");
            let (name, number) = (port.at("name"), port.at("number"));
            let has_number = number.int().is_some_and(|number| number != 0);
            match (!name.is_empty(), has_number) {
                (true, true) => errors.push(empty("cannot set both port name & port number")),
                (true, false) => name.format(names::port_name, errors),
                (false, true) => number.between(1, 65535, errors),
                (false, false) => errors.push(backend.missing("port name or number is required")),
            }
        }
    }
}
