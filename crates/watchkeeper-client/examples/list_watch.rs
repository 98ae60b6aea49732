//! Lists the config maps of a namespace, then watches them: the protocol underneath every informer.
//!
//! ```text
//! cargo run -p watchkeeper-client --example list_watch
//! ```
//! The server and the namespace come from the kubeconfig. The program ends when the server closes the watch,
//! after some minutes.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_client::{
    Client,
    classify::{Failure, Phase, Situation, classify},
    list_watch::{Item, ListPart, ListRequest, ListWatch, ListerWatcher, WatchEvent, WatchRequest},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let source = ListWatch::new(&client.resource::<ConfigMap>().default_namespace());

    let version = list(&source).await?;
    watch(&source, version).await;
    Ok(())
}

/// Reads the list page by page and returns its resourceVersion.
async fn list(source: &ListWatch<ConfigMap>) -> Result<String, Box<dyn Error>> {
    let mut request = ListRequest::new().limit(500);
    loop {
        let mut page = source.list(request).await?;
        let mut end = None;
        while let Some(part) = page.next().await {
            match part? {
                ListPart::Item(item) => show("listed", item),
                ListPart::End(found) => end = Some(found),
            }
        }
        let end = end.ok_or("a page always has an end")?;
        match end.continue_token {
            Some(token) => request = ListRequest::new().limit(500).continue_token(token),
            None => return Ok(end.resource_version.unwrap_or_default()),
        }
    }
}

/// Prints the changes after `version`, until the watch ends for any reason.
async fn watch(source: &ListWatch<ConfigMap>, version: String) {
    println!("watching from version {version}");
    let mut events = match source.watch(WatchRequest::new().resource_version(version)).await {
        Ok(events) => events,
        Err(error) => {
            let verdict = classify(Situation::at(Phase::WatchStart), Failure::from(&error));
            return println!("no watch: {error}; to do: {:?}", verdict.decision);
        }
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(WatchEvent::Added(item)) => show("added", item),
            Ok(WatchEvent::Modified(item)) => show("modified", item),
            Ok(WatchEvent::Deleted(item)) => show("deleted", item),
            Ok(WatchEvent::Bookmark(mark)) => {
                println!("nothing else up to version {}", mark.resource_version);
            }
            Err(error) => {
                let verdict = classify(Situation::at(Phase::WatchStream), Failure::from(&error));
                println!("the watch failed: {error}; to do: {:?}", verdict.decision);
            }
        }
    }
    println!("the watch ended; a reflector would go on from the last version it saw");
}

/// Prints one object. An object that cannot be decoded is one line, not the end of the program.
fn show(what: &str, item: Item<ConfigMap>) {
    let identity = item.identity().clone();
    match item.decode() {
        Ok(map) => {
            let keys = map.data.as_ref().map_or(0, std::collections::BTreeMap::len);
            println!("{what} {} with {keys} keys", identity.key());
        }
        Err(error) => println!("{what} {error}"),
    }
}
