//! Leader election: at most one of several replicas works at a time.
//!
//! Replicas share one `Lease` object. The holder renews it. Other replicas acquire it only after they have
//! observed it unchanged for the lease duration. The guarantees, with `lease_duration`, `renew_deadline` and
//! `retry_period` as in [`Timing`]:
//!
//! - **At most one leader** (E1), as long as no replica's clock runs faster than another's by more than a
//!   factor of `lease_duration / renew_deadline` (1.5 by default). Wall clocks may differ: only durations on
//!   a replica's own monotonic clock count, never a timestamp written by another replica.
//! - **A holder that cannot renew stops in time** (E2): leadership ends `renew_deadline` after the last
//!   successful renewal was *sent*, regardless of requests in flight.
//! - **A crash is detected** within `lease_duration + retry_period`.
//! - **A clean shutdown hands over** within `retry_period` (E5): the release clears the holder, and happens
//!   only after the work has ended.
//!
//! These guarantees do not cover manual edits of the lease. If the lease is cleared or assigned to another
//! holder by hand, two replicas lead until the previous leader reads the lease, at most one `retry_period`
//! later. Deleting the lease is safe unless a replica that has never observed it starts at that moment:
//! replicas that have observed it wait a full lease duration.
//!
//! A process that is suspended for longer than `lease_duration` and resumes in the middle of its work acts on
//! outdated knowledge. [`Leadership::fence`] closes this gap (E4) with a client that checks leadership
//! against the clock before sending each write. Only a write that was being sent at the time of the
//! suspension can arrive late. [`Leadership::term`] numbers the terms, so that writes of an earlier term can
//! be recognized.
//!
//! [`LeaderElector`] takes part in the election, and [`Leadership`] reports its state. The decisions are made by a state
//! machine, the file `elector.rs`: time and request outcomes in, requests and waits out.
//!
//! ```
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper_controller::leader::{LeaderElection, LeaderElector, LeadError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), LeadError> {
//! # let client = watchkeeper_apiserver::ApiServer::in_process().client();
//! let election = LeaderElection::new("default", "shop.example.com").identity("replica-1");
//! let elector = LeaderElector::new(client, election);
//! let stop = CancellationToken::new();
//! let work = |term: watchkeeper_controller::leader::Term| async move {
//!     // Works until `term.stop` is cancelled: by `stop`, or because the lease was lost.
//!     println!("leading in term {}", term.number);
//! };
//! elector.lead(stop, work).await // the lease is released when the work has ended
//! # }
//! ```

mod driver;
mod election;
mod elector;
mod fence;
mod leadership;
mod metrics;
mod record;
mod timing;

pub use driver::{LeadError, LeaderElector, Term};
pub use election::LeaderElection;
pub(crate) use election::host_name;
pub use fence::NotLeading;
pub use leadership::Leadership;
pub use metrics::LeaderMetrics;
pub use timing::{Timing, TimingError};
