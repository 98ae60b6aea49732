//! The endpoints for version and health.

use serde_json::{Value, json};

/// Returns the version of Kubernetes whose API this is.
pub(super) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": concat!("v1.37.0+watchkeeper-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-08-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": concat!("linux/", "amd64"),
    })
}

/// Returns whether a path below `/healthz`, `/livez` or `/readyz` names an existing check.
pub(super) fn is_check(check: &str) -> bool {
    matches!(check, "ping" | "log" | "etcd" | "informer-sync" | "shutdown")
}

/// The served paths besides those of groups.
pub(super) const PATHS: &[&str] = &[
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/healthz/etcd",
    "/healthz/log",
    "/healthz/ping",
    "/livez",
    "/livez/ping",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/readyz",
    "/readyz/ping",
    "/version",
];
