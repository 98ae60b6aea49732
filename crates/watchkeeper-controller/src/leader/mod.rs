//! At most one of several replicas works at a time.
//!
//! Replicas share one `Lease` object. Whoever holds it renews it; who does not hold it watches it stand still before taking it.
//! What is promised, with `lease_duration`, `renew_deadline` and `retry_period` as in [`Timing`]:
//!
//! - **Never two at once** (E1), as long as no replica's clock runs faster than another's by more than
//!   `lease_duration / renew_deadline` (1.5 by default). Clocks may show different times: only durations on one's own
//!   monotonic clock count, never a time somebody wrote.
//! - **A holder that cannot renew stops in time** (E2): it stops being the leader `renew_deadline` after it *sent* the last
//!   renewal that succeeded, whatever happens to requests in flight.
//! - **A clean end hands over at once** (E5): [`Elector::release`] empties the lease, and only after the work has ended.
//!
//! A process that is frozen for longer than `lease_duration` and wakes up in the middle of a write can still finish that write.
//! Fencing closes that gap: [`Elector::term`] numbers leaderships, and a write that carries the number of an old one can be told.
//!
//! [`Elector`] is a state machine: the time and what came of requests go in, requests and waits come out.

mod elector;
mod record;
mod timing;

pub use elector::{Action, Elector, Observed, Outcome};
pub use record::LeaseRecord;
pub use timing::{Timing, TimingError};
