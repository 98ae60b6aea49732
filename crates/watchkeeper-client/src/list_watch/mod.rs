//! List and watch as streams of objects.

/// The seam between a reflector and where its objects come from.
pub trait ListerWatcher {}
