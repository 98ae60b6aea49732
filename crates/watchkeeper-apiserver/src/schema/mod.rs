//! The types objects are made of, built-in and custom, in one form.
//!
//! One [`Schemas`] holds the types of all built-in kinds, one more the types of each version of each custom resource. A
//! [`TypeRef`] is a type in its `Schemas`; everything that walks an object (strict decoding, strategic merge, apply,
//! protobuf, OpenAPI) walks a `TypeRef` beside it.

mod builtin;
mod empty;

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use crate::kinds::GroupVersionKind;

pub(crate) use builtin::builtin;
pub(crate) use empty::{write_empty, write_spec, zero};

/// The number of a type within its [`Schemas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeId(pub u32);

/// An arena of types that refer to each other, cycles included.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    types: Vec<Type>,
    by_name: HashMap<Box<str>, TypeId>,
    by_kind: HashMap<GroupVersionKind, TypeId>,
}

/// A type: its name, if it has one, and its shape.
#[derive(Debug, Clone)]
pub(crate) struct Type {
    /// The OpenAPI name, such as `io.k8s.api.core.v1.Container`; none for types written in place.
    pub name: Option<Box<str>>,
    /// What a value of it looks like.
    pub shape: Shape,
}

/// What a value of a type looks like.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// A value without parts.
    Scalar(Scalar),
    /// An object with known members.
    Struct(Struct),
    /// An object with members of one type under any name.
    Map {
        /// The type of each value.
        value: TypeId,
        /// Owned and replaced as a whole (`x-kubernetes-map-type: atomic`).
        is_atomic: bool,
    },
    /// An array.
    List {
        /// The type of each item.
        item: TypeId,
        /// How two lists merge, and who can own what in them.
        topology: Topology,
    },
    /// Any JSON. Maps in it merge member by member, lists are atomic.
    Any,
}

/// Values without parts, told apart as far as reading, writing or comparing them differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    /// A string.
    String,
    /// A string holding base64 in JSON, bytes in protobuf.
    Bytes,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A number or a string.
    IntOrString,
    /// `100m`, `1Gi`; a string, or a number in requests.
    Quantity,
    /// Seconds, RFC 3339.
    Time,
    /// Microseconds, RFC 3339.
    MicroTime,
}

/// An object with known members.
#[derive(Debug, Clone, Default)]
pub(crate) struct Struct {
    /// The members, sorted by name.
    pub fields: Vec<Field>,
    /// Unknown members are kept, and of this type if it is named (`additionalProperties` beside `properties`,
    /// `x-kubernetes-preserve-unknown-fields`).
    pub others: Option<TypeId>,
    /// Owned and replaced as a whole.
    pub is_atomic: bool,
    /// A whole object with apiVersion, kind and metadata inside another (`x-kubernetes-embedded-resource`).
    pub is_embedded_resource: bool,
}

/// A member of a [`Struct`].
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Its name in JSON.
    pub name: Box<str>,
    /// Its type.
    pub ty: TypeId,
    /// Must be given.
    pub is_required: bool,
    /// What it is when it is not given, where the schema says so.
    pub default: Option<Value>,
    /// How a strategic merge patch treats it.
    pub patch: PatchStrategy,
    /// Its place in protobuf, for built-in types.
    pub proto: Option<ProtoField>,
    /// What becomes of it without a value.
    pub empty: Empty,
}

/// What becomes of a member without a value when an object is written: built-in types are Go structs upstream, and what
/// clients see is how Go writes those.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Empty {
    /// As given: an empty value is a value, an absent one stays absent.
    #[default]
    AsGiven,
    /// An empty value counts as absent.
    LeftOut,
    /// An absent value is written as the zero of its type: 0, false, an empty string, an object of zeros.
    Zero,
    /// An absent value is written as null, and so is an empty list or map.
    Null,
    /// A value is kept as given, null included: custom resources are not Go structs.
    Kept,
}

/// How a strategic merge patch treats a member (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// Lists merge item by item instead of being replaced.
    pub merges: bool,
    /// The member that tells items apart; none for lists of plain values.
    pub merge_key: Option<Box<str>>,
    /// Members a patch does not name are dropped (`retainKeys`).
    pub retains_keys: bool,
    /// A patch replaces it as a whole, although it is an object (`replace`).
    pub replaces: bool,
}

/// The place of a member in protobuf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtoField {
    /// The field numbers that lead to it, outermost first: one, or more where JSON has the members of a message among
    /// those of the message around it (the sources of a volume, the handlers of a probe).
    pub path: Box<[u32]>,
}

/// How two lists merge, and who can own what in them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Topology {
    /// As a whole.
    Atomic,
    /// Each value once.
    Set,
    /// Each item under the values of its keys.
    Map {
        /// The members that tell items apart.
        keys: Vec<MapKey>,
    },
}

/// A member that tells the items of a list apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MapKey {
    /// The member's name.
    pub name: Box<str>,
    /// What it counts as when an item does not have it.
    pub default: Option<Value>,
}

impl Schemas {
    /// Adds a type and answers its number.
    ///
    /// # Panics
    /// With more than four thousand million types.
    pub(crate) fn add(&mut self, ty: Type) -> TypeId {
        let id = TypeId(u32::try_from(self.types.len()).expect("fewer types than a u32 counts"));
        if let Some(name) = &ty.name {
            self.by_name.insert(name.clone(), id);
        }
        self.types.push(ty);
        id
    }

    /// The type of this OpenAPI name.
    pub(crate) fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The type of this kind.
    pub(crate) fn find_kind(&self, gvk: &GroupVersionKind) -> Option<TypeId> {
        self.by_kind.get(gvk).copied()
    }

    /// All types with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0..).map(TypeId).zip(&self.types)
    }

    /// The type with number `id`.
    pub(crate) fn get(&self, id: TypeId) -> Option<&Type> {
        self.types.get(id.0 as usize)
    }

    /// The type with number `id`, to be completed: types that refer to themselves are added before their parts.
    pub(crate) fn get_mut(&mut self, id: TypeId) -> Option<&mut Type> {
        self.types.get_mut(id.0 as usize)
    }
}

/// A type in its [`Schemas`].
#[derive(Debug, Clone)]
pub(crate) struct TypeRef {
    schemas: Arena,
    id: TypeId,
}

/// Where a type is. A walk over an object makes a [`TypeRef`] for each value in it: those of built-in types count no
/// references, which two requests at once would count in one place.
#[derive(Debug, Clone)]
enum Arena {
    Nowhere,
    BuiltIn(&'static Schemas),
    Own(Arc<Schemas>),
}

impl Arena {
    fn schemas(&self) -> Option<&Schemas> {
        match self {
            Self::Nowhere => None,
            Self::BuiltIn(schemas) => Some(schemas),
            Self::Own(schemas) => Some(schemas),
        }
    }

    fn get(&self, id: TypeId) -> Option<&Type> {
        self.schemas()?.get(id)
    }
}

impl TypeRef {
    /// The type `id` of `schemas`; an id from elsewhere counts as [`Shape::Any`].
    pub(crate) fn new(schemas: Arc<Schemas>, id: TypeId) -> Self {
        Self { schemas: Arena::Own(schemas), id }
    }

    /// A type about which nothing is known.
    pub(crate) fn any() -> Self {
        Self { schemas: Arena::Nowhere, id: TypeId(0) }
    }

    /// What a value of it looks like.
    pub(crate) fn shape(&self) -> &Shape {
        self.schemas.get(self.id).map_or(&Shape::Any, |ty| &ty.shape)
    }

    /// The type of a built-in kind or of a built-in OpenAPI name; [`TypeRef::any`] if there is none.
    pub(crate) fn builtin(id: Option<TypeId>) -> Self {
        id.map_or_else(Self::any, |id| Self { schemas: Arena::BuiltIn(builtin()), id })
    }

    /// The built-in type of this OpenAPI name; [`TypeRef::any`] if there is none.
    pub(crate) fn builtin_named(name: &str) -> Self {
        Self::builtin(builtin().find(name))
    }

    /// The type of this OpenAPI name in the same schemas; [`TypeRef::any`] if there is none.
    #[must_use]
    pub(crate) fn named(&self, name: &str) -> Self {
        self.schemas.schemas().and_then(|schemas| schemas.find(name)).map_or_else(Self::any, |id| self.at(id))
    }

    /// Its OpenAPI name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.schemas.get(self.id)?.name.as_deref()
    }

    /// Whether values are JSON that is owned and replaced as a whole (`RawExtension`).
    pub(crate) fn is_opaque(&self) -> bool {
        self.name() == Some("io.k8s.apimachinery.pkg.runtime.RawExtension")
    }

    /// Another type of the same schemas.
    #[must_use]
    pub(crate) fn at(&self, id: TypeId) -> Self {
        Self { schemas: self.schemas.clone(), id }
    }

    /// The member `name`: what the schema says about it, where it says something.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let Shape::Struct(members) = self.shape() else { return None };
        let place = members.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        members.fields.get(place)
    }

    /// The type of member `name`, of a struct or a map; none if there is no such member.
    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        match self.shape() {
            Shape::Struct(members) => {
                self.field(name).map(|field| field.ty).or(members.others).map(|id| self.at(id))
            }
            Shape::Map { value, .. } => Some(self.at(*value)),
            Shape::Any => Some(Self::any()),
            Shape::Scalar(_) | Shape::List { .. } => None,
        }
    }

    /// The type of the items of a list.
    pub(crate) fn item(&self) -> Option<Self> {
        match self.shape() {
            Shape::List { item, .. } => Some(self.at(*item)),
            Shape::Any => Some(Self::any()),
            Shape::Scalar(_) | Shape::Struct(_) | Shape::Map { .. } => None,
        }
    }
}
