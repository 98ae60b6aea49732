//! Annotations with a meaning for pods, and the fields that replaced them.

use super::security::ALL_CONTAINERS;
use crate::strategy::{
    cursor::{Cursor, Errors},
    formats,
};

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Checks the annotations of a pod or a template with this spec.
pub(super) fn check(annotations: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    let mirror = annotations.key(MIRROR);
    if mirror.is_set() && spec.at("nodeName").is_empty() {
        errors.push(mirror.invalid("must set spec.nodeName if mirror pod annotation is set"));
    }
    let cost = annotations.key(DELETION_COST);
    if cost.is_set() && !is_deletion_cost(cost.text()) {
        errors.push(cost.invalid("must be a 32bit integer"));
    }
    for (name, value) in annotations.entries() {
        if name == SECCOMP_POD || name.starts_with(SECCOMP_CONTAINER) {
            seccomp(&annotations.named(name, value.value), errors);
        }
    }
    for (name, value) in annotations.entries() {
        let Some(container) = name.strip_prefix(APP_ARMOR) else { continue };
        let is_known = ALL_CONTAINERS
            .iter()
            .any(|list| spec.at(list).items().any(|known| known.at("name").text() == container));
        if !is_known {
            errors.push(value.invalid("container not found"));
        }
        let profile = value.text();
        if !matches!(profile, "" | "runtime/default" | "unconfined") && !profile.starts_with("localhost/") {
            errors.push(value.invalid(format!("invalid AppArmor profile name: {profile:?}")));
        }
    }
}

/// Returns whether a text is a number without a plus sign or leading zeros.
fn is_deletion_cost(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|number| number.to_string() == text)
}

fn seccomp(profile: &Cursor<'_>, errors: &mut Errors) {
    match profile.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        text => match text.strip_prefix("localhost/") {
            Some(path) => {
                errors
                    .extend(formats::descending_path(path).into_iter().map(|detail| profile.invalid(detail)));
            }
            None => errors.push(profile.invalid("must be a valid seccomp profile")),
        },
    }
}

/// Rejects annotations that contradict the fields of a new pod or a template.
pub(super) fn same_as_fields(annotations: &Cursor<'_>, spec: &Cursor<'_>, errors: &mut Errors) {
    let of_pod = spec.at("securityContext");
    let profile = of_pod.at("seccompProfile");
    let annotation = annotations.key(SECCOMP_POD);
    if annotation.is_set() {
        matches(annotation.text(), &profile, "seccomp", errors);
    }
    for list in ALL_CONTAINERS {
        for container in spec.at(list).items() {
            let key = format!("{SECCOMP_CONTAINER}{}", container.at("name").text());
            let context = container.at("securityContext");
            let annotation = annotations.key(&key);
            if annotation.is_set() {
                matches(annotation.text(), &context.at("seccompProfile"), "seccomp", errors);
            }
        }
    }
    if spec.at("os").at("name").text() == "windows" {
        return;
    }
    for list in ALL_CONTAINERS {
        for container in spec.at(list).items() {
            let key = format!("{APP_ARMOR}{}", container.at("name").text());
            let annotation = annotations.key(&key);
            if !annotation.is_set() {
                continue;
            }
            let context = container.at("securityContext");
            let own = context.at("appArmorProfile");
            let inherited = of_pod.at("appArmorProfile");
            let value = if own.is_set() { own.value } else { inherited.value };
            matches(annotation.text(), &context.named("appArmorProfile", value), "apparmor", errors);
        }
    }
}

fn matches(annotation: &str, profile: &Cursor<'_>, what: &str, errors: &mut Errors) {
    let is_default = annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default");
    let localhost = annotation.strip_prefix("localhost/");
    let has_type = match profile.at("type").text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => is_default,
        "Localhost" => localhost.is_some(),
        _ => true,
    };
    if !has_type {
        errors.push(profile.at("type").forbidden(format!("{what} type in annotation and field must match")));
    } else if profile.at("type").text() == "Localhost"
        && localhost != profile.at("localhostProfile").value.as_str()
    {
        errors.push(
            profile
                .at("localhostProfile")
                .forbidden(format!("{what} profile in annotation and field must match")),
        );
    }
}

/// Rejects changes of annotations that are immutable after creation.
pub(super) fn check_change(annotations: &Cursor<'_>, old: &Cursor<'_>, errors: &mut Errors) {
    let fixed = |name: &str| {
        if name == MIRROR {
            Some("mirror pod annotation")
        } else {
            name.starts_with(APP_ARMOR).then_some("AppArmor annotations")
        }
    };
    for (name, before) in old.entries() {
        let now = annotations.key(name);
        if let Some(title) = fixed(name).filter(|_| now.value != before.value) {
            errors.push(now.forbidden(format!("may not remove or update {title}")));
        }
    }
    for (name, now) in annotations.entries() {
        if let Some(title) = fixed(name).filter(|_| !old.key(name).is_set()) {
            errors.push(now.forbidden(format!("may not add {title}")));
        }
    }
}
