//! The running watches of the clients that faults affect.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use super::{connection_reset, requests::Target};

/// The smallest number of watches at which ended ones are removed.
const MIN_PRUNED: usize = 64;

/// The running watches.
#[derive(Default)]
pub(super) struct RunningWatches {
    watches: Vec<(Target, oneshot::Sender<()>)>,
    /// The number of watches at which ended ones are removed next: twice the number that ran the last time.
    prune_at: usize,
}

/// The signal that cuts a watch.
#[derive(Debug)]
pub(crate) struct Cut(Option<oneshot::Receiver<()>>);

impl RunningWatches {
    /// Adds a watch. It is removed after the returned signal is dropped.
    pub(super) fn add(&mut self, target: Target) -> Cut {
        if self.watches.len() >= self.prune_at.max(MIN_PRUNED) {
            self.watches.retain(|(_, cut)| !cut.is_closed());
            self.prune_at = self.watches.len() * 2;
        }
        let (sender, receiver) = oneshot::channel();
        self.watches.push((target, sender));
        Cut(Some(receiver))
    }

    /// Returns the number of watches, including ended ones that have not been removed.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.watches.len()
    }

    /// Cuts the selected watches, in the order in which they started.
    pub(super) fn cut(&mut self, mut is_selected: impl FnMut(&Target) -> bool) {
        let selected = self.watches.extract_if(.., |(target, cut)| !cut.is_closed() && is_selected(target));
        for (_, cut) in selected {
            // An error means that the watch ended by itself.
            let _ = cut.send(());
        }
    }
}

impl Cut {
    /// Returns the error of the watch once, when the watch is cut.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(signal) = &mut self.0 else { return Poll::Pending };
        let Poll::Ready(result) = Pin::new(signal).poll(context) else { return Poll::Pending };
        self.0 = None;
        // An error means that the faults no longer exist, so nothing cuts the watch.
        if result.is_ok() { Poll::Ready(connection_reset()) } else { Poll::Pending }
    }
}
