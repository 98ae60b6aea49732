//! The types of objects, built-in and custom, and the normalization of their empty members.

mod empty;

pub(crate) use empty::{write_empty, write_spec, zero};
pub(crate) use watchkeeper_schema::{
    EmptyEncoding, Field, MapKey, PatchStrategy, Scalar, Schemas, Shape, Struct, Topology, Type, TypeId,
    TypeRef, builtin,
};
