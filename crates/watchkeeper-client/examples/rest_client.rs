//! Lists the pods of a namespace with a request put together by hand.
//!
//! The REST client is what the other clients are made of: name the parts of a request, send it, say what to read the
//! answer as. The server is the one of the current kubeconfig context, or of the pod this runs in.
//!
//! ```text
//! cargo run -p watchkeeper-client --example rest_client -- kube-system
//! ```

use std::{env, error::Error as StdError, io, io::Write};

use k8s_openapi::api::core::v1::Pod;
use kube_core::{ObjectList, ResourceExt as _, params::ListParams};
use watchkeeper_client::{
    Client, Error,
    rest::{RestClient, Retry},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let client = Client::try_default().await?;
    let namespace = env::args().nth(1).unwrap_or_else(|| client.default_namespace().to_owned());
    let rest = RestClient::new(client);
    print_pods(&rest, &namespace, &mut io::stdout()).await
}

async fn print_pods(
    rest: &RestClient,
    namespace: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn StdError>> {
    let pods = pods(rest, namespace).await?;
    for pod in &pods {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
        writeln!(out, "{:<40} {phase}", pod.name_any())?;
    }
    writeln!(out, "{} pods in namespace {namespace:?}", pods.items.len())?;
    Ok(())
}

/// `GET /api/v1/namespaces/{namespace}/pods?limit=500`, read as a list of pods.
async fn pods(rest: &RestClient, namespace: &str) -> Result<ObjectList<Pod>, Error> {
    rest.get()
        .api("v1")
        .namespace(namespace)
        .resource("pods")
        .params(&ListParams::default().limit(500))
        .retry(Retry::reads())
        .send()
        .await
    // One page is enough here. `ResourceClient::<Pod>::namespaced(&client, namespace)` has the verbs of pods ready
    // made, `list_all` among them, which reads every page. Read src/rest/resource next.
}

#[cfg(test)]
mod tests {
    use watchkeeper_test_support::{Reply, ScriptedServer};

    use super::*;

    #[tokio::test]
    async fn it_prints_a_line_per_pod_and_asks_once_for_them() {
        let list = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[
            {"metadata":{"name":"front"},"status":{"phase":"Running"}},{"metadata":{"name":"back"}}]}"#;
        let server = ScriptedServer::script([Reply::json(200, list)]).await;
        let rest = RestClient::new(Client::from(server.client()));
        let mut out = Vec::new();
        print_pods(&rest, "web", &mut out).await.unwrap();
        let lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["front", "Running"]);
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["back", "Unknown"]);
        assert_eq!(lines[2], "2 pods in namespace \"web\"");
        assert_eq!(server.lines(), ["GET /api/v1/namespaces/web/pods?limit=500 HTTP/1.1"]);
    }
}
