//! From a server's lists and watches to an unbroken story of changes.
//!
//! | file | what |
//! |---|---|
//! | `machine/` | the protocol as a state machine without IO, clock or dice: start here |
//! | `driver.rs` | [`Reflector`]: the thin async shell that asks, reads, waits and hands on |
//! | `sink.rs` | [`Change`] and [`DeltaSink`]: what it tells, and to whom |
//! | `intake.rs` | recognising, decoding and transforming objects on their way in |
//! | `quarantine.rs` | objects that exist and cannot be had |
//! | `backoff.rs` | how long to wait |
//! | `limiter.rs` | how many lists at once |
//! | `outage.rs` | the log level of failures, by how long they last |
//!
//! # Coming from client-go
//!
//! | | client-go | here |
//! |---|---|---|
//! | a watch that fails | most errors list again | resumes; lists again when resuming cannot work or did not |
//! | a streaming list without its end | waits | falls back to a paginated list, and remembers that |
//! | a broken list | begins with nothing | what was received is recalled, not decoded again |
//! | an object that cannot be decoded | stops the whole collection | is set aside and reported; its last good version stays |
//! | a failing transform | loses the event | as above |
//! | an older version after a newer one | is applied | is refused, reported and listed again |
//! | a server restored from a backup | goes unnoticed | detected before a watch is resumed, and declared as a new epoch |
//! | the wait after a failure | one backoff, reset after two minutes | a backoff for each class of failure, reset by progress |
//! | `Retry-After` inside a watch | ignored | the least to wait |
//! | transforms of a streamed list | run twice | run once |

mod backoff;
pub(crate) mod clock;
mod driver;
mod failure;
mod intake;
mod limiter;
pub(crate) mod machine;
mod options;
mod outage;
mod quarantine;
mod sink;

pub(crate) use self::intake::Transform;
pub use self::{
    driver::Reflector,
    failure::WatchFailure,
    intake::{Known, TransformError},
    limiter::RelistLimiter,
    options::{
        BackoffOptions, HistoryCheck, OnUndecodable, ReflectorOptions, StreamingOptions, VersionOrder,
        WatchOptions,
    },
    quarantine::{Cause, Quarantined},
    sink::{Change, DeltaSink, Object, Replacement, SinkClosed},
};
