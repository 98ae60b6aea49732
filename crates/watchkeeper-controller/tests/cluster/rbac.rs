//! Roles and definitions, read back by a server.

use clap::Parser as _;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;
use watchkeeper_client::Client;
use watchkeeper_controller::{
    manager::Manager,
    options::{AccessCheck, ManagerArgs, ManagerOptions},
    rbac::{Access, Manifests, Verb, definition_yaml, missing_access, to_yaml},
};

use crate::support::token_client;

/// An online shop.
#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "shop.example.com",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "ShopStatus",
    shortname = "sh",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        schemars = "::schemars",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
struct ShopSpec {
    /// How many: at least "one", #not none.
    replicas: i32,
    #[serde(default)]
    yes: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct ShopStatus {
    ready: bool,
}

fn declared() -> Vec<Access> {
    vec![
        Access::new("apps", "deployments", Verb::READ),
        Access::new("apps", "deployments", [Verb::Create, Verb::Patch]),
        Access::new("shop.example.com", "shops", Verb::READ),
        Access::new("shop.example.com", "shops/status", [Verb::Patch]),
        Access::new("coordination.k8s.io", "leases", [Verb::Get, Verb::Create, Verb::Update])
            .in_namespace("default"),
    ]
}

/// Posts a YAML document to the path of its kind.
async fn install(client: &Client, document: &str) -> Value {
    let kind = document.lines().find_map(|line| line.strip_prefix("kind: ")).expect("a kind").to_owned();
    let namespace = document.lines().find_map(|line| line.strip_prefix("  namespace: ")).map(str::to_owned);
    let namespace = namespace.filter(|_| !kind.starts_with("Cluster"));
    let (api, resource) = match kind.as_str() {
        "ServiceAccount" => ("v1", "serviceaccounts"),
        "ClusterRole" => ("rbac.authorization.k8s.io/v1", "clusterroles"),
        "ClusterRoleBinding" => ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
        "Role" => ("rbac.authorization.k8s.io/v1", "roles"),
        "RoleBinding" => ("rbac.authorization.k8s.io/v1", "rolebindings"),
        "CustomResourceDefinition" => ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
        other => panic!("{other}"),
    };
    let mut request = client.rest().post().api(api).resource(resource);
    if let Some(namespace) = namespace {
        request = request.namespace(namespace);
    }
    let body = document.as_bytes().to_vec();
    request
        .raw_body("application/yaml", body)
        .send()
        .await
        .unwrap_or_else(|error| panic!("{error}\n{document}"))
}

#[tokio::test]
async fn installed_manifests_grant_exactly_the_declared_access() {
    let server = ApiServer::builder()
        .tokens("root,root,1,\"system:masters\"\nsecret,system:serviceaccount:default:keeper,2,")
        .unwrap()
        .rbac(true)
        .build();
    let (root, keeper) = (token_client(&server, "root"), token_client(&server, "secret"));
    let before = missing_access(&keeper, &declared()).await.unwrap();
    assert_eq!(before.len(), 12, "each verb once: {before:?}");

    let yaml = Manifests::new("keeper", "default", &declared()).to_yaml().unwrap();
    let documents: Vec<&str> = yaml.split("---\n").filter(|document| !document.is_empty()).collect();
    assert_eq!(documents.len(), 5, "{yaml}");
    for document in documents {
        install(&root, document).await;
    }
    assert_eq!(missing_access(&keeper, &declared()).await.unwrap(), [], "{yaml}");
    let more = [
        Access::new("apps", "deployments", [Verb::Delete]),
        Access::new("coordination.k8s.io", "leases", [Verb::Get]),
    ];
    let still_missing: Vec<String> =
        missing_access(&keeper, &more).await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        still_missing,
        ["delete deployments.apps in all namespaces", "get leases.coordination.k8s.io in all namespaces"]
    );
}

#[derive(Debug, clap::Parser)]
struct Program {
    #[command(flatten)]
    manager: ManagerArgs,
}

/// Installs roles from a run without `--leader-elect`, and enables the flag afterwards.
#[tokio::test(start_paused = true)]
async fn printed_roles_are_sufficient_for_leader_election_and_nothing_more() {
    let server = ApiServer::builder()
        .tokens("root,root,1,\"system:masters\"\nsecret,system:serviceaccount:shop:keeper,2,")
        .unwrap()
        .rbac(true)
        .build();
    let (root, keeper) = (token_client(&server, "root"), token_client(&server, "secret"));
    for namespace in ["shop", "locks"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        root.rest().post().api("v1").resource("namespaces").body(&namespace).send::<Value>().await.unwrap();
    }
    let flags = ["keeper", "--leader-election-namespace=locks"];
    let printed = Program::parse_from(flags).manager.manifests("keeper", "shop", Vec::new());
    for document in printed.to_yaml().unwrap().split("---\n").filter(|document| !document.is_empty()) {
        install(&root, document).await;
    }

    let args = Program::parse_from([&flags[..], &["--leader-elect"]].concat()).manager;
    let election = args.leader_election("keeper.example.com", "shop").unwrap();
    let mut options = ManagerOptions::default();
    options.access_check = AccessCheck::Fail;
    let manager = Manager::builder(keeper.clone()).options(options).leader_election(election).build();
    let (mut leadership, stop) = (manager.leadership().unwrap(), CancellationToken::new());
    let leads = async {
        let leads = leadership.acquired().await;
        stop.cancel();
        leads
    };
    let (ended, leads) = tokio::join!(manager.run_until(stop.clone()), leads);
    ended.unwrap();
    assert!(leads);

    let elsewhere = missing_access(&keeper, &[Access::leader_election("shop")]).await.unwrap();
    assert_eq!(elsewhere.len(), 3, "only where the lease is: {elsewhere:?}");
}

#[test]
fn without_declared_access_there_is_no_role() {
    let manifests = Manifests::new("keeper", "default", &[]);
    assert_eq!((manifests.cluster, manifests.namespaces), (None, Vec::new()));
    let yaml = Manifests::new("keeper", "default", &declared()[4..]).to_yaml().unwrap();
    assert!(!yaml.contains("ClusterRole"), "{yaml}");
    assert_eq!(
        yaml,
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: keeper\n  namespace: default\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: keeper\n  namespace: default\n\
         rules:\n- apiGroups:\n  - coordination.k8s.io\n  resources:\n  - leases\n  verbs:\n  - get\n  - create\n  - update\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: keeper\n  namespace: default\n\
         roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: Role\n  name: keeper\n\
         subjects:\n- kind: ServiceAccount\n  name: keeper\n  namespace: default\n"
    );
}

#[tokio::test]
async fn a_definition_as_yaml_is_accepted_by_a_server_and_matches_the_type() {
    use kube_core::CustomResourceExt as _;
    let yaml = definition_yaml::<Shop>().unwrap();
    assert!(
        yaml.starts_with("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"),
        "{yaml}"
    );
    let server = ApiServer::in_process();
    let made = install(&server.client().into(), yaml.trim_start_matches("---\n")).await;
    let wanted = serde_json::to_value(Shop::crd()).unwrap();
    let schema = |definition: &Value| definition["spec"]["versions"][0]["schema"].clone();
    assert_eq!(schema(&made), schema(&wanted));
    assert_eq!(made["spec"]["names"]["shortNames"], json!(["sh"]));
}

#[test]
fn ambiguous_yaml_strings_are_quoted() {
    let tricky = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {
        "yes": "yes", "no": "no", "null": "null", "number": "1.0", "octal": "0o7", "date": "2026-01-02", "tilde": "~",
        "lines": "a\nb\n", "colon": "a: b", "hash": "a # b", "dash": "- a", "empty": "", "quote": "it's \"so\"", "tab": "\ta", "blank": " a ",
    }});
    let yaml = to_yaml(std::slice::from_ref(&tricky)).unwrap();
    let read: Value = serde_saphyr::from_str(yaml.trim_start_matches("---\n")).unwrap();
    assert_eq!(read, tricky, "{yaml}");
}
