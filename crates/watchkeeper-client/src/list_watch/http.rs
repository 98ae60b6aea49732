//! Lists and watches over HTTP.

use std::{
    any::TypeId,
    fmt,
    future::ready,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube_core::{
    Resource,
    params::{ListParams, WatchParams},
};
use serde::de::DeserializeOwned;

use super::{
    ListRequest, ListStream, ListerWatcher, ObjectName, Opening, Selection, Timeouts, WatchRequest,
    WatchStream, WireEncoding,
    encoding::{Accepted, Decoders, Form},
    events::EventStream,
    page::PageStream,
};
use crate::{
    Client, Error,
    decode::{Decode, DecodeError, Protobuf},
    error::Unreadable,
    rest::{
        ApiRequest, ByteStream, InvalidRequest, RequestBuilder, RequestInfo, ResourceClient, ResourcePath,
        RestClient, retry_after_of_status,
    },
};

/// The kind of objects in metadata-only responses.
const METADATA_KIND: &str = "PartialObjectMetadata";

/// A collection on an API server, as a source of lists and watches.
///
/// Lists are requested with compression and read item by item as they arrive; watches are read frame by
/// frame. The client's [`Limits`](crate::limits::Limits) and the [`Timeouts`] set here apply. Requests are
/// not retried: the owner of the watch decides about that with [`classify`](crate::classify).
///
/// ```no_run
/// # use watchkeeper_client::{Client, Error, list_watch::{ListRequest, ListPart, ListWatch, ListerWatcher}};
/// # use k8s_openapi::api::core::v1::Pod;
/// # use futures_util::StreamExt;
/// # async fn example(client: Client) -> Result<(), Error> {
/// let pods = ListWatch::new(&client.resource::<Pod>().namespace("default")).labels("app=web");
/// let mut page = pods.list(ListRequest::new()).await?;
/// while let Some(part) = page.next().await {
///     match part? {
///         ListPart::Item(item) => println!("{:?}", item.decode()),
///         ListPart::End(end) => println!("as of {:?}", end.resource_version),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "EachListItem")]
#[doc(alias = "NewListWatchFromClient")]
pub struct ListWatch<K> {
    rest: RestClient,
    path: Result<ResourcePath, InvalidRequest>,
    /// The required kind of objects that include one.
    kind: Arc<str>,
    metadata_only: bool,
    labels: Option<String>,
    fields: Option<String>,
    decoders: Decoders<K>,
    timeouts: Timeouts,
    random: Mutex<fastrand::Rng>,
}

impl<K: Resource + DeserializeOwned> ListWatch<K> {
    /// Returns a source of the objects of `resource`. Of an [`ObjectMetadata`](crate::decode::ObjectMetadata) the server sends
    /// metadata alone.
    pub fn new(resource: &ResourceClient<K>) -> Self {
        let metadata_only = K::metadata_api();
        let path = resource.path();
        if metadata_only {
            let decoders = Decoders::new(Some(Protobuf::metadata_only()), true);
            return Self {
                metadata_only,
                ..Self::over(resource.rest().clone(), path, METADATA_KIND, decoders)
            };
        }
        let kind = resource.kind();
        let is_typed = TypeId::of::<K::DynamicType>() == TypeId::of::<()>();
        let decoders = Decoders::new(protobuf_of(&path, kind), is_typed);
        Self::over(resource.rest().clone(), path, kind, decoders)
    }
}

impl<K: DeserializeOwned> ListWatch<K> {
    /// Returns a source of the objects at `path`, of kind `kind`, decoded as any type: for a narrow type with fewer fields
    /// than the built-in one.
    pub fn at(client: impl Into<Client>, path: ResourcePath, kind: &str) -> Self {
        let path = Ok(path);
        let decoders = Decoders::new(protobuf_of(&path, kind), true);
        Self::over(client.into().rest(), path, kind, decoders)
    }

    fn over(
        rest: RestClient,
        path: Result<ResourcePath, InvalidRequest>,
        kind: &str,
        decoders: Decoders<K>,
    ) -> Self {
        Self {
            rest,
            path,
            kind: kind.into(),
            metadata_only: false,
            labels: None,
            fields: None,
            decoders,
            timeouts: Timeouts::default(),
            random: Mutex::new(fastrand::Rng::new()),
        }
    }
}

impl<K> ListWatch<K> {
    /// Sets the label selector, in the syntax of `kubectl get -l`. Defaults to none: all objects.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Sets the field selector, such as `spec.nodeName=a`. Defaults to none: all objects.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Sets the decoder. Its [encoding](Decode::encoding) is the only one that is requested. Defaults to [`Protobuf`] or
    /// [`Json`](crate::decode::Json), depending on the response.
    #[must_use]
    pub fn decoder(mut self, decoder: impl Decode<K> + 'static) -> Self {
        self.decoders.set_own(Arc::new(decoder));
        self
    }

    /// Sets the encoding to request, unless a [decoder](Self::decoder) is set. Defaults to [`WireEncoding::Auto`].
    #[must_use]
    pub fn encoding(mut self, encoding: WireEncoding) -> Self {
        self.decoders.set_wanted(encoding);
        self
    }

    /// Sets the time limits. Defaults to [`Timeouts::default`].
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the seed of the randomized watch timeouts, for reproducible runs. Defaults to a random seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { random: Mutex::new(fastrand::Rng::with_seed(seed)), ..self }
    }

    fn list_request(&self, request: ListRequest, accepted: Accepted) -> Result<ApiRequest, InvalidRequest> {
        let ListRequest { resource_version, version_match, limit, continue_token, object } = request;
        let mut path = self.path.clone()?;
        let mut fields = self.fields.clone();
        if let Some(ObjectName { namespace, name }) = object {
            // Uses the object's own namespace, so that the API server reads a single key instead of filtering
            // a collection.
            if let Some(namespace) = namespace {
                path = path.in_namespace(namespace)?;
            }
            let by_name = format!("metadata.name={name}");
            fields = Some(fields.map_or_else(|| by_name.clone(), |fields| format!("{fields},{by_name}")));
        }
        let params = ListParams {
            label_selector: self.labels.clone(),
            field_selector: fields,
            limit,
            continue_token,
            version_match,
            resource_version,
            ..ListParams::default()
        };
        let form = if self.metadata_only { Form::MetadataList } else { Form::List };
        accepted.add_to(ApiRequest::list(path, &params)?, form)?.with_header("accept-encoding", "gzip")
    }

    fn watch_request(
        &self,
        request: &WatchRequest,
        seconds: u32,
        accepted: Accepted,
    ) -> Result<ApiRequest, InvalidRequest> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: Some(seconds),
            bookmarks: request.bookmarks,
            send_initial_events: request.send_initial_events,
        };
        let version = request.resource_version.as_deref().unwrap_or_default();
        let request = ApiRequest::watch(self.path.clone()?, &params, version)?;
        // With compression, an event would wait in the compressor's buffer for the next one.
        let form = if self.metadata_only { Form::MetadataWatch } else { Form::Watch };
        accepted.add_to(request, form)?.with_header("accept-encoding", "identity")
    }

    /// Returns the accepted encodings, and the requests for them and for JSON.
    fn attempts(
        &self,
        request: impl Fn(Accepted) -> Result<ApiRequest, InvalidRequest>,
        prepare: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Attempts<K>, InvalidRequest> {
        let accepted = self.decoders.accepted()?;
        let sending = |accepted| request(accepted).map(|request| prepare(self.rest.request(request)));
        let fallback = if accepted == Accepted::Either { Some(sending(Accepted::Json)?) } else { None };
        Ok(Attempts { accepted, first: sending(accepted)?, fallback, decoders: self.decoders.clone() })
    }

    fn watch_seconds(&self, requested: Option<Duration>) -> u32 {
        let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1);
        if let Some(requested) = requested {
            return seconds(requested);
        }
        let least = seconds(self.timeouts.watch);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.u32(least..=least.saturating_mul(2))
    }

    fn refused(&self, verb: &str, reason: InvalidRequest) -> Error {
        let resource = self.path.as_ref().map_or("objects", ResourcePath::resource);
        Error::Invalid { attempted: format!("{verb} {resource}"), reason }
    }
}

/// A request, and its repetition for JSON.
struct Attempts<K> {
    accepted: Accepted,
    first: RequestBuilder,
    fallback: Option<RequestBuilder>,
    decoders: Decoders<K>,
}

impl<K> Attempts<K> {
    /// Sends the request, and repeats it if the server does not offer protobuf.
    async fn stream(self) -> Result<(ByteStream, Decoders<K>), Error> {
        let bytes = match (self.first.stream().await, self.fallback) {
            (Err(error), Some(fallback)) if self.decoders.falls_back(self.accepted, &error) => {
                fallback.stream().await?
            }
            (response, _) => response?,
        };
        Ok((bytes, self.decoders))
    }
}

impl<K: Send + Sync + 'static> ListerWatcher<K> for ListWatch<K> {
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>> {
        let Timeouts { head, list_progress: within, .. } = self.timeouts;
        let attempts = self.attempts(
            |accepted| self.list_request(request.clone(), accepted),
            |sending| sending.deadline(head).idle_deadline(within),
        );
        let attempts = match attempts {
            Ok(attempts) => attempts,
            Err(reason) => return Box::pin(ready(Err(self.refused("list", reason)))),
        };
        let (kind, client) = (self.kind.clone(), self.rest.client().clone());
        Box::pin(async move {
            let (bytes, decoders) = attempts.stream().await?;
            let limits = client.limits();
            let decoder = decoders.of_response(&bytes, limits)?;
            let page = PageStream::new(bytes, limits, kind, decoder, within)?;
            Ok(Box::pin(page) as ListStream<K>)
        })
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>> {
        let seconds = self.watch_seconds(request.timeout);
        // There is no idle timeout: only the end of the watch must arrive in time.
        let attempts = self.attempts(
            |accepted| self.watch_request(&request, seconds, accepted),
            |sending| sending.deadline(self.timeouts.head).idle_deadline(None),
        );
        let attempts = match attempts {
            Ok(attempts) => attempts,
            Err(reason) => return Box::pin(ready(Err(self.refused("watch", reason)))),
        };
        let (kind, client) = (self.kind.clone(), self.rest.client().clone());
        let within = Duration::from_secs(seconds.into()) + self.timeouts.watch_grace;
        Box::pin(async move {
            let (bytes, decoders) = attempts.stream().await?;
            let limits = client.limits();
            let decoder = decoders.of_response(&bytes, limits)?;
            let deadline = Box::pin(tokio::time::sleep(within));
            let events = EventStream::new(bytes, limits, kind, decoder, (deadline, within))?;
            Ok(Box::pin(events) as WatchStream<K>)
        })
    }

    fn selection(&self) -> Option<Selection> {
        let path = self.path.as_ref().ok()?;
        Some(Selection {
            namespace: path.namespace().map(ToOwned::to_owned),
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
        })
    }
}

impl<K> fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("path", &self.path)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Returns the decoder of protobuf for the objects of a collection, if their kind is built-in.
fn protobuf_of(path: &Result<ResourcePath, InvalidRequest>, kind: &str) -> Option<Protobuf> {
    let path = path.as_ref().ok()?;
    Protobuf::for_kind(path.group(), path.version(), kind)
}

/// Converts a decoding error of a body to the error of its request.
pub(crate) fn unreadable(request: &RequestInfo, fault: DecodeError) -> Error {
    let request = Box::new(request.clone());
    match fault {
        DecodeError::Status { mut status, .. } => {
            // The HTTP status was a success, so the `Status` must have its own code.
            if status.code == 0 {
                status.code = 500;
            }
            Error::Api { request, retry_after: retry_after_of_status(&status), status }
        }
        DecodeError::TooLarge { limit, bytes, .. } => Error::Limit { request, limit, allowed: bytes },
        DecodeError::TooDeep { limit, .. } => {
            Error::Limit { request, limit: "json_depth", allowed: limit as u64 }
        }
        DecodeError::DecompressionRatio { ratio, .. } => {
            Error::Limit { request, limit: "decompression_ratio", allowed: ratio.into() }
        }
        source => Error::Body { request, source },
    }
}

/// Returns the error for a content encoding that was not requested.
pub(super) fn wrong_encoding(request: &RequestInfo) -> Error {
    Error::Decode { request: Box::new(request.clone()), reason: Unreadable::Encoding }
}
