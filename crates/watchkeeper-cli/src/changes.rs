//! Waiting for a condition on informers, without polling.

use std::time::Duration;

use tokio::sync::watch;
use watchkeeper::{
    informer::{Object, handler::Stopped},
    prelude::*,
};

/// A counter of informer changes, so that no change is missed between a check and a wait.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    count: watch::Sender<u64>,
}

impl Changes {
    /// Counts the changes of an informer too.
    ///
    /// # Errors
    /// Returns [`Stopped`] if the informer was stopped.
    pub fn count<K: Object>(&self, informer: &SharedIndexInformer<K>) -> Result<(), Stopped> {
        let counter = self.count.clone();
        informer.add_handler(move |_: &Event<K>| counter.send_modify(|count| *count += 1)).map(drop)
    }

    /// Calls `look` now and after each change, until it returns a value. Returns `None` after `patience`.
    pub async fn until<T>(&self, patience: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
        let mut changed = self.subscribe();
        let seeing = async {
            loop {
                changed.borrow_and_update();
                if let Some(seen) = look() {
                    return seen;
                }
                // The sender is in `self`, so it cannot be dropped.
                let _ = changed.changed().await;
            }
        };
        tokio::time::timeout(patience, seeing).await.ok()
    }

    /// Returns a receiver of the number of changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_wait_ends_at_its_deadline() {
        assert_eq!(Changes::default().until(Duration::from_millis(1), || None::<()>).await, None);
    }

    #[tokio::test]
    async fn a_change_between_looking_and_waiting_is_not_missed() {
        let (changes, looks) = (Changes::default(), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            // A change happens right after each check.
            changes.count.send_modify(|count| *count += 1);
            (looks.get() == 2).then_some(())
        };
        assert_eq!(changes.until(Duration::from_secs(30), look).await, Some(()));
        assert_eq!(looks.get(), 2);
    }
}
