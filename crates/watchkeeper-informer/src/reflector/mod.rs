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
//!
//! # Coming from client-go
//!
//! | | client-go | here |
//! |---|---|---|
//! | a watch that fails | most errors list again | resumes; lists again when resuming cannot work or did not |
//! | a streaming list without its end | restarts for ever, at once | bounded, then lists, and remembers that |
//! | a broken list | begins with nothing | what was received is recalled, not decoded again |
//! | an object that cannot be decoded | stops the whole collection | is set aside and reported; its last good version stays |
//! | a failing transform | loses the event | as above |
//! | an older version after a newer one | is applied | is refused, reported and listed again |
//! | a server restored from a backup | goes unnoticed | is probed for, and declared as a new epoch |
//! | the wait after a failure | starts over every two minutes | starts over after two good minutes |
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
mod quarantine;
mod sink;

pub(crate) use self::intake::Transform;
pub use self::{
    driver::Reflector,
    failure::WatchFailure,
    intake::{Known, TransformError},
    limiter::RelistLimiter,
    options::{
        BackoffOptions, OnUndecodable, ReflectorOptions, RewindProbe, StreamingOptions, VersionOrder,
        WatchOptions,
    },
    quarantine::{Cause, Quarantined},
    sink::{Change, DeltaSink, Object, Replacement, SinkClosed},
};
