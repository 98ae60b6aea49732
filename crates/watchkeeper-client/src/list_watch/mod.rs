//! List and watch as streams of objects.
//!
//! | | |
//! |---|---|
//! | [`ListerWatcher`] | the seam: where a reflector's objects come from |
//! | [`ListWatch`] | the implementation over HTTP, for typed, dynamic, metadata-only and narrow types |
//! | [`ScriptedSource`] | the implementation in memory, for tests of whatever is built on the seam |
//! | [`Selection`] | the namespace and the selectors of a source |
//! | [`Item`] | an object that is named, and not decoded yet |
//!
//! Two rules hold for every source. An object that cannot be decoded is a matter of that object: it comes with its
//! name and version, and the stream goes on. Anything else that cannot be read ends the stream with an error: what
//! was not understood is never passed over, because the next event would move the version past it.

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
    http::ListWatch,
    item::{Item, ItemError},
    request::{ListRequest, ObjectName, WatchRequest},
    scripted::{ListScript, RecordedRequest, ScriptedSource, WatchHandle, WatchScript},
    selection::Selection,
    timeouts::Timeouts,
};
pub use crate::decode::Bookmark;
use crate::{Error, decode::ListEnvelope};

/// A list or watch being opened: resolves when the server has agreed to it, or with why it has not.
pub type Opening<S> = Pin<Box<dyn Future<Output = Result<S, Error>> + Send>>;

/// The parts of one page: items, then its end. An error is the last thing of it.
pub type ListStream<K> = Pin<Box<dyn Stream<Item = Result<ListPart<K>, Error>> + Send>>;

/// The events of one watch. Ends without an error when the server ends it in good order; an error is the last thing
/// of it.
pub type WatchStream<K> = Pin<Box<dyn Stream<Item = Result<WatchEvent<K>, Error>> + Send>>;

/// The seam between a reflector and where its objects come from.
///
/// Opening and streaming are apart because failing at one is not failing at the other: what to do next depends on
/// which it was (see [`Phase`](crate::classify::Phase)). Dropping an opening or a stream abandons the request.
pub trait ListerWatcher<K>: Send + Sync + 'static {
    /// Asks for one page of the collection.
    fn list(&self, request: ListRequest) -> Opening<ListStream<K>>;

    /// Asks for the changes of the collection.
    fn watch(&self, request: WatchRequest) -> Opening<WatchStream<K>>;

    /// Returns the namespace and the selectors that the source requests, or `None` if they are not known.
    ///
    /// A controller that writes an object waits until its cache shows the write, unless the selection excludes the object. A
    /// source that wraps another one returns the selection of that one.
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
    /// An object.
    Item(Item<K>),
    /// The end of the page: always there, always last. A page without it is not whole, and must not be used as if
    /// what it lacks were gone.
    End(PageEnd),
}

/// What a page says about itself and about what follows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PageEnd {
    /// The version the whole list is true for.
    pub resource_version: Option<String>,
    /// Asks for the next page, when there is one.
    pub continue_token: Option<String>,
    /// How many objects are left behind this page, where the server says.
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
/// The server's ERROR event is not among them: it is the [`Error::Api`] the stream ends with, so that a refusal means
/// the same whether it came as an HTTP status or in the stream.
#[derive(Debug)]
pub enum WatchEvent<K> {
    /// The object came to be, or came to match the selectors.
    Added(Item<K>),
    /// The object changed.
    Modified(Item<K>),
    /// The object is gone, or matches the selectors no more. Carries its last state.
    Deleted(Item<K>),
    /// Nothing of interest happened up to this version.
    Bookmark(Bookmark),
}
