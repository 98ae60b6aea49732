//! The types of objects, built-in and custom, in one form.
//!
//! One [`Schemas`] holds the types of all built-in kinds, another one the types of each version of each custom resource. A
//! [`TypeRef`] is a type in its `Schemas`. Everything that walks an object (strict decoding, strategic merge, apply,
//! protobuf, OpenAPI) walks a `TypeRef` in parallel. The embedded API server and the protobuf decoder of the clients share
//! the table of built-in types.

mod builtin;

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

pub use builtin::builtin;

/// A group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

impl GroupVersionKind {
    /// Creates a group, version and kind.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Returns the `apiVersion`: `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// The id of a type within its [`Schemas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeId(pub u32);

/// An arena of types that refer to each other, including cycles.
#[derive(Debug, Default)]
pub struct Schemas {
    types: Vec<Type>,
    by_name: HashMap<Box<str>, TypeId>,
    by_kind: HashMap<GroupVersionKind, TypeId>,
}

/// A type: its name, if it has one, and its shape.
#[derive(Debug, Clone)]
pub struct Type {
    /// The OpenAPI name, such as `io.k8s.api.core.v1.Container`; none for inline types.
    pub name: Option<Box<str>>,
    /// The shape of its values.
    pub shape: Shape,
}

/// The shape of the values of a type.
#[derive(Debug, Clone)]
pub enum Shape {
    /// A scalar value.
    Scalar(Scalar),
    /// An object with known members.
    Struct(Struct),
    /// An object with arbitrary member names and one type of values.
    Map {
        /// The type of each value.
        value: TypeId,
        /// Whether the map is owned and replaced as a whole (`x-kubernetes-map-type: atomic`).
        is_atomic: bool,
    },
    /// An array of items of one type.
    List {
        /// The type of each item.
        item: TypeId,
        /// The list type, which determines merging and ownership.
        topology: Topology,
    },
    /// Any JSON. Maps in it merge member by member; lists are atomic.
    Any,
}

/// The scalar types, distinguished as far as decoding, encoding or comparing them differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// A string value.
    String,
    /// A string holding base64 in JSON, bytes in protobuf.
    Bytes,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// An integer or a float.
    Number,
    /// True or false.
    Boolean,
    /// A number or a string.
    IntOrString,
    /// A quantity such as `100m` or `1Gi`; a string, or a number in requests.
    Quantity,
    /// An RFC 3339 time with seconds.
    Time,
    /// An RFC 3339 time with microseconds.
    MicroTime,
}

/// An object with known members.
#[derive(Debug, Clone, Default)]
pub struct Struct {
    /// The members, sorted by name.
    pub fields: Vec<Field>,
    /// The type of unknown members, if they are kept (`additionalProperties` beside `properties`,
    /// `x-kubernetes-preserve-unknown-fields`).
    pub others: Option<TypeId>,
    /// Whether the object is owned and replaced as a whole.
    pub is_atomic: bool,
    /// Whether the object is a complete resource with apiVersion, kind and metadata (`x-kubernetes-embedded-resource`).
    pub is_embedded_resource: bool,
}

/// A member of a [`Struct`].
#[derive(Debug, Clone)]
pub struct Field {
    /// The name in JSON.
    pub name: Box<str>,
    /// The type of the member.
    pub ty: TypeId,
    /// Whether the member is required.
    pub is_required: bool,
    /// The default value in the schema, if any.
    pub default: Option<Value>,
    /// The strategy of strategic merge patch.
    pub patch: PatchStrategy,
    /// The field numbers in protobuf, for built-in types.
    pub proto: Option<ProtoField>,
    /// The encoding of an empty or absent value.
    pub empty: EmptyEncoding,
}

/// The encoding of an empty or absent member. Built-in types are Go structs upstream, and clients see their Go encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmptyEncoding {
    /// The value is written as given: an empty value stays, an absent one stays absent.
    #[default]
    Unchanged,
    /// An empty value is omitted.
    Omitted,
    /// An absent value is written as the zero value of its type: 0, false, an empty string, an object of zero values.
    Zero,
    /// An absent value is written as null, and so is an empty list or map.
    Null,
    /// The value is kept as given, including null, because custom resources are not Go structs.
    Kept,
}

/// The treatment of a member by strategic merge patch (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Whether lists merge item by item instead of being replaced.
    pub merges: bool,
    /// The member that identifies items; none for lists of scalars.
    pub merge_key: Option<Box<str>>,
    /// Whether members that a patch does not name are dropped (`retainKeys`).
    pub retains_keys: bool,
    /// Whether a patch replaces the object as a whole (`replace`).
    pub replaces: bool,
}

/// The location of a member in protobuf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtoField {
    /// The field numbers, outermost first. There are several where JSON inlines the members of a nested message (the sources
    /// of a volume, the handlers of a probe).
    pub path: Box<[u32]>,
}

/// The list type, which determines merging and ownership.
#[derive(Debug, Clone, PartialEq)]
pub enum Topology {
    /// The list is owned and replaced as a whole.
    Atomic,
    /// The list is a set of unique values.
    Set,
    /// The list is a map: the values of the keys identify an item.
    Map {
        /// The members that identify items.
        keys: Vec<MapKey>,
    },
}

/// A member that identifies the items of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct MapKey {
    /// The name of the member.
    pub name: Box<str>,
    /// The value that an item without the member has.
    pub default: Option<Value>,
}

impl Schemas {
    /// Adds a type and returns its id.
    ///
    /// # Panics
    /// Panics with more than `u32::MAX` types.
    pub fn add(&mut self, ty: Type) -> TypeId {
        let id = TypeId(u32::try_from(self.types.len()).expect("fewer types than a u32 counts"));
        if let Some(name) = &ty.name {
            self.by_name.insert(name.clone(), id);
        }
        self.types.push(ty);
        id
    }

    /// Returns the type with this OpenAPI name.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// Returns the type of this kind.
    pub fn find_kind(&self, gvk: &GroupVersionKind) -> Option<TypeId> {
        self.by_kind.get(gvk).copied()
    }

    /// Returns all kinds with the ids of their types, in no particular order.
    pub fn kinds(&self) -> impl Iterator<Item = (&GroupVersionKind, TypeId)> {
        self.by_kind.iter().map(|(kind, id)| (kind, *id))
    }

    /// Returns all types with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0..).map(TypeId).zip(&self.types)
    }

    /// Returns the type `id`.
    pub fn get(&self, id: TypeId) -> Option<&Type> {
        self.types.get(id.0 as usize)
    }

    /// Returns the type `id` for modification. Recursive types are added before their parts.
    pub fn get_mut(&mut self, id: TypeId) -> Option<&mut Type> {
        self.types.get_mut(id.0 as usize)
    }
}

/// A type in its [`Schemas`].
#[derive(Debug, Clone)]
pub struct TypeRef {
    schemas: Arena,
    id: TypeId,
}

/// The arena of a type. A walk over an object creates a [`TypeRef`] for each value. Those of built-in types need no
/// reference count, which concurrent requests would contend for.
#[derive(Debug, Clone)]
enum Arena {
    Detached,
    BuiltIn(&'static Schemas),
    Own(Arc<Schemas>),
}

impl Arena {
    fn schemas(&self) -> Option<&Schemas> {
        match self {
            Self::Detached => None,
            Self::BuiltIn(schemas) => Some(schemas),
            Self::Own(schemas) => Some(schemas),
        }
    }

    fn get(&self, id: TypeId) -> Option<&Type> {
        self.schemas()?.get(id)
    }
}

impl TypeRef {
    /// Returns the type `id` of `schemas`. An id from elsewhere counts as [`Shape::Any`].
    pub fn new(schemas: Arc<Schemas>, id: TypeId) -> Self {
        Self { schemas: Arena::Own(schemas), id }
    }

    /// Returns the type without any restriction.
    pub fn any() -> Self {
        Self { schemas: Arena::Detached, id: TypeId(0) }
    }

    /// Returns the shape of the values.
    pub fn shape(&self) -> &Shape {
        self.schemas.get(self.id).map_or(&Shape::Any, |ty| &ty.shape)
    }

    /// Returns a built-in type by its id, or [`TypeRef::any`] for none.
    pub fn builtin(id: Option<TypeId>) -> Self {
        id.map_or_else(Self::any, |id| Self { schemas: Arena::BuiltIn(builtin()), id })
    }

    /// Returns the built-in type with this OpenAPI name, or [`TypeRef::any`] if there is none.
    pub fn builtin_named(name: &str) -> Self {
        Self::builtin(builtin().find(name))
    }

    /// Returns the type with this OpenAPI name in the same schemas, or [`TypeRef::any`] if there is none.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        self.schemas.schemas().and_then(|schemas| schemas.find(name)).map_or_else(Self::any, |id| self.at(id))
    }

    /// Returns the OpenAPI name, if the type has one.
    pub fn name(&self) -> Option<&str> {
        self.schemas.get(self.id)?.name.as_deref()
    }

    /// Whether values are JSON that is owned and replaced as a whole (`RawExtension`).
    pub fn is_opaque(&self) -> bool {
        self.name() == Some("io.k8s.apimachinery.pkg.runtime.RawExtension")
    }

    /// Another type of the same schemas.
    #[must_use]
    pub fn at(&self, id: TypeId) -> Self {
        Self { schemas: self.schemas.clone(), id }
    }

    /// Returns the field `name`, if the schema declares it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let Shape::Struct(members) = self.shape() else { return None };
        let index = members.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        members.fields.get(index)
    }

    /// Returns the type of the member `name` of a struct or a map. None if there is no such member.
    pub fn member(&self, name: &str) -> Option<Self> {
        match self.shape() {
            Shape::Struct(members) => {
                self.field(name).map(|field| field.ty).or(members.others).map(|id| self.at(id))
            }
            Shape::Map { value, .. } => Some(self.at(*value)),
            Shape::Any => Some(Self::any()),
            Shape::Scalar(_) | Shape::List { .. } => None,
        }
    }

    /// Returns the type of the items of a list.
    pub fn item(&self) -> Option<Self> {
        match self.shape() {
            Shape::List { item, .. } => Some(self.at(*item)),
            Shape::Any => Some(Self::any()),
            Shape::Scalar(_) | Shape::Struct(_) | Shape::Map { .. } => None,
        }
    }
}
