//! The objects on the server, as read and written by the driver.

use std::{fmt, path::Path, time::Duration};

use http::Request;
use k8s_openapi::{
    api::{
        authorization::v1::SubjectAccessReview,
        core::v1::Namespace,
        rbac::v1::{Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{Api, Client};
use kube_core::{
    ApiResource, DynamicObject, GroupVersionKind, ResourceExt as _,
    params::{DeleteParams, ListParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::timeout;
use watchkeeper::client::config::Loader;

use crate::{
    error::{During as _, Error, Result},
    follower::{State, Version},
    plane::FOLLOWER_USER,
};

/// The followed namespace.
pub(crate) const NAMESPACE: &str = "load";
const CRD: &str = "widgets.real.watchkeeper.dev";
const BINDING: &str = "follower";
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// A followed kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMaps,
    /// A custom resource.
    Widgets,
}

impl Kind {
    fn resource(self) -> ApiResource {
        match self {
            Self::ConfigMaps => ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap")),
            Self::Widgets => {
                ApiResource::from_gvk(&GroupVersionKind::gvk("real.watchkeeper.dev", "v1", "Widget"))
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConfigMaps => "configmaps",
            Self::Widgets => "widgets",
        })
    }
}

/// The API server, with the driver's permissions and without the proxy.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
}

impl Server {
    pub(crate) fn new(kubeconfig: &Path) -> Result<Self> {
        let client = Loader::new().file(kubeconfig).load()?.into_client()?;
        Ok(Self { client: client.kube() })
    }

    /// Returns whether `/readyz` reports success.
    pub(crate) async fn is_ready(&self) -> bool {
        let Ok(request) = Request::get("/readyz").body(Vec::new()) else { return false };
        matches!(timeout(READY_TIMEOUT, self.client.request_text(request)).await, Ok(Ok(_)))
    }

    /// Creates the namespace, the role of the followers and the custom resource definition.
    pub(crate) async fn set_up(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        create(&namespaces, json!({"metadata": {"name": NAMESPACE}})).await?;
        let roles: Api<Role> = Api::namespaced(self.client.clone(), NAMESPACE);
        let verbs = json!(["get", "list", "watch"]);
        create(
            &roles,
            json!({
                "metadata": {"name": BINDING},
                "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs},
                    {"apiGroups": ["real.watchkeeper.dev"], "resources": ["widgets"], "verbs": verbs},
                ],
            }),
        )
        .await?;
        self.grant().await?;
        self.install_definition().await
    }

    /// Grants the followers their permissions.
    pub(crate) async fn grant(&self) -> Result<()> {
        create(
            &self.bindings(),
            json!({
                "metadata": {"name": BINDING},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": FOLLOWER_USER}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": BINDING},
            }),
        )
        .await
    }

    /// Revokes the permissions of the followers.
    pub(crate) async fn revoke(&self) -> Result<()> {
        let deleted = self.bindings().delete(BINDING, &DeleteParams::default()).await;
        deleted.map(drop).during(|| "delete the role binding of the followers".to_owned())
    }

    /// Returns whether the server allows the followers to watch.
    pub(crate) async fn is_granted(&self) -> Result<bool> {
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = typed(json!({
            "metadata": {},
            "spec": {
                "user": FOLLOWER_USER,
                "resourceAttributes": {"namespace": NAMESPACE, "verb": "watch", "version": "v1", "resource": "configmaps"},
            },
        }))?;
        let reviewed = reviews.create(&PostParams::default(), &review).await;
        let reviewed = reviewed.during(|| "review the access of the followers".to_owned())?;
        Ok(reviewed.status.is_some_and(|status| status.allowed))
    }

    /// Creates the definition of the Widgets.
    pub(crate) async fn install_definition(&self) -> Result<()> {
        create(
            &self.definitions(),
            json!({
                "metadata": {"name": CRD},
                "spec": {
                    "group": "real.watchkeeper.dev",
                    "scope": "Namespaced",
                    "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                    }],
                },
            }),
        )
        .await
    }

    /// Deletes the definition of the Widgets, and with it all Widgets.
    pub(crate) async fn delete_definition(&self) -> Result<()> {
        let deleted = self.definitions().delete(CRD, &DeleteParams::default()).await;
        deleted.map(drop).during(|| format!("delete {CRD}"))
    }

    /// Returns whether the definition of the Widgets exists, even if it is being deleted.
    pub(crate) async fn has_definition(&self) -> Result<bool> {
        Ok(self.definitions().get_opt(CRD).await.during(|| format!("get {CRD}"))?.is_some())
    }

    /// Returns the API of a kind, for requests for single objects.
    pub(crate) fn objects(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), NAMESPACE, &kind.resource())
    }

    /// Creates an object and returns its version. None if the kind is not served (yet).
    pub(crate) async fn create(&self, kind: Kind, name: &str) -> Result<Option<Version>> {
        match self.objects(kind).create(&PostParams::default(), &object(kind, name, 0)).await {
            Ok(created) => Ok(Some(version(&created))),
            Err(kube_client::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).during(|| format!("create {kind} {name}")),
        }
    }

    /// Returns the state of a kind by a consistent read.
    pub(crate) async fn list(&self, kind: Kind) -> Result<State> {
        let list = self.objects(kind).list_metadata(&ListParams::default()).await;
        let list = list.during(|| format!("list {kind}"))?;
        let key = |name: &str| format!("{NAMESPACE}/{name}");
        Ok(list.iter().map(|object| (key(&object.name_any()), version(object))).collect())
    }

    /// Returns the revision of the storage.
    pub(crate) async fn revision(&self) -> Result<u64> {
        let page = self.objects(Kind::ConfigMaps).list_metadata(&ListParams::default().limit(1)).await;
        let page = page.during(|| "read the revision of the server".to_owned())?;
        let text = page.metadata.resource_version.unwrap_or_default();
        text.parse().map_err(|_| Error::Revision { text })
    }

    fn bindings(&self) -> Api<RoleBinding> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }
}

/// Returns an object of a kind whose content depends on `round`.
pub(crate) fn object(kind: Kind, name: &str, round: u64) -> DynamicObject {
    let object = DynamicObject::new(name, &kind.resource());
    // About as large as a small ConfigMap.
    object.data(json!({"data": {"round": round.to_string(), "padding": "0123456789abcdef".repeat(32)}}))
}

fn version(object: &impl kube_core::Resource) -> Version {
    let metadata = object.meta();
    Version {
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Clone + fmt::Debug + Serialize + DeserializeOwned + kube_core::Resource,
{
    let object: K = typed(object)?;
    let created = api.create(&PostParams::default(), &object).await;
    created.map(drop).during(|| format!("create {} in {}", object.name_any(), api.resource_url()))
}

fn typed<K: DeserializeOwned>(object: Value) -> Result<K> {
    serde_json::from_value(object)
        .map_err(kube_client::Error::SerdeError)
        .during(|| "write an object".to_owned())
}
