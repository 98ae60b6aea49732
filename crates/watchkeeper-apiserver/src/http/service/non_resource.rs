//! Requests outside the resources: discovery, OpenAPI, health, metrics, keys.

use http::{Method, Response, request::Parts};
use serde_json::json;

use super::{
    super::{body::ResponseBody, discovery, health, metrics, negotiate::Media, respond},
    Api,
};
use crate::rest::{ApiResponse, Payload, errors};

impl Api {
    /// Returns the 404 for a version that is not served. Built-in groups return a `Status`; a group that does not exist has
    /// no handler and returns plain text.
    pub(super) fn no_such_version(&self, group: &str) -> Response<ResponseBody> {
        let kinds = self.rest.registry.kinds();
        let is_built_in = kinds.group(group).is_some_and(|group| {
            group.versions.iter().flat_map(|version| &version.kinds).any(|kind| kind.custom.is_none())
        });
        if is_built_in || group.is_empty() {
            respond::error(&errors::no_such_resource(), Media::Json)
        } else {
            respond::page_not_found()
        }
    }

    /// Responds to a request whose path is not that of a resource.
    pub(super) fn other(&self, parts: &Parts, segments: &[String]) -> Response<ResponseBody> {
        if parts.uri.path().starts_with("//") {
            return respond::page_not_found();
        }
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let is_get = parts.method == Method::GET || parts.method == Method::HEAD;
        let value = match words.as_slice() {
            [] => json!({"paths": health::PATHS}),
            ["version"] => health::version(),
            ["metrics"] if is_get => {
                let text = self.metrics.encode(&self.rest.registry.kinds(), &*self.rest.store);
                return respond::with_type(200, metrics::CONTENT_TYPE, ResponseBody::whole(text));
            }
            ["metrics"] => return respond::error(&errors::method_not_allowed(), Media::Json),
            [".well-known", "openid-configuration"] if is_get => {
                return respond::published("application/json", &self.rest.issuer.to_configuration());
            }
            ["openid", "v1", "jwks"] if is_get => {
                return respond::published("application/jwk-set+json", &self.rest.issuer.to_key_set());
            }
            ["healthz" | "readyz" | "livez"] => return respond::text(200, "ok"),
            ["healthz" | "readyz" | "livez", check] if health::is_check(check) => {
                return respond::text(200, "ok");
            }
            words => {
                let kinds = self.rest.registry.kinds();
                let found = discovery::respond(&self.documents, &kinds, words, &parts.headers)
                    .or_else(|| discovery::openapi(&self.documents, &kinds, words, &parts.headers));
                return match found {
                    Some(_) if !is_get => respond::error(&errors::method_not_allowed(), Media::Json),
                    Some(response) => response,
                    None => match words {
                        ["apis", group, _] => self.no_such_version(group),
                        ["api", ..] => self.no_such_version(""),
                        _ => respond::page_not_found(),
                    },
                };
            }
        };
        if !is_get {
            return respond::error(&errors::method_not_allowed(), Media::Json);
        }
        respond::success(
            ApiResponse { code: 200, payload: Payload::Value(value), warnings: Vec::new() },
            Media::Json,
            true,
            None,
        )
    }
}
