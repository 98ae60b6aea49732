//! Conversion of the schema of a custom resource to a [`TypeRef`], for apply and for decoding.

use std::{collections::HashSet, sync::Arc};

use super::structural::{Additional, JsonType, ListType, Structural};
use crate::schema::{
    EmptyEncoding, Field, MapKey, PatchStrategy, Scalar, Schemas, Shape, Struct, Topology, Type, TypeId,
    TypeRef,
};

/// Returns the type of objects of a custom kind. `metadata` is the type of the metadata of all objects.
pub(crate) fn type_of(schema: &Structural, metadata: &TypeRef) -> TypeRef {
    let mut schemas = Schemas::default();
    let copied = Copier { from: metadata, to: &mut schemas, known: Vec::new() }.copy(metadata);
    let root = Builder { schemas: &mut schemas, metadata: copied }.add(schema, true);
    TypeRef::new(Arc::new(schemas), root)
}

fn unnamed(shape: Shape) -> Type {
    Type { name: None, shape }
}

struct Builder<'a> {
    schemas: &'a mut Schemas,
    metadata: TypeId,
}

impl Builder<'_> {
    fn scalar(&mut self, scalar: Scalar) -> TypeId {
        self.schemas.add(unnamed(Shape::Scalar(scalar)))
    }

    fn any(&mut self) -> TypeId {
        self.schemas.add(unnamed(Shape::Any))
    }

    fn add(&mut self, schema: &Structural, is_root: bool) -> TypeId {
        if schema.is_int_or_string {
            return self.scalar(Scalar::IntOrString);
        }
        match schema.ty {
            None => self.any(),
            Some(JsonType::String) => self.scalar(Scalar::String),
            Some(JsonType::Boolean) => self.scalar(Scalar::Boolean),
            Some(JsonType::Number) => self.scalar(Scalar::Number),
            Some(JsonType::Integer) => self.scalar(Scalar::Int64),
            Some(JsonType::Array) => {
                let item = match &schema.items {
                    Some(items) => self.add(items, false),
                    None => self.any(),
                };
                let topology = match &schema.list {
                    ListType::Atomic => Topology::Atomic,
                    ListType::Set => Topology::Set,
                    ListType::Map(keys) => {
                        Topology::Map { keys: keys.iter().map(|key| map_key(key, schema)).collect() }
                    }
                };
                self.schemas.add(unnamed(Shape::List { item, topology }))
            }
            Some(JsonType::Object) => self.object(schema, is_root),
        }
    }

    fn object(&mut self, schema: &Structural, is_root: bool) -> TypeId {
        let is_resource = is_root || schema.is_embedded;
        if schema.properties.is_empty() && !is_resource {
            match &schema.additional {
                Additional::Of(of) => {
                    let value = self.add(of, false);
                    return self.schemas.add(unnamed(Shape::Map { value, is_atomic: schema.is_atomic_map }));
                }
                Additional::Any => {
                    let value = self.any();
                    return self.schemas.add(unnamed(Shape::Map { value, is_atomic: schema.is_atomic_map }));
                }
                Additional::None => {}
            }
        }
        let mut fields: Vec<Field> = Vec::with_capacity(schema.properties.len() + 3);
        let required: HashSet<&str> = schema.required.iter().map(String::as_str).collect();
        for (name, property) in &schema.properties {
            // The type of the metadata is fixed, whatever the schema declares.
            let ty =
                if is_resource && name == "metadata" { self.metadata } else { self.add(property, false) };
            fields.push(field(name, ty, required.contains(name.as_str()), property));
        }
        if is_resource {
            for name in ["apiVersion", "kind", "metadata"] {
                if !schema.properties.contains_key(name) {
                    let ty = if name == "metadata" { self.metadata } else { self.scalar(Scalar::String) };
                    fields.push(field(name, ty, false, &Structural::default()));
                }
            }
            fields.sort_by(|left, right| left.name.cmp(&right.name));
        }
        let others = match &schema.additional {
            Additional::Of(of) => Some(self.add(of, false)),
            Additional::Any => Some(self.any()),
            Additional::None if schema.keeps_unknown => Some(self.any()),
            Additional::None => None,
        };
        self.schemas.add(unnamed(Shape::Struct(Struct {
            fields,
            others,
            is_atomic: schema.is_atomic_map,
            is_embedded_resource: schema.is_embedded,
        })))
    }
}

fn field(name: &str, ty: TypeId, is_required: bool, property: &Structural) -> Field {
    Field {
        name: name.into(),
        ty,
        is_required,
        default: property.default.clone(),
        patch: PatchStrategy::default(),
        proto: None,
        empty: EmptyEncoding::Kept,
    }
}

fn map_key(key: &str, schema: &Structural) -> MapKey {
    let property = schema.items.as_ref().and_then(|items| items.properties.get(key));
    MapKey { name: key.into(), default: property.and_then(|property| property.default.clone()) }
}

/// A copier of a type and all its parts from one arena to another.
struct Copier<'a> {
    from: &'a TypeRef,
    to: &'a mut Schemas,
    known: Vec<(TypeId, TypeId)>,
}

impl Copier<'_> {
    fn copy(&mut self, ty: &TypeRef) -> TypeId {
        let placeholder = self.to.add(unnamed(Shape::Any));
        self.fill(placeholder, ty);
        placeholder
    }

    fn copy_id(&mut self, id: TypeId) -> TypeId {
        if let Some((_, copied)) = self.known.iter().find(|(known, _)| *known == id) {
            return *copied;
        }
        let placeholder = self.to.add(unnamed(Shape::Any));
        self.known.push((id, placeholder));
        let ty = self.from.at(id);
        self.fill(placeholder, &ty);
        placeholder
    }

    fn fill(&mut self, target: TypeId, ty: &TypeRef) {
        let shape = match ty.shape() {
            Shape::Scalar(scalar) => Shape::Scalar(*scalar),
            Shape::Any => Shape::Any,
            Shape::Map { value, is_atomic } => {
                Shape::Map { value: self.copy_id(*value), is_atomic: *is_atomic }
            }
            Shape::List { item, topology } => {
                Shape::List { item: self.copy_id(*item), topology: topology.clone() }
            }
            Shape::Struct(of) => {
                let mut of = of.clone();
                for field in &mut of.fields {
                    field.ty = self.copy_id(field.ty);
                }
                of.others = of.others.map(|others| self.copy_id(others));
                Shape::Struct(of)
            }
        };
        if let Some(node) = self.to.get_mut(target) {
            *node = Type { name: ty.name().map(Into::into), shape };
        }
    }
}
