//! A queue of keys for level-triggered work.
