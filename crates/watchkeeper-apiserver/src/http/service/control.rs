//! Actions on the server itself, for tests.

use http::{Method, Response};
use serde_json::{Value, json};

use super::{
    super::{body::ResponseBody, negotiate::Media, respond},
    Api,
};
use crate::{
    rest::{ApiResponse, Payload, errors},
    status::ApiError,
};

impl Api {
    /// Executes an action.
    pub(super) fn control(&self, method: &Method, body: &[u8]) -> Response<ResponseBody> {
        if method != Method::POST {
            return respond::error(&errors::method_not_allowed(), Media::Json);
        }
        let action = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|request| request.get("action").and_then(Value::as_str).map(str::to_owned));
        match action.as_deref() {
            Some("compact") => {
                self.rest.store.compact();
                let version = self.rest.store.version().to_string();
                let value = json!({"action": "compact", "resourceVersion": version});
                let result = ApiResponse { code: 200, payload: Payload::Value(value), warnings: Vec::new() };
                respond::success(result, Media::Json, false, None)
            }
            _ => respond::error(
                &ApiError::bad_request("control: unknown action; send the body {\"action\": \"compact\"}"),
                Media::Json,
            ),
        }
    }
}
