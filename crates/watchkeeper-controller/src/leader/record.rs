//! What a lease says.

use std::time::Duration;

/// What a lease says. Times are the writer's wall clock and for people to read: no decision is made from them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// How long others wait before they take it.
    pub lease_duration: Duration,
    /// How often it went from one holder to another. The number of a leadership.
    pub transitions: u32,
    /// Counts renewals of one holder, so that each write changes the object.
    pub renewals: u64,
}

impl LeaseRecord {
    /// Nobody holds it.
    pub fn is_free(&self) -> bool {
        self.holder.is_empty()
    }
}
