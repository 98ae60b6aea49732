//! The scripted source.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::stream;
use tokio::sync::Notify;

use super::{
    list::{ListScript, ListStep},
    watch::{Live, WatchHandle, WatchScript, WatchStep},
};
use crate::{
    Error,
    list_watch::{
        ListPart, ListRequest, ListStream, ListerWatcher, Opening, WatchEvent, WatchRequest, WatchStream,
    },
    rest::Verb,
};

/// An in-memory [`ListerWatcher`] with scripted responses, for tests.
///
/// Each list request consumes the next [`ListScript`], each watch request the next [`WatchScript`]; a request
/// without a script waits for one. Every request is recorded. The source uses tokio's clock, so tests with
/// paused time are exact. Clones share their scripts and records.
///
/// ```
/// use futures_util::StreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_core::{ObjectMeta, Status};
/// use watchkeeper_client::list_watch::{
///     ListRequest, ListScript, ListerWatcher, ScriptedSource, WatchEvent, WatchRequest, WatchScript,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), watchkeeper_client::Error> {
/// let map = |name: &str, version: &str| ConfigMap {
///     metadata: ObjectMeta {
///         name: Some(name.into()),
///         resource_version: Some(version.into()),
///         ..ObjectMeta::default()
///     },
///     ..ConfigMap::default()
/// };
/// let source = ScriptedSource::new();
/// source.on_list(ListScript::at("10").item(map("a", "7")));
/// source.on_watch(
///     WatchScript::new()
///         .modified(map("a", "11"))
///         .error(Status::failure("too old", "Expired").with_code(410)),
/// );
///
/// let parts = source.list(ListRequest::new().limit(500)).await?.count().await;
/// assert_eq!(parts, 2, "the item and the end of the page");
///
/// let mut watch = source.watch(WatchRequest::new().resource_version("10")).await?;
/// match watch.next().await {
///     Some(Ok(WatchEvent::Modified(item))) => assert_eq!(item.identity().key(), "a"),
///     other => panic!("{other:?}"),
/// }
/// assert!(watch.next().await.unwrap().unwrap_err().is_expired());
/// assert!(watch.next().await.is_none());
/// assert_eq!(source.requests().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[doc(alias = "FakeControllerSource")]
pub struct ScriptedSource<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    /// Notified of every script that is added.
    arrived: Notify,
}

#[derive(Debug)]
struct State<K> {
    lists: VecDeque<ListScript<K>>,
    watches: VecDeque<Live<K>>,
    requests: Vec<RecordedRequest>,
}

/// A request that a [`ScriptedSource`] received.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedRequest {
    /// A request for a list page.
    List(ListRequest),
    /// A request for a watch.
    Watch(WatchRequest),
}

impl<K> Default for ScriptedSource<K> {
    fn default() -> Self {
        let state = State { lists: VecDeque::new(), watches: VecDeque::new(), requests: Vec::new() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), arrived: Notify::new() }) }
    }
}

impl<K> Clone for ScriptedSource<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K> ScriptedSource<K> {
    /// Creates a source without scripts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the response to the next list request that has no script.
    pub fn on_list(&self, script: ListScript<K>) {
        self.shared.lock().lists.push_back(script);
        self.shared.arrived.notify_waiters();
    }

    /// Adds the response to the next watch request that has no script.
    pub fn on_watch(&self, script: WatchScript<K>) {
        drop(self.open_watch(script));
    }

    /// Adds a response as [`ScriptedSource::on_watch`] does, and keeps the watch open after the script, for
    /// events that the test sends through the handle.
    pub fn open_watch(&self, script: WatchScript<K>) -> WatchHandle<K> {
        let (handle, live) = script.into_live();
        self.shared.lock().watches.push_back(live);
        self.shared.arrived.notify_waiters();
        handle
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock().requests.clone()
    }
}

impl<K> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `take` returns a value.
    async fn next<T>(&self, take: impl Fn(&mut State<K>) -> Option<T>) -> T {
        loop {
            // Registered before the check, so that no notification is missed in between.
            let arrived = self.arrived.notified();
            if let Some(found) = take(&mut self.lock()) {
                return found;
            }
            arrived.await;
        }
    }
}

impl<K: Send + Sync + 'static> ListerWatcher<K> for ScriptedSource<K> {
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>> {
        let shared = self.shared.clone();
        shared.lock().requests.push(RecordedRequest::List(request));
        Box::pin(async move {
            let script = shared.next(|state| state.lists.pop_front()).await;
            if let Some(refusal) = script.refusal {
                return Err(refusal.into_error(Verb::List));
            }
            let end = ListStep::Part(ListPart::End(script.end));
            let steps: VecDeque<_> = script.steps.into_iter().chain([end]).collect();
            Ok(Box::pin(stream::unfold(steps, next_part)) as ListStream<K>)
        })
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>> {
        let shared = self.shared.clone();
        shared.lock().requests.push(RecordedRequest::Watch(request));
        Box::pin(async move {
            let live = shared.next(|state| state.watches.pop_front()).await;
            if let Some(refusal) = live.refusal {
                return Err(refusal.into_error(Verb::Watch));
            }
            Ok(Box::pin(stream::unfold(live, next_event)) as WatchStream<K>)
        })
    }
}

async fn next_part<K>(
    mut steps: VecDeque<ListStep<K>>,
) -> Option<(Result<ListPart<K>, Error>, VecDeque<ListStep<K>>)> {
    loop {
        match steps.pop_front()? {
            ListStep::Part(part) => return Some((Ok(part), steps)),
            ListStep::Wait(duration) => tokio::time::sleep(duration).await,
            ListStep::Stall => pending().await,
            ListStep::Fail(fault) => return Some((Err(fault.into_error(Verb::List)), VecDeque::new())),
        }
    }
}

async fn next_event<K>(mut live: Live<K>) -> Option<(Result<WatchEvent<K>, Error>, Live<K>)> {
    loop {
        match live.steps.recv().await? {
            WatchStep::Event(event) => return Some((Ok(event), live)),
            WatchStep::Wait(duration) => tokio::time::sleep(duration).await,
            WatchStep::Stall => pending().await,
            WatchStep::Fail(fault) => {
                // Steps after a failure are never delivered.
                live.steps.close();
                while live.steps.try_recv().is_ok() {}
                return Some((Err(fault.into_error(Verb::Watch)), live));
            }
        }
    }
}
