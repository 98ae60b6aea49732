//! The HTTP stack under a client: TLS, credentials that rotate, limits, warnings.
