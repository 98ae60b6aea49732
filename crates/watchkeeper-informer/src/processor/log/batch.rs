//! Batches of events.

use std::time::Duration;

use kube_core::Resource;

use super::{super::backlog::CoalescedBacklog, ListenerId};
use crate::{
    event::Event,
    transition::{Audience, Notification},
};

/// The maximum number of events in a batch, which a stuck handler keeps alive beside its backlog.
const LARGEST: usize = 1_024;

/// A batch that is not yet in the log.
pub(in super::super) struct Draft<K> {
    pub(super) audience: Audience,
    pub(super) events: Box<[Event<K>]>,
}

impl<K> Draft<K> {
    /// Splits notifications into batches with the same audience.
    pub(in super::super) fn cut(
        mut notifications: impl Iterator<Item = Notification<K>>,
    ) -> impl Iterator<Item = Self> {
        let mut next = notifications.next();
        std::iter::from_fn(move || {
            let Notification { event, audience } = next.take()?;
            let mut events = Vec::with_capacity(LARGEST.min(1 + notifications.size_hint().0));
            events.push(event);
            for notification in notifications.by_ref() {
                if notification.audience != audience || events.len() == LARGEST {
                    next = Some(notification);
                    break;
                }
                events.push(notification.event);
            }
            Some(Self { audience, events: events.into() })
        })
    }
}

/// Consecutive events for the same listeners.
pub(in super::super) struct EventBatch<K> {
    pub(in super::super) events: Box<[Event<K>]>,
    /// The position of the first event in the log.
    pub(super) start: u64,
    /// The time of publication.
    pub(super) at: Duration,
    pub(super) recipients: Recipients,
}

/// The listeners that receive a batch.
#[derive(Debug)]
pub(super) enum Recipients {
    All,
    /// The listeners with these ids, in ascending order.
    Only(Vec<ListenerId>),
}

impl Recipients {
    pub(super) fn include(&self, id: ListenerId) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

impl<K: Resource> EventBatch<K> {
    pub(super) fn absorb_into(&self, backlog: &mut CoalescedBacklog<K>, released: &mut Vec<Event<K>>) {
        for (position, event) in (self.start..).zip(&self.events) {
            backlog.absorb(event, position, released);
        }
    }
}
