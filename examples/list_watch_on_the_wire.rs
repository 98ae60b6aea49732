//! List and watch on the wire, as `curl` shows them.
//!
//! `cargo run -p watchkeeper-examples --bin list_watch_on_the_wire`
//!
//! Creates a pod in the namespace `default`, labels it and deletes it, and prints the events of a watch.

use std::io::{self, Write};

use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use watchkeeper::{client::config::ClientConfig, kube_client::client::Body, prelude::*};
use watchkeeper_examples::{Connection, Failure, Outcome};

const POD: &str = "list-watch-lab";
const PATH: &str = "/api/v1/namespaces/default/pods";

#[tokio::main]
async fn main() -> Outcome {
    let connection = Connection::from_arguments().await?;
    let mut out = io::stdout();
    // Requests to the embedded server need no socket. This lab makes it listen, to show the bytes on a socket.
    let client = match connection.server() {
        Some(server) => {
            let endpoint = server.listen(([127, 0, 0, 1], 0).into()).await?;
            ClientConfig::new(&endpoint.url())?.into_client()?
        }
        None => connection.client().clone(),
    };

    // The list: one response, with the resourceVersion that it shows.
    let body = get(&client, PATH, &mut out).await?.collect_bytes().await?;
    let list: Value = serde_json::from_slice(&body)?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let count = list["items"].as_array().map_or(0, Vec::len);
    writeln!(out, "{{\"kind\":{},… {count} items, resourceVersion {version}}}\n", list["kind"])?;

    // The watch: all changes after that version, in a response that does not end. Each line is an event.
    let mut events = get(&client, &format!("{PATH}?watch=true&resourceVersion={version}"), &mut out).await?;
    let pods = client.resource::<Pod>().namespace("default");
    change_something(&pods).await?;
    let mut buffer = Vec::new();
    while let Some(frame) = events.frame().await {
        buffer.extend_from_slice(&frame?.into_data().unwrap_or_default());
        // A chunk can contain half an event or several; a newline ends an event.
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line)?;
            let metadata = &event["object"]["metadata"];
            let (name, version) = (&metadata["name"], &metadata["resourceVersion"]);
            writeln!(
                out,
                "{{\"type\":{},\"object\":{{… {name}, resourceVersion {version}}}}}",
                event["type"]
            )?;
            if event["type"] == "DELETED" && name == POD {
                writeln!(out, "\nnext: informer, which turns this into a cache and events")?;
                return Ok(());
            }
        }
    }
    Err("the server ended the watch before the pod was deleted".into())
}

/// Sends a request and prints what goes over the wire before the body.
async fn get(client: &Client, path: &str, out: &mut impl Write) -> Result<Body, Failure> {
    writeln!(out, "> GET {path} HTTP/1.1")?;
    let request = http::Request::get(path).header("accept", "application/json").body(Body::empty())?;
    let response = client.kube().send(request).await?;
    writeln!(out, "< {:?} {}", response.version(), response.status())?;
    for (name, value) in response.headers() {
        if matches!(name.as_str(), "content-type" | "content-length" | "transfer-encoding") {
            writeln!(out, "< {name}: {}", value.to_str()?)?;
        }
    }
    Ok(response.into_body())
}

async fn change_something(pods: &ResourceClient<Pod>) -> Outcome {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": POD}, "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    pods.patch(POD, &PatchParams::default(), &label).await?;
    pods.delete(POD, &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}
