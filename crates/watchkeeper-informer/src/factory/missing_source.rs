//! The source of informers for which a factory has neither a client nor a source.

use std::future::ready;

use watchkeeper_client::{
    Error,
    list_watch::{ListRequest, ListStream, ListerWatcher, Opening, WatchRequest, WatchStream},
    rest::InvalidRequest,
};

/// A source that rejects all requests with an error that contains the remedy.
pub(super) struct MissingSource {
    pub(super) resource: String,
}

impl MissingSource {
    fn refusal(&self, verb: &str) -> Error {
        let reason = InvalidRequest::Params(
            "the factory has neither a client nor a source for it; add one to the builder",
        );
        Error::Invalid { attempted: format!("{verb} {}", self.resource), reason }
    }
}

impl<K: 'static> ListerWatcher<K> for MissingSource {
    fn list(&self, _request: ListRequest) -> Opening<ListStream<K>> {
        Box::pin(ready(Err(self.refusal("list"))))
    }

    fn watch(&self, _request: WatchRequest) -> Opening<WatchStream<K>> {
        Box::pin(ready(Err(self.refusal("watch"))))
    }
}
