//! What reconcilers do to objects, again and again, done right once.
//!
//! | module | what it does |
//! |---|---|
//! | [`finalizer`] | work before an object goes, by a finalizer |
//! | [`owner`] | which object belongs to which, by controller references |
//! | [`conditions`] | conditions of a status, that do not flap |
//! | [`apply`] | server-side apply that sends nothing when nothing would change |
//! | [`write`](mod@write) | read, change, write: create or update, and try again after a conflict |

pub mod apply;
pub mod conditions;
pub mod finalizer;
pub mod owner;
pub mod write;
