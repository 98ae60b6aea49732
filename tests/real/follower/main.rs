//! Keeps caches with Watchkeeper's shared informers and responds to requests about them, one per line.
//!
//! `real-follower NAMESPACE`, with the kubeconfig in `$KUBECONFIG`. The caches contain the `ConfigMap` and `Widget` objects
//! of the namespace, with default settings. `tests/real/README.md` describes the line protocol.

use std::{
    error::Error,
    io::{self, Write},
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::DynamicObject;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use watchkeeper::{
    client::dynamic::GroupVersionResource,
    informer::{Object, Snapshot, status::Status},
    prelude::*,
};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).init();
    let namespace = std::env::args().nth(1).ok_or("usage: real-follower NAMESPACE")?;
    let client = Client::try_default().await?;
    let factory = SharedInformerFactory::builder(client).scope(Scope::namespace(namespace)).build();
    let followed = Followed {
        config_maps: factory.informer(),
        widgets: factory.for_resource(&GroupVersionResource::new("real.watchkeeper.dev", "v1", "widgets")),
    };
    factory.start();

    let mut requests = BufReader::new(tokio::io::stdin()).lines();
    while let Some(request) = requests.next_line().await? {
        let mut reply = Vec::new();
        followed.answer(&request, &mut reply)?;
        let mut out = io::stdout().lock();
        out.write_all(&reply)?;
        out.flush()?;
    }
    factory.shutdown().await;
    Ok(())
}

struct Followed {
    config_maps: SharedIndexInformer<ConfigMap>,
    widgets: SharedIndexInformer<DynamicObject>,
}

impl Followed {
    fn answer(&self, request: &str, reply: &mut Vec<u8>) -> Result<(), Failure> {
        let words: Vec<&str> = request.split_whitespace().collect();
        let ["get" | "dump" | "status", kind @ ("configmaps" | "widgets"), ..] = words[..] else {
            return Err(format!("request {request:?}: want get|dump|status configmaps|widgets [KEY]").into());
        };
        if kind == "configmaps" {
            answer(&self.config_maps.snapshot(), &self.config_maps.status(), &words, reply)
        } else {
            answer(&self.widgets.snapshot(), &self.widgets.status(), &words, reply)
        }
    }
}

fn answer<K: Object>(
    cache: &Snapshot<K>,
    status: &Status,
    words: &[&str],
    reply: &mut Vec<u8>,
) -> Result<(), Failure> {
    match words {
        ["status", _] => writeln!(reply, "{status:?} at {:?}", cache.resource_version())?,
        ["get", _, key] => match cache.get(key) {
            Some(object) => write_object(object.as_ref(), reply)?,
            None => writeln!(reply, "absent")?,
        },
        ["dump", _] => {
            for object in cache.iter() {
                write_object(object.as_ref(), reply)?;
            }
            writeln!(reply, "end")?;
        }
        _ => return Err(format!("request {words:?}: wrong number of words").into()),
    }
    Ok(())
}

fn write_object<K: Object>(object: &K, reply: &mut Vec<u8>) -> Result<(), Failure> {
    let metadata = object.meta();
    let (uid, version) = (metadata.uid.as_deref(), metadata.resource_version.as_deref());
    let key = ObjectKey::of(object)?;
    writeln!(reply, "{} {} {}", key.as_str(), uid.unwrap_or_default(), version.unwrap_or_default())?;
    Ok(())
}
