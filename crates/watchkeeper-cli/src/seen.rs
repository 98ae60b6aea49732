//! Waiting until something is seen, without asking again and again.

use std::time::Duration;

use tokio::sync::watch;
use watchkeeper::{
    informer::{Object, handler::Stopped},
    prelude::*,
};

/// Counts changes of informers, so that none is missed between looking and waiting.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    count: watch::Sender<u64>,
}

impl Changes {
    /// Counts the changes of an informer too.
    ///
    /// # Errors
    /// If the informer was stopped.
    pub fn count<K: Object>(&self, informer: &SharedIndexInformer<K>) -> Result<(), Stopped> {
        let counter = self.count.clone();
        informer.add_handler(move |_: &Event<K>| counter.send_modify(|count| *count += 1)).map(drop)
    }

    /// Looks now and after each change, until there is something to be seen. None if that takes longer than `patience`.
    pub async fn until<T>(&self, patience: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
        let mut changed = self.subscribe();
        let seeing = async {
            loop {
                changed.borrow_and_update();
                if let Some(seen) = look() {
                    return seen;
                }
                // The sender is in `self`.
                let _ = changed.changed().await;
            }
        };
        tokio::time::timeout(patience, seeing).await.ok()
    }

    /// The number of changes, to be waited on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn what_does_not_come_in_time_is_not_waited_for_longer() {
        assert_eq!(Changes::default().until(Duration::from_millis(1), || None::<()>).await, None);
    }

    #[tokio::test]
    async fn a_change_between_looking_and_waiting_is_not_missed() {
        let (changes, looks) = (Changes::default(), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            // Something happens right after each look.
            changes.count.send_modify(|count| *count += 1);
            (looks.get() == 2).then_some(())
        };
        assert_eq!(changes.until(Duration::from_secs(30), look).await, Some(()));
        assert_eq!(looks.get(), 2);
    }
}
