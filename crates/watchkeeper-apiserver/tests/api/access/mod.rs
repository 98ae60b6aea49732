//! Authentication, impersonation and authorization, as seen by clients.

mod accounts;
mod grants;
mod impersonation;
mod reviews;

use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;
use watchkeeper_apiserver::ApiServer;

use crate::support::{Watch, read};

/// A server with RBAC, an administrator, and the user `ann` in the group `dev` without permissions.
pub(crate) struct Guarded {
    pub(crate) server: ApiServer,
}

impl Guarded {
    pub(crate) fn new() -> Self {
        Self::with(ApiServer::builder())
    }

    pub(crate) fn with(builder: watchkeeper_apiserver::ApiServerBuilder) -> Self {
        let tokens = "admin-token,admin,1,\"system:masters\"\nann-token,ann,2,dev\n";
        Self { server: builder.seed(7).rbac(true).tokens(tokens).unwrap().build() }
    }

    pub(crate) fn admin(&self) -> Caller<'_> {
        self.bearer("admin-token")
    }

    pub(crate) fn ann(&self) -> Caller<'_> {
        self.bearer("ann-token")
    }

    pub(crate) fn bearer(&self, token: &str) -> Caller<'_> {
        Caller { server: &self.server, headers: vec![("authorization".into(), format!("Bearer {token}"))] }
    }

    /// Grants `rules` cluster-wide to `subject`.
    pub(crate) async fn grant(&self, name: &str, subject: Value, rules: Value) {
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        self.admin().ok("POST", roles, json!({"metadata": {"name": name}, "rules": rules})).await;
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
        let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        self.admin().ok("POST", bindings, binding).await;
    }
}

pub(crate) fn ann() -> Value {
    json!({"kind": "User", "name": "ann"})
}

/// A client with its own credentials and headers.
#[derive(Clone)]
pub(crate) struct Caller<'a> {
    server: &'a ApiServer,
    headers: Vec<(String, String)>,
}

impl Caller<'_> {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = Request::builder().method(method).uri(path).header("content-type", content_type);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        read(self.server.service().oneshot(request.body(body).unwrap()).await.unwrap()).await
    }

    /// Starts a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let mut request = Request::builder().uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = self.server.service().oneshot(request.body(String::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        Watch { body: response.into_body() }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.send(method, path, "application/json", &body).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, Value::Null).await
    }

    pub(crate) async fn apply(&self, path: &str, body: &Value) -> (u16, Value) {
        let path = format!("{path}{}fieldManager=test", if path.contains('?') { '&' } else { '?' });
        self.send("PATCH", &path, "application/apply-patch+yaml", body).await
    }

    pub(crate) async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, reply) = self.call(method, path, body).await;
        assert!((200..300).contains(&code), "{method} {path}: {reply}");
        reply
    }

    /// Returns the user that the server authenticates this client as.
    pub(crate) async fn identity(&self) -> Value {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review = self.ok("POST", path, json!({})).await;
        review["status"]["userInfo"].clone()
    }
}
