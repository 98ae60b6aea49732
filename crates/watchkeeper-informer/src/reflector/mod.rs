//! Reflectors: list and watch one collection and pass every change to a sink.
//!
//! | file | contents |
//! |---|---|
//! | `machine/` | the list-watch protocol as a state machine without IO, clock or randomness; start here |
//! | `driver.rs` | [`Reflector`]: the async driver of the machine |
//! | `connection.rs` | the open responses that the driver reads |
//! | `sink.rs` | [`WatchDelta`] and [`DeltaSink`]: the changes and their receiver |
//! | `intake.rs` | reusing, decoding and transforming received objects |
//! | `quarantine.rs` | objects that could not be decoded or transformed |
//! | `backoff.rs` | the delay after a failure |
//! | `limiter.rs` | the limit of concurrent lists |
//! | `outage.rs` | the log level of failures, by the duration of the outage |
//!
//! # Comparison with client-go
//!
//! | | client-go | here |
//! |---|---|---|
//! | a watch fails | relists after most errors | resumes; relists when resuming cannot succeed or did not |
//! | a streaming list has no end | waits | falls back to a paginated list, and remembers that |
//! | a list breaks off | starts over | reuses the objects that were received |
//! | an object cannot be decoded | stops the whole collection | quarantines and reports the object, and keeps its last good version |
//! | a transform fails | loses the event | quarantines the object |
//! | an older version after a newer one | applied | rejected, reported and relisted |
//! | a server is restored from a backup | not detected | detected before a watch is resumed, and reported as a new epoch |
//! | the delay after a failure | one backoff, reset after two minutes | a backoff for each class of failure, reset by progress |
//! | `Retry-After` inside a watch | ignored | the minimum delay |
//! | transforms of a streaming list | run twice | run once |

mod backoff;
mod connection;
mod driver;
mod failure;
mod intake;
mod limiter;
pub(crate) mod machine;
mod options;
mod outage;
mod quarantine;
mod sink;

pub use self::{
    driver::Reflector,
    failure::WatchFailure,
    intake::{TransformError, VersionLookup},
    limiter::RelistLimiter,
    options::{
        BackoffOptions, HistoryCheck, OnUndecodable, ReflectorOptions, StreamingOptions, VersionOrder,
        WatchOptions,
    },
    quarantine::{QuarantineCause, Quarantined},
    sink::{DeltaSink, ReceivedObject, Replacement, SinkClosed, WatchDelta},
};
pub(crate) use self::{
    failure::WatchErrorHook,
    intake::{Keep, ObjectRejection, Transform, decoded, transformed},
};
