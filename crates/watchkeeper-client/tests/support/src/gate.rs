//! Gates that hold a reply until the test opens them.

use std::sync::Arc;

use tokio::sync::watch;

/// A point in a reply at which the server waits for the test.
///
/// Clones share the same gate. Once open, a gate stays open.
#[derive(Debug, Clone)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
    reached: Arc<watch::Sender<bool>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)), reached: Arc::new(watch::Sender::new(false)) }
    }

    /// Opens the gate, so that the server continues.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until the server has written everything before the gate.
    pub async fn reached(&self) {
        let mut reached = self.reached.subscribe();
        // The sender is in `self`, so it cannot be dropped.
        let _ = reached.wait_for(|reached| *reached).await;
    }

    pub(crate) async fn pass(&self) {
        self.reached.send_replace(true);
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
    }
}
