//! What lies below an object and is not the object: scale, binding, eviction, token.
