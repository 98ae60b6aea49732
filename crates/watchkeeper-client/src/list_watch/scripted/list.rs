//! Scripted responses to list requests.

use std::{sync::Arc, time::Duration};

use kube_core::{Resource, Status};

use super::{Fault, identity_of};
use crate::{
    decode::{DecodeError, Identity},
    error::TransportKind,
    list_watch::{ListPart, PageEnd, ReceivedItem},
};

/// The response to one list request, step by step.
#[derive(Debug)]
#[must_use = "a script has no effect until it is passed to a source"]
pub struct ListScript<K> {
    pub(super) refusal: Option<Fault>,
    pub(super) steps: Vec<ListStep<K>>,
    pub(super) end: PageEnd,
}

#[derive(Debug)]
pub(super) enum ListStep<K> {
    Part(ListPart<K>),
    Wait(Duration),
    Stall,
    Fail(Fault),
}

impl<K> ListScript<K> {
    /// Creates an empty page with this resourceVersion.
    pub fn at(resource_version: impl Into<String>) -> Self {
        let resource_version = Some(resource_version.into());
        Self { refusal: None, steps: Vec::new(), end: PageEnd { resource_version, ..PageEnd::default() } }
    }

    /// Creates a response with an HTTP error status.
    pub fn refused(status: Status) -> Self {
        Self { refusal: Some(Fault::Status(Box::new(status))), steps: Vec::new(), end: PageEnd::default() }
    }

    /// Creates a connection failure without a response.
    pub fn unreachable(kind: TransportKind) -> Self {
        Self { refusal: Some(Fault::Transport(kind)), steps: Vec::new(), end: PageEnd::default() }
    }

    /// Creates a response that exceeds a limit of the client.
    pub fn exceeding(limit: &'static str, allowed: u64) -> Self {
        let refusal = Some(Fault::Limit { limit, allowed });
        Self { refusal, steps: Vec::new(), end: PageEnd::default() }
    }

    /// Adds an object.
    pub fn item(self, object: impl Into<Arc<K>>) -> Self
    where
        K: Resource,
    {
        let object = object.into();
        self.step(ListStep::Part(ListPart::Item(ReceivedItem::decoded(identity_of(&*object), object))))
    }

    /// Adds an object that cannot be decoded.
    pub fn undecodable(self, identity: Identity) -> Self {
        let fault = DecodeError::Mismatch { reason: "scripted to be undecodable".to_owned(), offset: 0 };
        self.step(ListStep::Part(ListPart::Item(ReceivedItem::broken(identity, fault))))
    }

    /// Adds a pause.
    pub fn wait(self, duration: Duration) -> Self {
        self.step(ListStep::Wait(duration))
    }

    /// Stalls the response: no further data and no end.
    pub fn stall(self) -> Self {
        self.step(ListStep::Stall)
    }

    /// Breaks the connection before the end of the page.
    pub fn broken(self, kind: TransportKind) -> Self {
        self.step(ListStep::Fail(Fault::Transport(kind)))
    }

    /// Sets the token of a following page.
    pub fn continued(mut self, token: impl Into<String>, remaining_item_count: Option<i64>) -> Self {
        self.end.continue_token = Some(token.into());
        self.end.remaining_item_count = remaining_item_count;
        self
    }

    fn step(mut self, step: ListStep<K>) -> Self {
        self.steps.push(step);
        self
    }
}
