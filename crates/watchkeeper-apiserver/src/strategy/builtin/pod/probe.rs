//! Probes and lifecycle hooks of containers.

use crate::strategy::{
    cursor::{Cursor, Errors},
    formats,
    table::{
        self,
        Rule::{AtLeast, Check, Enum, EnumIfSet, InRange, PortOrName, Required},
        RuleTable,
    },
};

/// The handlers in the order of checking, with their rules. `sleep` is checked separately, because it depends on the pod.
const HANDLERS: [(&str, RuleTable); 5] = [
    ("exec", &[("command", &[Required])]),
    (
        "httpGet",
        &[
            ("path", &[Required]),
            ("port", &[PortOrName]),
            ("scheme", &[Enum(&["HTTP", "HTTPS"])]),
            ("", &[Check(headers)]),
            ("protocol", &[EnumIfSet(&["HTTP1", "HTTP2"])]),
        ],
    ),
    ("tcpSocket", &[("port", &[PortOrName])]),
    ("grpc", &[("port", &[InRange(1, 65535)]), ("mode", &[EnumIfSet(&["Plaintext", "TLS"])])]),
    ("sleep", &[]),
];

const PROBE: RuleTable = &[
    ("initialDelaySeconds", &[AtLeast(0)]),
    ("timeoutSeconds", &[AtLeast(0)]),
    ("periodSeconds", &[AtLeast(0)]),
    ("successThreshold", &[AtLeast(0)]),
    ("failureThreshold", &[AtLeast(0)]),
    ("terminationGracePeriodSeconds", &[Check(positive_grace)]),
];

/// Checks fields that only a long-running container can have. `grace` is the grace period of the pod.
pub(super) fn running(container: &Cursor<'_>, grace: Option<i64>, errors: &mut Errors) {
    let lifecycle = container.at("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.at(hook);
        if hook.is_set() {
            // Upstream ignores a grpc handler of a hook.
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], grace, errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, errors);
        table::check(PROBE, &probe, errors);
        let threshold = probe.at("successThreshold");
        if name != "readinessProbe" && threshold.int() != Some(1) {
            errors.push(threshold.invalid("must be 1"));
        }
        let period = probe.at("terminationGracePeriodSeconds");
        if name == "readinessProbe" && period.is_set() {
            errors.push(period.invalid("must not be set for readinessProbes"));
        }
    }
}

fn positive_grace(period: &Cursor<'_>, errors: &mut Errors) {
    if period.int().is_some_and(|seconds| seconds <= 0) {
        errors.push(period.invalid("must be greater than 0"));
    }
}

fn handler(of: &Cursor<'_>, allowed: &[&str], grace: Option<i64>, errors: &mut Errors) {
    let mut has_handler = false;
    for (name, rules) in HANDLERS.iter().filter(|(name, _)| allowed.contains(name)) {
        let handler = of.at(name);
        if !handler.is_set() {
            continue;
        }
        if has_handler {
            errors.push(handler.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        has_handler = true;
        table::check(rules, &handler, errors);
        let seconds = handler.at("seconds").int().unwrap_or(0);
        if let (&"sleep", Some(grace)) = (name, grace)
            && (seconds < 0 || seconds > grace)
        {
            errors.push(handler.invalid(format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            )));
        }
    }
    if !has_handler {
        errors.push(of.missing("must specify a handler type"));
    }
}

/// Checks headers. Upstream reports an invalid name at the whole list.
fn headers(get: &Cursor<'_>, errors: &mut Errors) {
    let list = get.at("httpHeaders");
    for header in list.items() {
        let name = header.at("name");
        for detail in formats::http_header(name.text()) {
            let mut error = list.invalid(detail);
            error.bad_value = Some(name.text().into());
            errors.push(error);
        }
    }
}
