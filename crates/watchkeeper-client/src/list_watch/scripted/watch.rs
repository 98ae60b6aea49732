//! What a scripted watch brings.

use std::{sync::Arc, time::Duration};

use kube_core::{Resource, Status};
use tokio::sync::mpsc;

use super::{Fault, identity_of};
use crate::{
    decode::{DecodeError, Identity},
    error::TransportKind,
    list_watch::{Bookmark, Item, WatchEvent},
};

/// What one watch brings, step by step; then the server ends it in good order.
#[derive(Debug)]
#[must_use = "a script does nothing until a source has it"]
pub struct WatchScript<K> {
    pub(super) refusal: Option<Fault>,
    steps: Vec<Step<K>>,
}

#[derive(Debug)]
pub(super) enum Step<K> {
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
    /// A watch that ends at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// The server says no, as an HTTP status.
    pub fn refused(status: Status) -> Self {
        Self { refusal: Some(Fault::Status(Box::new(status))), steps: Vec::new() }
    }

    /// No answer comes: the connection fails.
    pub fn unreachable(kind: TransportKind) -> Self {
        Self { refusal: Some(Fault::Transport(kind)), steps: Vec::new() }
    }

    /// An object came to be.
    pub fn added(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        self.step(Step::Event(WatchEvent::Added(item(object))))
    }

    /// An object changed.
    pub fn modified(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        self.step(Step::Event(WatchEvent::Modified(item(object))))
    }

    /// An object is gone.
    pub fn deleted(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        self.step(Step::Event(WatchEvent::Deleted(item(object))))
    }

    /// An object changed into something that cannot be decoded.
    pub fn undecodable(self, identity: Identity) -> Self {
        let fault = DecodeError::Mismatch { reason: "scripted to be undecodable".to_owned(), offset: 0 };
        self.step(Step::Event(WatchEvent::Modified(Item::broken(identity, fault))))
    }

    /// A bookmark.
    pub fn bookmark(self, resource_version: impl Into<String>) -> Self {
        self.step(Step::Event(WatchEvent::Bookmark(Bookmark::new(resource_version.into(), false))))
    }

    /// The bookmark that ends the initial events.
    pub fn initial_events_end(self, resource_version: impl Into<String>) -> Self {
        self.step(Step::Event(WatchEvent::Bookmark(Bookmark::new(resource_version.into(), true))))
    }

    /// The server's ERROR event, which ends the watch.
    pub fn error(self, status: Status) -> Self {
        self.step(Step::Fail(Fault::Status(Box::new(status))))
    }

    /// The connection breaks.
    pub fn broken(self, kind: TransportKind) -> Self {
        self.step(Step::Fail(Fault::Transport(kind)))
    }

    /// Nothing for a while.
    pub fn wait(self, duration: Duration) -> Self {
        self.step(Step::Wait(duration))
    }

    /// Nothing ever again: neither events nor the end.
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    fn step(mut self, step: Step<K>) -> Self {
        self.steps.push(step);
        self
    }

    /// The script as something to read from, and the other end of it.
    pub(super) fn into_live(self) -> (WatchHandle<K>, Live<K>) {
        let (sender, steps) = mpsc::unbounded_channel();
        let handle = WatchHandle { sender };
        let refusal = self.refusal;
        handle.send_all(self.steps);
        (handle, Live { refusal, steps })
    }
}

/// A watch whose steps come as the test goes.
#[derive(Debug)]
pub(super) struct Live<K> {
    pub(super) refusal: Option<Fault>,
    pub(super) steps: mpsc::UnboundedReceiver<Step<K>>,
}

/// The server's end of a watch that is open: sends events when the test says so. Dropped, it ends the watch.
#[derive(Debug)]
#[must_use = "the watch ends when its handle is dropped"]
pub struct WatchHandle<K> {
    sender: mpsc::UnboundedSender<Step<K>>,
}

impl<K> WatchHandle<K> {
    /// Sends what the script says. A watch that was given up by its reader takes no notice.
    pub fn send(&self, script: WatchScript<K>) {
        self.send_all(script.steps);
    }

    /// Whether somebody reads, or may yet read, the watch.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Returns when the reader has given the watch up.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    fn send_all(&self, steps: Vec<Step<K>>) {
        for step in steps {
            // Nobody left to hear it is the reader's choice, and not an error.
            let _ = self.sender.send(step);
        }
    }
}

fn item<K: Resource>(object: impl Into<Arc<K>>) -> Item<K> {
    let object = object.into();
    Item::decoded(identity_of(&*object), object)
}
