//! What the server serves, and the mapping between kinds and resources.
