//! Holding a reply until the test is ready for the rest of it.

use std::sync::Arc;

use tokio::sync::watch;

/// A point in a reply where the server stops until the test says go on.
///
/// Clones are the same gate. Once open it stays open.
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
    /// A closed gate.
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)), reached: Arc::new(watch::Sender::new(false)) }
    }

    /// Lets the server go on.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Returns when the server has written everything before the gate.
    pub async fn reached(&self) {
        let mut reached = self.reached.subscribe();
        // The sender is in self, so it cannot be gone.
        let _ = reached.wait_for(|reached| *reached).await;
    }

    pub(crate) async fn pass(&self) {
        self.reached.send_replace(true);
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open).await;
    }
}
