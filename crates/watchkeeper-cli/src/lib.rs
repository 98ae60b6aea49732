//! The `watchkeeper` program, as a library.
