//! A server that only writes: pods rendered beforehand, in pages or as the first events of a watch.
//!
//! It runs in a process of its own, so that neither its CPU time nor its memory is the client's. It says where it listens
//! on standard output, takes orders on standard input, and ends when that does.

use std::convert::Infallible;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use watchkeeper_client::decode::probe;

use crate::cli;
use crate::suite::RunFailure;
use crate::suites::cluster_pods;

/// The size of a TLS record.
const CHUNK_BYTES: usize = 16 << 10;
/// The version of the collection before any watch expired.
const FIRST_VERSION: u64 = 900_000;
/// And after watches expired for the first time.
pub(super) const VERSION_AFTER_EXPIRY: u64 = FIRST_VERSION + 1;
/// The order to end all watches as expired.
const EXPIRE: &str = "expire";

/// The process of the server. Dropping the value ends the process.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    orders: ChildStdin,
    url: String,
}

impl Server {
    /// A server of this many pods, listening.
    pub(super) fn start(pods: u64) -> Result<Self, RunFailure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(cli::serve_arguments(pods))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(orders), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server's process has no pipes".into());
        };
        let mut server = Self { child, orders, url: String::new() };
        let mut address = String::new();
        BufReader::new(said).read_line(&mut address)?;
        if address.trim().is_empty() {
            return Err("the server ended before it listened".into());
        }
        server.url = format!("http://{}", address.trim());
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Ends the watches there are as expired, so that clients list again, and moves on the collection's version.
    pub(super) fn expire_watches(&mut self) -> io::Result<()> {
        writeln!(self.orders, "{EXPIRE}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Waited for, so that its CPU time counts as the run's own and not as that of others.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until standard input ends.
pub(crate) fn serve(pods: u64) -> Result<(), RunFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let collection = Arc::new(Collection::new(pods));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let mut out = io::stdout();
        writeln!(out, "{}", listener.local_addr()?)?;
        out.flush()?;
        let mut orders = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (socket, _) = accepted?;
                    connections.spawn(connection(socket, Arc::clone(&collection)));
                }
                order = orders.next_line() => match order?.as_deref() {
                    Some(EXPIRE) => collection.expire(),
                    Some(other) => return Err(format!("no such order: {other}").into()),
                    None => return Ok(()),
                },
            }
        }
    });
    // A thread may still read standard input; it need not be waited for.
    runtime.shutdown_background();
    served
}

async fn connection(socket: TcpStream, collection: Arc<Collection>) {
    let service = service_fn(move |request| {
        let response = collection.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    // A client that is gone has what it wanted.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

/// The pods, rendered.
struct Collection {
    /// All of them as in a list, with commas between them.
    items: Bytes,
    /// The range of each pod in `items`.
    places: Vec<Range<usize>>,
    /// All of them as events of a watch.
    events: Bytes,
    version: watch::Sender<u64>,
}

type Body = BoxBody<Bytes, Infallible>;

/// Returns a list with these items. `rest` is the metadata in addition to the version.
fn list(version: &str, rest: &str, items: Bytes) -> Body {
    let head = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"{rest}}},"items":["#
    );
    body(chunks(head.into()).chain(chunks(items)).chain(chunks("]}\n".into())))
}

impl Collection {
    fn new(count: u64) -> Self {
        let (mut items, mut events, mut places) = (String::new(), String::new(), Vec::new());
        for index in 0..count {
            if index > 0 {
                items.push(',');
            }
            let start = items.len();
            items.push('{');
            cluster_pods::push_pod(&mut items, index);
            events.push_str(r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","#);
            events.push_str(&items[start + 1..]);
            events.push_str("}\n");
            places.push(start..items.len());
        }
        let version = watch::Sender::new(FIRST_VERSION);
        Self { items: items.into(), places, events: events.into(), version }
    }

    fn expire(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default();
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let body = if parameter("watch").is_some() {
            self.watch(
                parameter("sendInitialEvents") == Some("true"),
                parameter("resourceVersion").and_then(|version| version.parse().ok()),
            )
        } else {
            let number = |name| parameter(name).and_then(|value| value.parse().ok());
            let name = parameter("fieldSelector").and_then(|fields| fields.strip_prefix("metadata.name%3D"));
            // The pods never change, so any past state is the present one under another version.
            let past =
                parameter("resourceVersion").filter(|_| parameter("resourceVersionMatch") == Some("Exact"));
            let version = past.map_or_else(|| self.version.borrow().to_string(), str::to_owned);
            if let Some(name) = name {
                self.named(&version, name)
            } else {
                self.page(&version, number("continue").unwrap_or(0), number("limit").unwrap_or(usize::MAX))
            }
        };
        let mut response = Response::new(body);
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        response
    }

    /// The list of the one pod of this name.
    fn named(&self, version: &str, name: &str) -> Body {
        let is_it = |place: &&Range<usize>| {
            probe(&self.items[(*place).clone()]).is_ok_and(|identity| identity.name() == name)
        };
        let item = self.places.iter().find(is_it).map(|place| self.items.slice(place.clone()));
        list(version, "", item.unwrap_or_default())
    }

    fn page(&self, version: &str, first: usize, limit: usize) -> Body {
        let end = first.saturating_add(limit).min(self.places.len());
        let left = self.places.len() - end;
        let rest = if left == 0 {
            String::new()
        } else {
            format!(r#","continue":"{end}","remainingItemCount":{left}"#)
        };
        let items = match self.places.get(first..end) {
            Some([one]) => self.items.slice(one.clone()),
            Some([first, .., last]) => self.items.slice(first.start..last.end),
            _ => Bytes::new(),
        };
        list(version, &rest, items)
    }

    /// The events there are to begin with, if they are wanted, and then nothing until the watch expires: at once, if it
    /// is from an expired version.
    fn watch(&self, is_initial_wanted: bool, from: Option<u64>) -> Body {
        let mut version = self.version.subscribe();
        let begun_at = *version.borrow_and_update();
        let is_expired = !is_initial_wanted && from.is_some_and(|from| from < begun_at);
        let initial = if is_initial_wanted { self.events.clone() } else { Bytes::new() };
        let bookmark = format!(
            r#"{{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{begun_at}","creationTimestamp":null,"annotations":{{"k8s.io/initial-events-end":"true"}}}},"spec":{{"containers":null}},"status":{{}}}}}}"#
        ) + "\n";
        let bookmark = if is_initial_wanted { bookmark.into() } else { Bytes::new() };
        let expired = stream::once(async move {
            if !is_expired {
                // The sender lives as long as the server.
                let _ = version.changed().await;
            }
            Bytes::from_static(
                br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}
"#,
            )
        });
        body(chunks(initial).chain(chunks(bookmark)).chain(expired))
    }
}

fn chunks(bytes: Bytes) -> impl Stream<Item = Bytes> + Send + Sync {
    stream::iter((0..bytes.len()).step_by(CHUNK_BYTES).map(move |start| {
        let end = bytes.len().min(start + CHUNK_BYTES);
        bytes.slice(start..end)
    }))
}

fn body(chunks: impl Stream<Item = Bytes> + Send + Sync + 'static) -> Body {
    BoxBody::new(StreamBody::new(chunks.map(|chunk| Ok(Frame::data(chunk)))))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use k8s_openapi::api::core::v1::Pod;
    use kube_core::{ObjectList, WatchEvent};

    use super::*;

    async fn whole(collection: &Collection, query: &str) -> String {
        let request = Request::get(format!("/api/v1/pods?{query}")).body(()).unwrap();
        let bytes = collection.answer(&request).into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn the_pages_of_any_size_are_the_list() {
        let collection = Collection::new(5);
        let expected: ObjectList<Pod> = serde_json::from_slice(&cluster_pods::list(5)).unwrap();
        for limit in 1..=6 {
            let (mut pods, mut token) = (Vec::new(), String::new());
            loop {
                let page = whole(&collection, &format!("limit={limit}&continue={token}")).await;
                let page: ObjectList<Pod> = serde_json::from_str(&page).unwrap();
                assert_eq!(page.metadata.resource_version.as_deref(), Some("900000"));
                pods.extend(page.items);
                let left = page.metadata.remaining_item_count.unwrap_or(0);
                assert_eq!(pods.len() + usize::try_from(left).unwrap(), 5);
                match page.metadata.continue_ {
                    Some(next) => token = next,
                    None => break,
                }
            }
            assert_eq!(pods, expected.items, "pages of {limit}");
        }
    }

    #[tokio::test]
    async fn a_watch_begins_with_what_there_is_if_that_is_wanted_and_ends_as_expired() {
        let collection = Collection::new(2);
        for (query, kinds) in [
            (
                "watch=true&sendInitialEvents=true&resourceVersion=0",
                vec!["added", "added", "bookmark", "error"],
            ),
            ("watch=true&resourceVersion=900000", vec!["error"]),
        ] {
            let watching = whole(&collection, query);
            let expiring = async { collection.expire() };
            let (text, ()) = tokio::join!(biased; watching, expiring);
            let found: Vec<_> = text
                .lines()
                .map(|line| match serde_json::from_str::<WatchEvent<Pod>>(line).unwrap() {
                    WatchEvent::Added(_) => "added",
                    WatchEvent::Bookmark(_) => "bookmark",
                    WatchEvent::Error(status) if status.code == 410 => "error",
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(found, kinds, "{query}");
        }
        assert!(whole(&collection, "watch=true&resourceVersion=900000").await.contains("410"), "at once");
    }
}
