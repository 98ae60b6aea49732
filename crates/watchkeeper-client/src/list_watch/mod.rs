//! List and watch as streams of objects.
//!
//! | item | role |
//! |---|---|
//! | [`ListerWatcher`] | the trait: a source of objects for a reflector |
//! | [`ListWatch`] | the implementation over HTTP, for typed, dynamic, metadata-only and narrow types |
//! | [`ScriptedSource`] | the in-memory implementation, for tests |
//! | [`Selection`] | the namespace and the selectors of a source |
//! | [`ReceivedItem`] | an object that is identified but not decoded yet |
//!
//! Two rules hold for every source. An object that cannot be decoded affects only that object: it is
//! delivered with its identity and version, and the stream continues. Anything else that cannot be decoded
//! ends the stream with an error and is never skipped, because the next event would advance the
//! resourceVersion past it.

mod encoding;
mod events;
mod http;
mod item;
mod page;
mod request;
mod scripted;
mod selection;
mod timeouts;

use std::{pin::Pin, sync::Arc};

use futures_core::Stream;

pub(crate) use self::http::unreadable;
pub use self::{
    encoding::WireEncoding,
    http::ListWatch,
    item::{ItemError, ReceivedItem},
    request::{ListRequest, ObjectName, WatchRequest},
    scripted::{ListScript, RecordedRequest, ScriptedSource, WatchHandle, WatchScript},
    selection::Selection,
    timeouts::Timeouts,
};
pub use crate::decode::event::Bookmark;
use crate::{Error, decode::ListEnvelope};

/// A pending list or watch request, which resolves to a stream, or to the error of opening it.
pub type Opening<S> = Pin<Box<dyn Future<Output = Result<S, Error>> + Send>>;

/// The parts of one page: items, then its end. An error is always last.
pub type ListStream<K> = Pin<Box<dyn Stream<Item = Result<ListPart<K>, Error>> + Send>>;

/// The events of one watch. The stream ends without an error if the server closes the watch regularly; an
/// error is always last.
pub type WatchStream<K> = Pin<Box<dyn Stream<Item = Result<WatchEvent<K>, Error>> + Send>>;

/// A source of objects for a reflector.
///
/// Opening and streaming are separate because their failures have different consequences (see
/// [`Phase`](crate::classify::Phase)). Dropping an opening or a stream cancels the request.
#[doc(alias = "ListFunc")]
pub trait ListerWatcher<K>: Send + Sync + 'static {
    /// Requests one page of the collection.
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>>;

    /// Requests the changes of the collection.
    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>>;

    /// Returns the namespace and the selectors that the source requests, or `None` if they are unknown.
    ///
    /// A controller that writes an object waits until its cache shows the write, unless the selection
    /// excludes the object. A source that wraps another one returns the selection of that one.
    fn selection(&self) -> Option<Selection> {
        None
    }
}

impl<K, S: ListerWatcher<K> + ?Sized> ListerWatcher<K> for Arc<S>
where
    Self: Send + Sync + 'static,
{
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>> {
        S::list(self, request)
    }

    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>> {
        S::watch(self, request)
    }

    fn selection(&self) -> Option<Selection> {
        S::selection(self)
    }
}

/// A part of a page.
#[derive(Debug)]
pub enum ListPart<K> {
    /// An object of the page.
    Item(ReceivedItem<K>),
    /// The end of the page, which is always present and last. A page without it is incomplete: absent objects
    /// must not be treated as deleted.
    End(PageEnd),
}

/// The end of a page, with the position of the next page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PageEnd {
    /// The resourceVersion of the list.
    pub resource_version: Option<String>,
    /// The token that requests the next page, if there is one.
    pub continue_token: Option<String>,
    /// The number of objects after this page, if the server reports it.
    pub remaining_item_count: Option<i64>,
}

impl From<ListEnvelope> for PageEnd {
    fn from(envelope: ListEnvelope) -> Self {
        Self {
            resource_version: envelope.resource_version,
            continue_token: envelope.continue_token,
            remaining_item_count: envelope.remaining_item_count,
        }
    }
}

/// An event of a watch.
///
/// The server's ERROR event is not included: the stream ends with [`Error::Api`] instead, so that a failure
/// has the same meaning as an HTTP status and as an event.
#[derive(Debug)]
#[doc(alias = "WatchInterface")]
pub enum WatchEvent<K> {
    /// The object was created, or started to match the selectors.
    Added(ReceivedItem<K>),
    /// The object was modified.
    Modified(ReceivedItem<K>),
    /// The object was deleted, or stopped matching the selectors. Contains its last state.
    Deleted(ReceivedItem<K>),
    /// All changes up to this version have been sent.
    Bookmark(Bookmark),
}
