//! Bytes to objects: splitting, probing, cutting, parsing.
