//! An in-memory source with scripted responses, for tests.

mod list;
mod source;
mod watch;

use kube_core::Resource;

pub use list::ListScript;
pub use source::{RecordedRequest, ScriptedSource};
pub use watch::{WatchHandle, WatchScript};

use crate::{
    Error,
    decode::Identity,
    error::TransportKind,
    rest::{AbsolutePath, RequestInfo, RequestTarget, Verb, retry_after_of_status},
};

/// The failure of a scripted request.
#[derive(Debug)]
enum Fault {
    Status(Box<kube_core::Status>),
    Transport(TransportKind),
    Limit { limit: &'static str, allowed: u64 },
}

impl Fault {
    fn into_error(self, verb: Verb) -> Error {
        let path = AbsolutePath::new("/scripted").unwrap_or_default();
        let request = Box::new(RequestInfo::new(verb, RequestTarget::Path(path)));
        match self {
            Self::Status(status) => {
                Error::Api { request, retry_after: retry_after_of_status(&status), status }
            }
            Self::Transport(kind) => Error::Transport { request, kind, source: None },
            Self::Limit { limit, allowed } => Error::Limit { request, limit, allowed },
        }
    }
}

fn identity_of<K: Resource>(object: &K) -> Identity {
    let meta = object.meta();
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    Identity::new(&text(&meta.namespace), &text(&meta.name), &text(&meta.uid), &text(&meta.resource_version))
}
