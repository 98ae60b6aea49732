//! Every built-in group and version, generated.
