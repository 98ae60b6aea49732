//! A session with kubectl against a listening server: typical commands and their output.

mod commands;
#[path = "../peers/programs.rs"]
mod programs;
mod session;

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
};

use session::Kubectl;
use watchkeeper_apiserver::ApiServer;

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: pause:1
        ports: [{containerPort: 80}]
";

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 10}
              colour: {type: string, default: red}
            x-kubernetes-validations:
            - {rule: "self.size >= oldSelf.size", message: "widgets never shrink"}
"#;

/// Runs `session` with a new server.
async fn with_server(session: fn(&Kubectl)) {
    let server = ApiServer::in_process();
    let endpoint = server.listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
    run_session(&server, endpoint.kubeconfig(None), session).await;
}

/// Runs `session` as the administrator of a server with TLS and RBAC.
async fn with_secure_server(session: fn(&Kubectl)) {
    let tokens = "admin-token,admin,1,\"system:masters\"";
    let server = ApiServer::builder().rbac(true).tokens(tokens).expect("a token file").build();
    let endpoint = server.listen_tls(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
    run_session(&server, endpoint.kubeconfig(Some("admin-token")), session).await;
}

async fn run_session(server: &ApiServer, text: String, session: fn(&Kubectl)) {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, text).expect("the folder can be written");
    tokio::task::spawn_blocking(move || session(&Kubectl::new(&kubeconfig)))
        .await
        .expect("the session passes");
    server.shutdown().await;
}

macro_rules! sessions {
    ($($name:ident: $session:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            with_server($session).await;
        }
    )*};
}

#[tokio::test(flavor = "multi_thread")]
async fn each_listed_kubectl_command_has_the_expected_result() {
    with_secure_server(commands::run_all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_impersonates_users_and_uses_service_account_tokens() {
    with_secure_server(|kubectl| {
        let denied = kubectl.fails_with("get pods --as nobody", "");
        assert!(denied.contains("Forbidden") && denied.contains("\"nobody\""), "{denied}");
        kubectl.ok("create rolebinding viewers --clusterrole=view --group=viewers");
        assert!(kubectl.ok("get pods --as nobody --as-group viewers").contains("No resources found"));
        assert!(kubectl.ok("auth can-i list pods --as nobody --as-group viewers").starts_with("yes"));
        let who = kubectl.ok("auth whoami --as nobody --as-group viewers --as-uid 7");
        assert!(["nobody", "viewers", "system:authenticated"].iter().all(|word| who.contains(word)), "{who}");

        kubectl.ok("create serviceaccount robot");
        let token = kubectl.ok("create token robot");
        let who = kubectl.ok(&format!("auth whoami --token={}", token.trim()));
        assert!(who.contains("system:serviceaccount:default:robot"), "{who}");
        let denied = kubectl.fails_with(&format!("get secrets --token={}", token.trim()), "");
        assert!(denied.contains("Forbidden"), "{denied}");
        kubectl.ok("delete serviceaccount robot");
        let gone = kubectl.fails_with(&format!("get secrets --token={}", token.trim()), "");
        assert!(gone.contains("Unauthorized") || gone.contains("logged in"), "{gone}");
    })
    .await;
}

sessions! {
    kubectl_discovers_served_resources: |kubectl| {
        assert!(kubectl.ok("version").contains("Server Version: v1.37"));
        let versions = kubectl.ok("api-versions");
        for version in ["v1", "apps/v1", "batch/v1", "apiextensions.k8s.io/v1", "rbac.authorization.k8s.io/v1"] {
            assert!(versions.lines().any(|line| line == version), "{version} in {versions}");
        }
        let resources = kubectl.ok("api-resources");
        assert!(resources.lines().any(|line| line.split_whitespace().eq(["pods", "po", "v1", "true", "Pod"])), "{resources}");
        let explained = kubectl.ok("explain deployment.spec.strategy.rollingUpdate");
        assert!(explained.contains("maxSurge") && explained.contains("IntOrString"), "{explained}");
        assert!(kubectl.ok("cluster-info").contains("is running at"));
        assert!(kubectl.ok("auth can-i create pods").starts_with("yes"));
        assert!(kubectl.ok("get ns").contains("kube-system"));
    };

    kubectl_creates_reads_labels_and_deletes: |kubectl| {
        assert_eq!(kubectl.ok("create configmap cm --from-literal=a=b").trim(), "configmap/cm created");
        assert!(kubectl.fails_with("create configmap cm", "").contains("already exists"));
        assert_eq!(kubectl.ok("label cm cm tier=front").trim(), "configmap/cm labeled");
        assert_eq!(kubectl.ok("annotate cm cm note=x").trim(), "configmap/cm annotated");
        assert_eq!(kubectl.ok("get cm -l tier=front -o name").trim(), "configmap/cm");
        assert!(kubectl.ok("get cm -l tier=back").contains("No resources found"));
        let table = kubectl.ok("get cm cm");
        assert!(table.starts_with("NAME") && table.contains("DATA") && table.contains("AGE"), "{table}");
        assert!(kubectl.ok("get cm cm -o yaml").contains("tier: front"));
        assert_eq!(kubectl.ok("get cm cm -o jsonpath={.data.a}"), "b");
        assert!(kubectl.ok("describe cm cm").contains("Name:"));
        assert!(kubectl.ok("create secret generic s --from-literal=p=q").contains("created"));
        assert!(kubectl.ok("create serviceaccount robot").contains("created"));
        assert!(kubectl.ok("run pod --image=pause").contains("pod/pod created"));
        assert!(kubectl.ok("get pod pod").contains("Pending"));
        assert!(kubectl.ok("expose pod pod --port=80").contains("service/pod exposed"));
        assert!(kubectl.ok("delete pod pod --now").contains("deleted"));
        assert!(kubectl.ok("delete cm cm").contains("deleted"));
        assert!(kubectl.fails_with("get cm cm", "").contains("NotFound"));
        assert!(kubectl.fails_with("get nosuchkind", "").contains("the server doesn't have a resource type"));
    };

    kubectl_applies_on_the_client_side: |kubectl| {
        assert_eq!(kubectl.ok_with("apply -f -", DEPLOYMENT).trim(), "deployment.apps/web created");
        assert_eq!(kubectl.ok_with("apply -f -", DEPLOYMENT).trim(), "deployment.apps/web unchanged");
        let changed = DEPLOYMENT.replace("replicas: 2", "replicas: 5");
        let difference = kubectl.run_with("diff -f -", &changed);
        assert_eq!(difference.status.code(), Some(1), "there is a difference");
        assert!(String::from_utf8_lossy(&difference.stdout).contains("+  replicas: 5"));
        assert_eq!(kubectl.ok_with("apply -f -", &changed).trim(), "deployment.apps/web configured");
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.replicas}"), "5");
        // kubectl removes what is no longer applied, by the annotation it maintains.
        let without_label = changed.replace("  labels: {app: web}\nspec", "spec");
        kubectl.ok_with("apply -f -", &without_label);
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.metadata.labels}"), "");
        let wrong = DEPLOYMENT.replace("replicas: 2", "replicaz: 2");
        assert!(kubectl.fails_with("apply -f -", &wrong).contains("unknown field"), "validation is strict");
        assert!(kubectl.ok_with("apply --dry-run=server -f -", DEPLOYMENT).contains("(server dry run)"));
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.replicas}"), "5", "a dry run changes nothing");
    };

    kubectl_applies_on_the_server_side: |kubectl| {
        assert!(kubectl.ok_with("apply --server-side -f -", DEPLOYMENT).contains("serverside-applied"));
        kubectl.ok("scale deploy web --replicas=7");
        let conflict = kubectl.fails_with("apply --server-side -f -", DEPLOYMENT);
        assert!(conflict.contains("conflict") && conflict.contains(".spec.replicas"), "{conflict}");
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.replicas}"), "7");
        kubectl.ok_with("apply --server-side --force-conflicts -f -", DEPLOYMENT);
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.replicas}"), "2");
        kubectl.ok_with("apply --server-side -f -", &DEPLOYMENT.replace("        ports: [{containerPort: 80}]\n", ""));
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.template.spec.containers[0].ports}"), "");
        assert!(kubectl.ok("get deploy web --show-managed-fields -o yaml").contains("operation: Apply"));
    };

    kubectl_edits_patches_scales_and_replaces: |kubectl| {
        kubectl.ok("create configmap cm --from-literal=text=before-edit");
        assert_eq!(kubectl.ok("edit cm cm").trim(), "configmap/cm edited");
        assert_eq!(kubectl.ok("get cm cm -o jsonpath={.data.text}"), "after-edit");
        for (kind, patch, text) in [
            ("strategic", r#"{"data":{"text":"one"}}"#, "one"),
            ("merge", r#"{"data":{"text":"two"}}"#, "two"),
            ("json", r#"[{"op":"replace","path":"/data/text","value":"three"}]"#, "three"),
        ] {
            kubectl.ok(&format!("patch cm cm --type={kind} -p {patch}"));
            assert_eq!(kubectl.ok("get cm cm -o jsonpath={.data.text}"), text, "{kind}");
        }
        kubectl.ok_with("create -f -", DEPLOYMENT);
        // Containers merge by name: the image changes, the ports stay.
        kubectl.ok("set image deploy/web main=pause:2");
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.template.spec.containers[0].image}"), "pause:2");
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.template.spec.containers[0].ports[0].containerPort}"), "80");
        assert!(kubectl.ok("scale deploy web --replicas=4").contains("scaled"));
        assert_eq!(kubectl.ok("get deploy web -o jsonpath={.spec.replicas}/{.metadata.generation}"), "4/3");
        assert!(kubectl.ok_with("replace -f -", DEPLOYMENT).contains("replaced"));
        assert!(kubectl.fails_with("replace -f -", &DEPLOYMENT.replace("app: web", "app: other")).contains("immutable"));
        let status = r#"{"status":{"replicas":2,"readyReplicas":2,"availableReplicas":2}}"#;
        kubectl.ok(&format!("patch deploy web --subresource=status --type=merge -p {status}"));
        assert!(kubectl.ok("get deploy web").contains("2/2"));
    };

    kubectl_watches_and_waits: |kubectl| {
        kubectl.ok("create configmap first");
        let mut watching = kubectl.start("get cm --watch --no-headers");
        let mut lines = BufReader::new(watching.stdout.take().expect("piped")).lines();
        let mut next = || lines.next().expect("the watch continues").expect("text");
        assert!(next().starts_with("first"));
        kubectl.ok("create configmap second");
        assert!(next().starts_with("second"));
        kubectl.ok("label cm second a=b");
        assert!(next().starts_with("second"));
        watching.kill().expect("the command is running");
        watching.wait().expect("the command ends");

        kubectl.ok_with("create -f -", DEPLOYMENT);
        let waiting = kubectl.start("wait deploy/web --for=condition=Available --timeout=30s");
        let condition = r#"{"status":{"conditions":[{"type":"Available","status":"True"}]}}"#;
        kubectl.ok(&format!("patch deploy web --subresource=status --type=merge -p {condition}"));
        let waited = waiting.wait_with_output().expect("the command ends");
        assert!(String::from_utf8_lossy(&waited.stdout).contains("condition met"));
        let waiting = kubectl.start("wait cm/second --for=delete --timeout=30s");
        kubectl.ok("delete cm second");
        assert!(waiting.wait_with_output().expect("the command ends").status.success());
    };

    kubectl_serves_a_proxy: |kubectl| {
        let mut proxy = kubectl.start("proxy --port=0");
        let mut lines = BufReader::new(proxy.stdout.take().expect("piped")).lines();
        let announced = lines.next().expect("an announcement").expect("text");
        let address = announced.strip_prefix("Starting to serve on ").expect("an address");
        assert!(kubectl.ok(&format!("get namespaces --server=http://{address}")).contains("kube-system"));
        proxy.kill().expect("the command is running");
        proxy.wait().expect("the command ends");
    };

    kubectl_deletes_in_every_cascade_mode: |kubectl| {
        for (mode, is_kept) in [("background", false), ("foreground", false), ("orphan", true)] {
            kubectl.ok("create configmap owner");
            let uid = kubectl.ok("get cm owner -o jsonpath={.metadata.uid}");
            let owned = format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: owned, ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]}}}}"
            );
            kubectl.ok_with("create -f -", &owned);
            kubectl.ok(&format!("delete cm owner --cascade={mode}"));
            if is_kept {
                assert_eq!(kubectl.ok("get cm owned -o jsonpath={.metadata.ownerReferences}"), "", "{mode}");
                kubectl.ok("delete cm owned");
            } else {
                kubectl.ok("wait cm/owned --for=delete --timeout=30s");
            }
        }
    };

    kubectl_deletes_a_namespace_with_its_contents: |kubectl| {
        kubectl.ok("create namespace shop");
        kubectl.ok("create configmap cm -n shop");
        kubectl.ok_with("create -n shop -f -", DEPLOYMENT);
        assert!(kubectl.ok("delete namespace shop --timeout=30s").contains("deleted"));
        assert!(kubectl.fails_with("get ns shop", "").contains("NotFound"));
        assert!(kubectl.fails_with("create configmap cm -n shop", "").contains("not found"));
        assert!(kubectl.ok("get all -n shop").contains("No resources found"));
    };

    kubectl_manages_a_custom_resource: |kubectl| {
        kubectl.ok_with("create -f -", CRD);
        kubectl.ok("wait crd/widgets.example.com --for=condition=Established --timeout=30s");
        let widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}";
        assert_eq!(kubectl.ok_with("apply -f -", widget).trim(), "widget.example.com/w created");
        assert_eq!(kubectl.ok("get wd w -o jsonpath={.spec.colour}"), "red", "defaults are filled in");
        let table = kubectl.ok("get widgets");
        assert!(table.contains("SIZE"), "{table}");
        assert!(kubectl.ok("explain widget.spec").contains("colour"));
        let shrunk = kubectl.fails_with("apply -f -", &widget.replace("size: 3", "size: 2"));
        assert!(shrunk.contains("widgets never shrink"), "{shrunk}");
        let huge = kubectl.fails_with("apply -f -", &widget.replace("size: 3", "size: 30"));
        assert!(huge.contains("spec.size"), "{huge}");
        let unknown = kubectl.fails_with("apply -f -", &widget.replace("size: 3", "size: 3, shape: round"));
        assert!(unknown.contains("unknown field"), "{unknown}");
        assert!(kubectl.ok_with("apply --server-side --field-manager=me -f -", widget).contains("serverside-applied"));
        kubectl.ok("patch wd w --subresource=status --type=merge -p {\"status\":{}}");
        assert!(kubectl.ok("delete crd widgets.example.com --timeout=30s").contains("deleted"));
        assert!(kubectl.fails_with("get widgets", "").contains("could not find the requested resource"));
    };
}
