//! Events that were published together.

use std::time::Duration;

use kube_core::Resource;

use super::{super::coalesced::Coalesced, ListenerId};
use crate::{
    event::Event,
    transition::{Audience, Notice},
};

/// Events in one batch at most: what a stuck handler can hold on to beside its backlog.
const LARGEST: usize = 1_024;

/// A batch that has no place in the log yet.
pub(in super::super) struct Draft<K> {
    pub(super) audience: Audience,
    pub(super) events: Box<[Event<K>]>,
}

impl<K> Draft<K> {
    /// Cuts events into batches, so that each is for the same listeners.
    pub(in super::super) fn cut(mut notices: impl Iterator<Item = Notice<K>>) -> impl Iterator<Item = Self> {
        let mut next = notices.next();
        std::iter::from_fn(move || {
            let Notice { event, audience } = next.take()?;
            let mut events = Vec::with_capacity(LARGEST.min(1 + notices.size_hint().0));
            events.push(event);
            for notice in notices.by_ref() {
                if notice.audience != audience || events.len() == LARGEST {
                    next = Some(notice);
                    break;
                }
                events.push(notice.event);
            }
            Some(Self { audience, events: events.into() })
        })
    }
}

/// Events in a row, for the same listeners.
pub(in super::super) struct Batch<K> {
    pub(in super::super) events: Box<[Event<K>]>,
    /// Where in the log the first stands.
    pub(super) start: u64,
    /// When it was published.
    pub(super) at: Duration,
    pub(super) recipients: Recipients,
}

/// Whom a batch is for.
#[derive(Debug)]
pub(super) enum Recipients {
    Everyone,
    /// In ascending order.
    Only(Vec<ListenerId>),
}

impl Recipients {
    pub(super) fn include(&self, id: ListenerId) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

impl<K: Resource> Batch<K> {
    pub(super) fn absorb_into(&self, backlog: &mut Coalesced<K>, released: &mut Vec<Event<K>>) {
        for (position, event) in (self.start..).zip(&self.events) {
            backlog.absorb(event, position, released);
        }
    }
}
