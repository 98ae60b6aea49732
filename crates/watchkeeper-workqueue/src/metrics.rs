//! What a queue tells about itself.

use std::{fmt, sync::Arc, time::Duration};

/// Receives what happens in one queue. Every method does nothing unless overridden.
///
/// Called without the queue's lock held. A queue without metrics pays one check of a pointer.
pub trait Metrics: Send + Sync + 'static {
    /// The queue exists from now on; `running` tells, whenever asked, about the work in progress.
    fn attached(&self, running: RunningWork) {
        drop(running);
    }

    /// `keys` keys became due for work: added, or their delay ran out. Adds that merged are not counted.
    fn added(&self, keys: u64) {
        let _ = keys;
    }

    /// Keys due for work now: in line, or added again while processed.
    fn depth(&self, keys: usize) {
        let _ = keys;
    }

    /// A key was handed out after waiting in line for this long.
    fn queue_duration(&self, waited: Duration) {
        let _ = waited;
    }

    /// The work on a key ended after this long.
    fn work_duration(&self, took: Duration) {
        let _ = took;
    }

    /// A key was asked to be tried again later, by rate limit or delay.
    fn retried(&self) {}

    /// The last handle of the queue is gone; its series can go too.
    fn detached(&self) {}
}

/// The work in progress, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Running {
    /// Keys being processed.
    pub keys: usize,
    /// For how long, all of them together.
    pub unfinished: Duration,
    /// For how long the one that has taken longest.
    pub longest: Duration,
}

/// Asks a queue about its work in progress, without keeping the queue alive.
#[derive(Clone)]
pub struct RunningWork {
    pub(crate) ask: Arc<dyn Fn() -> Option<Running> + Send + Sync>,
}

impl RunningWork {
    /// The work in progress. `None` once the queue is gone.
    pub fn sample(&self) -> Option<Running> {
        (self.ask)()
    }
}

impl fmt::Debug for RunningWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunningWork").field(&self.sample()).finish()
    }
}
