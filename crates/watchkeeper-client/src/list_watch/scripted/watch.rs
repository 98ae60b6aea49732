//! Scripted responses to watch requests.

use std::{sync::Arc, time::Duration};

use kube_core::{Resource, Status};
use tokio::sync::mpsc;

use super::{Fault, identity_of};
use crate::{
    decode::{DecodeError, Identity},
    error::TransportKind,
    list_watch::{Bookmark, ReceivedItem, WatchEvent},
};

/// The events of one watch, step by step, after which the server closes the watch regularly.
#[derive(Debug)]
#[must_use = "a script has no effect until it is passed to a source"]
pub struct WatchScript<K> {
    pub(super) refusal: Option<Fault>,
    steps: Vec<WatchStep<K>>,
}

#[derive(Debug)]
pub(super) enum WatchStep<K> {
    Event(WatchEvent<K>),
    Wait(Duration),
    Stall,
    Fail(Fault),
}

impl<K> Default for WatchScript<K> {
    fn default() -> Self {
        Self { refusal: None, steps: Vec::new() }
    }
}

impl<K> WatchScript<K> {
    /// Creates a watch that ends immediately.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a response with an HTTP error status.
    pub fn refused(status: Status) -> Self {
        Self { refusal: Some(Fault::Status(Box::new(status))), steps: Vec::new() }
    }

    /// Creates a connection failure without a response.
    pub fn unreachable(kind: TransportKind) -> Self {
        Self { refusal: Some(Fault::Transport(kind)), steps: Vec::new() }
    }

    /// Adds an ADDED event.
    pub fn added(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        self.step(WatchStep::Event(WatchEvent::Added(item(object))))
    }

    /// Adds a MODIFIED event.
    pub fn modified(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        self.step(WatchStep::Event(WatchEvent::Modified(item(object))))
    }

    /// Adds a DELETED event.
    pub fn deleted(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        self.step(WatchStep::Event(WatchEvent::Deleted(item(object))))
    }

    /// Adds a MODIFIED event whose object cannot be decoded.
    pub fn undecodable(self, identity: Identity) -> Self {
        let fault = DecodeError::Mismatch { reason: "scripted to be undecodable".to_owned(), offset: 0 };
        self.step(WatchStep::Event(WatchEvent::Modified(ReceivedItem::broken(identity, fault))))
    }

    /// Adds a BOOKMARK event.
    pub fn bookmark(self, resource_version: impl Into<String>) -> Self {
        self.step(WatchStep::Event(WatchEvent::Bookmark(Bookmark::new(resource_version.into(), false))))
    }

    /// Adds the bookmark that ends the initial events.
    pub fn initial_events_end(self, resource_version: impl Into<String>) -> Self {
        self.step(WatchStep::Event(WatchEvent::Bookmark(Bookmark::new(resource_version.into(), true))))
    }

    /// Adds an ERROR event, which ends the watch.
    pub fn error(self, status: Status) -> Self {
        self.step(WatchStep::Fail(Fault::Status(Box::new(status))))
    }

    /// Breaks the connection.
    pub fn broken(self, kind: TransportKind) -> Self {
        self.step(WatchStep::Fail(Fault::Transport(kind)))
    }

    /// Adds a pause.
    pub fn wait(self, duration: Duration) -> Self {
        self.step(WatchStep::Wait(duration))
    }

    /// Stalls the watch: no further events and no end.
    pub fn stall(self) -> Self {
        self.step(WatchStep::Stall)
    }

    fn step(mut self, step: WatchStep<K>) -> Self {
        self.steps.push(step);
        self
    }

    /// Converts the script to a receiver of steps and its sender.
    pub(super) fn into_live(self) -> (WatchHandle<K>, Live<K>) {
        let (sender, steps) = mpsc::unbounded_channel();
        let handle = WatchHandle { sender };
        let refusal = self.refusal;
        handle.send_all(self.steps);
        (handle, Live { refusal, steps })
    }
}

/// A watch whose steps are sent while the test runs.
#[derive(Debug)]
pub(super) struct Live<K> {
    pub(super) refusal: Option<Fault>,
    pub(super) steps: mpsc::UnboundedReceiver<WatchStep<K>>,
}

/// The server side of an open watch, which sends events on behalf of the test. Dropping the handle ends the
/// watch.
#[derive(Debug)]
#[must_use = "the watch ends when its handle is dropped"]
pub struct WatchHandle<K> {
    sender: mpsc::UnboundedSender<WatchStep<K>>,
}

impl<K> WatchHandle<K> {
    /// Sends the steps of a script. Has no effect if the reader has dropped the watch.
    pub fn send(&self, script: WatchScript<K>) {
        self.send_all(script.steps);
    }

    /// Returns whether the reader still holds, or may still open, the watch.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Waits until the reader has dropped the watch.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    fn send_all(&self, steps: Vec<WatchStep<K>>) {
        for step in steps {
            // A reader that has dropped the watch is not an error.
            let _ = self.sender.send(step);
        }
    }
}

fn item<K: Resource>(object: impl Into<Arc<K>>) -> ReceivedItem<K> {
    let object = object.into();
    ReceivedItem::decoded(identity_of(&*object), object)
}
