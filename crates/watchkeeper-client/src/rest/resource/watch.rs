//! Watches as streams of typed events.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_core::Stream;
use futures_util::StreamExt as _;
use kube_core::{
    Resource, TypeMeta,
    params::WatchParams,
    watch::{Bookmark, BookmarkMeta, WatchEvent},
};
use serde::de::DeserializeOwned;

use super::ResourceClient;
use crate::{
    Error,
    list_watch::{self, ListWatch, ListerWatcher as _, ReceivedItem, WatchRequest},
    rest::{RequestInfo, RequestTarget, ResourcePath, Verb},
};

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl<K> ResourceClient<K>
where
    K: Resource + Clone + DeserializeOwned + Send + Sync + 'static,
{
    /// Starts a watch of the objects that `params` selects, and returns its events after `resource_version`.
    ///
    /// The [limits](crate::limits::Limits) of the client hold for each event. The stream ends when the server ends the watch,
    /// after 5 to 10 minutes unless `params.timeout` is set, and is not resumed: for a copy of a collection that stays
    /// complete use an informer, for a single object [`await_condition`](Self::await_condition).
    ///
    /// ```
    /// use futures_util::TryStreamExt;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_core::{params::{ListParams, PostParams, WatchParams}, watch::WatchEvent};
    /// # use watchkeeper_client::Client;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), watchkeeper_client::Error> {
    /// # let server = watchkeeper_apiserver::ApiServer::in_process();
    /// # let client = Client::from(server.client());
    /// let maps = client.resource::<ConfigMap>().namespace("default");
    /// let version = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    /// let mut events = maps.watch(&WatchParams::default(), &version).await?;
    ///
    /// let mut settings = ConfigMap::default();
    /// settings.metadata.name = Some("settings".into());
    /// maps.create(&PostParams::default(), &settings).await?;
    /// match events.try_next().await? {
    ///     Some(WatchEvent::Added(map)) => assert_eq!(map.metadata.name.as_deref(), Some("settings")),
    ///     other => panic!("unexpected: {other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the watch cannot be started. An error in the stream is its last item, with one exception: an object that cannot be
    /// decoded is an error that names the object, and the next events follow. An ERROR event of the server is an
    /// [`Error::Api`], never a [`WatchEvent::Error`]; a version that the server no longer has is
    /// [expired](Error::is_expired) in both forms.
    #[doc(alias = "Watch")]
    pub async fn watch(
        &self,
        params: &WatchParams,
        resource_version: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<K>, Error>> + Send + Unpin + use<K>, Error> {
        let WatchParams { label_selector, field_selector, timeout, bookmarks, send_initial_events } =
            params.clone();
        let mut source = ListWatch::new(self);
        if let Some(labels) = label_selector {
            source = source.labels(labels);
        }
        if let Some(fields) = field_selector {
            source = source.fields(fields);
        }
        let mut request = WatchRequest::new();
        request.resource_version = Some(resource_version.to_owned()).filter(|version| !version.is_empty());
        request.timeout = timeout.map(|seconds| Duration::from_secs(seconds.into()));
        request.bookmarks = bookmarks;
        request.send_initial_events = send_initial_events;
        let events = source.watch(request).await?;
        let path = self.path().map_err(|reason| self.refused(Verb::Watch, reason))?;
        Ok(events.map(move |event| typed(event?, &path)))
    }
}

fn typed<K: Clone>(event: list_watch::WatchEvent<K>, path: &ResourcePath) -> Result<WatchEvent<K>, Error> {
    Ok(match event {
        list_watch::WatchEvent::Added(item) => WatchEvent::Added(decoded(item, path)?),
        list_watch::WatchEvent::Modified(item) => WatchEvent::Modified(decoded(item, path)?),
        list_watch::WatchEvent::Deleted(item) => WatchEvent::Deleted(decoded(item, path)?),
        list_watch::WatchEvent::Bookmark(bookmark) => {
            let end = bookmark.initial_events_end.then(|| (INITIAL_EVENTS_END.to_owned(), "true".to_owned()));
            WatchEvent::Bookmark(Bookmark {
                types: TypeMeta::default(),
                metadata: BookmarkMeta {
                    resource_version: bookmark.resource_version,
                    annotations: BTreeMap::from_iter(end),
                },
            })
        }
    })
}

fn decoded<K: Clone>(item: ReceivedItem<K>, path: &ResourcePath) -> Result<K, Error> {
    item.decode().map(Arc::unwrap_or_clone).map_err(|error| {
        let mut path = path.clone();
        let identity = &error.identity;
        if let Some(namespace) = identity.namespace() {
            path = path.clone().in_namespace(namespace).unwrap_or(path);
        }
        path = path.clone().named(identity.name()).unwrap_or(path);
        let request = RequestInfo::new(Verb::Watch, RequestTarget::Resource(path));
        list_watch::unreadable(&request, error.source)
    })
}
