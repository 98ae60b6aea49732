//! The source of a factory that has none.

use std::future::ready;

use watchkeeper_client::{
    Error,
    list_watch::{ListRequest, ListStream, ListerWatcher, Opening, WatchRequest, WatchStream},
    rest::InvalidRequest,
};

/// Refuses everything, with what to do about it.
pub(super) struct Nowhere {
    pub(super) resource: String,
}

impl Nowhere {
    fn refusal(&self, verb: &str) -> Error {
        let reason =
            InvalidRequest::Params("the factory has neither a client nor a source for it; give it one");
        Error::Invalid { attempted: format!("{verb} {}", self.resource), reason }
    }
}

impl<K: 'static> ListerWatcher<K> for Nowhere {
    fn list(&self, _request: ListRequest) -> Opening<ListStream<K>> {
        Box::pin(ready(Err(self.refusal("list"))))
    }

    fn watch(&self, _request: WatchRequest) -> Opening<WatchStream<K>> {
        Box::pin(ready(Err(self.refusal("watch"))))
    }
}
