//! Any resource by group, version and resource name.
