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
//! - **A crash is found out** within `lease_duration` and `retry_period` together.
//! - **A clean end hands over** within `retry_period` (E5): releasing empties the lease, and only after the work has ended.
//!
//! What nobody can promise: people who edit the lease. One that is emptied or given to another by hand has two leaders until the
//! old one looks, which takes a `retry_period`. One that is deleted has not, except if a replica that never saw it starts at that very
//! moment: those who saw it wait as if it stood still.
//!
//! A process that is frozen for longer than `lease_duration` and wakes up in the middle of its work still believes what it last
//! knew. [`Leadership::fence`] closes that gap (E4): a client that sends no write unless this replica leads by the clock at the moment of
//! sending. Only a write that was being sent when the process froze can arrive late. [`Leadership::term`] numbers leaderships, so that
//! what an old one wrote can be told.
//!
//! [`Elector`] is the state machine: the time and what came of requests go in, requests and waits come out.
//! [`LeaderElector`] runs it over a client, and [`Leadership`] is what everybody else sees of it.
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
//!     println!("leading for the {}. time", term.number);
//! };
//! elector.lead(stop, work).await // the lease is let go when the work has ended
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
pub use elector::{Action, Elector, Observed, Outcome};
pub use fence::NotLeading;
pub use leadership::Leadership;
pub use metrics::LeaderMetrics;
pub use record::LeaseRecord;
pub use timing::{Timing, TimingError};
