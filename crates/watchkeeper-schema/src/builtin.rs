//! The types of built-in kinds, from the table that `cargo xtask apischema` writes.
//!
//! A line that starts with a name is a type: name, shape, and the group, version and kind that it is the type of. A line
//! that starts with a space is a member of the type above it: name, type, protobuf numbers, marks, merge key and default. A
//! type that starts with a dot is of the same package. The marks are:
//!
//! | mark | meaning |
//! |---|---|
//! | `!` | required |
//! | `m` | a list that merges |
//! | `k` | `retainKeys` |
//! | `r` | replaced as a whole |
//! | `e`, `z`, `n` | without a value, the member is omitted, zero or null |

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    EmptyEncoding, Field, GroupVersionKind, MapKey, PatchStrategy, ProtoField, Scalar, Schemas, Shape,
    Struct, Topology, Type, TypeId,
};

const TABLE: &str = include_str!("types.txt");

/// Returns the types of all built-in kinds. The table is parsed once, on the first call.
pub fn builtin() -> &'static Schemas {
    static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| parse(TABLE));
    &SCHEMAS
}

/// The parser of the table. Types get ids before they are parsed, so that they can refer to each other.
struct Reader<'a> {
    schemas: Schemas,
    /// Inline types, by their text (with the package, where that matters).
    in_place: HashMap<(&'a str, &'a str), TypeId>,
    /// Types that are copies of another type without its atomic mark.
    granular: Vec<(TypeId, TypeId)>,
}

fn parse(table: &str) -> Schemas {
    let mut reader = Reader { schemas: Schemas::default(), in_place: HashMap::new(), granular: Vec::new() };
    let lines = || table.lines().filter(|line| !line.starts_with('#'));
    for line in lines().filter(|line| !line.starts_with(' ')) {
        let (name, _) = line.split_once('\t').unwrap_or((line, ""));
        reader.schemas.add(Type { name: Some(name.into()), shape: Shape::Any });
    }
    let mut current = (TypeId(0), "");
    for line in lines() {
        if let Some(member) = line.strip_prefix(' ') {
            reader.member(current.0, current.1, member);
        } else {
            current = reader.begin(line);
        }
    }
    reader.finish()
}

impl<'a> Reader<'a> {
    fn begin(&mut self, line: &'a str) -> (TypeId, &'a str) {
        let mut cells = line.split('\t');
        let (name, what) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        let id = self.schemas.find(name).unwrap_or(TypeId(0));
        let shape = match what {
            "struct" => Shape::Struct(Struct::default()),
            "atomic" => Shape::Struct(Struct { is_atomic: true, ..Struct::default() }),
            other => scalar(other).map_or(Shape::Any, Shape::Scalar),
        };
        if let Some(ty) = self.schemas.get_mut(id) {
            ty.shape = shape;
        }
        let mut kind = cells.next().unwrap_or_default().split('/');
        if let (Some(group), Some(version), Some(kind)) = (kind.next(), kind.next(), kind.next()) {
            self.schemas.by_kind.insert(GroupVersionKind::new(group, version, kind), id);
        }
        (id, name.rsplit_once('.').map_or("", |(package, _)| package))
    }

    fn member(&mut self, owner: TypeId, package: &'a str, line: &'a str) {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        let (name, ty, numbers, marks, merge_key, default) = (cell(), cell(), cell(), cell(), cell(), cell());
        let path: Box<[u32]> = numbers.split('.').filter_map(|number| number.parse().ok()).collect();
        let field = Field {
            name: name.into(),
            ty: self.ty(package, ty),
            is_required: marks.contains('!'),
            default: serde_json::from_str(default).ok(),
            patch: PatchStrategy {
                merges: marks.contains('m'),
                merge_key: (!merge_key.is_empty()).then(|| merge_key.into()),
                retains_keys: marks.contains('k'),
                replaces: marks.contains('r'),
            },
            proto: (!path.is_empty()).then_some(ProtoField { path }),
            empty: if marks.contains('e') {
                EmptyEncoding::Omitted
            } else if marks.contains('z') {
                EmptyEncoding::Zero
            } else if marks.contains('n') {
                EmptyEncoding::Null
            } else {
                EmptyEncoding::Unchanged
            },
        };
        if let Some(Type { shape: Shape::Struct(members), .. }) = self.schemas.get_mut(owner) {
            members.fields.push(field);
        }
    }

    /// Returns the id of a type as written in members.
    fn ty(&mut self, package: &'a str, text: &'a str) -> TypeId {
        if text.starts_with('.') {
            return self.schemas.find(&format!("{package}{text}")).unwrap_or(TypeId(0));
        }
        if let Some(id) = self.schemas.find(text) {
            return id;
        }
        let id_key = if text.contains(":.") { (package, text) } else { ("", text) };
        if let Some(&id) = self.in_place.get(&id_key) {
            return id;
        }
        let shape = self.shape(package, text);
        let id = self.schemas.add(Type { name: None, shape });
        if let Some(original) = text.strip_prefix("granular:") {
            let original = self.ty(package, original);
            self.granular.push((id, original));
        }
        self.in_place.insert(id_key, id);
        id
    }

    fn shape(&mut self, package: &'a str, text: &'a str) -> Shape {
        if let Some(list) = text.strip_prefix("list:") {
            let (topology, item) = list.split_once(':').unwrap_or((list, ""));
            let keys = topology.strip_prefix("map(").and_then(|keys| keys.strip_suffix(')'));
            let topology = match (topology, keys) {
                (_, Some(keys)) => Topology::Map {
                    keys: keys.split(',').map(|name| MapKey { name: name.into(), default: None }).collect(),
                },
                ("set", None) => Topology::Set,
                _ => Topology::Atomic,
            };
            Shape::List { item: self.ty(package, item), topology }
        } else if let Some(value) = text.strip_prefix("map:atomic:") {
            Shape::Map { value: self.ty(package, value), is_atomic: true }
        } else if let Some(value) = text.strip_prefix("map:") {
            Shape::Map { value: self.ty(package, value), is_atomic: false }
        } else {
            scalar(text).map_or(Shape::Any, Shape::Scalar)
        }
    }

    /// Sorts members, and sets the parts that depend on other types.
    fn finish(mut self) -> Schemas {
        for ty in &mut self.schemas.types {
            if let Shape::Struct(members) = &mut ty.shape {
                members.fields.sort_by(|one, other| one.name.cmp(&other.name));
            }
        }
        for (id, original) in &self.granular {
            let Some(Shape::Struct(members)) = self.schemas.get(*original).map(|ty| ty.shape.clone()) else {
                continue;
            };
            if let Some(ty) = self.schemas.get_mut(*id) {
                ty.shape = Shape::Struct(Struct { is_atomic: false, ..members });
            }
        }
        let defaults: Vec<(TypeId, Vec<MapKey>)> = self
            .schemas
            .iter()
            .filter_map(|(id, ty)| {
                let Shape::List { item, topology: Topology::Map { keys } } = &ty.shape else { return None };
                let default =
                    |name: &str| self.schemas.field(*item, name).and_then(|field| field.default.clone());
                let keys =
                    keys.iter().map(|key| MapKey { name: key.name.clone(), default: default(&key.name) });
                Some((id, keys.collect()))
            })
            .collect();
        for (id, with_defaults) in defaults {
            if let Some(Type { shape: Shape::List { topology: Topology::Map { keys }, .. }, .. }) =
                self.schemas.get_mut(id)
            {
                *keys = with_defaults;
            }
        }
        self.schemas
    }
}

impl Schemas {
    fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        let Shape::Struct(members) = &self.get(id)?.shape else { return None };
        let id_key = members.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        members.fields.get(id_key)
    }
}

fn scalar(text: &str) -> Option<Scalar> {
    Some(match text {
        "string" => Scalar::String,
        "bytes" => Scalar::Bytes,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "number" => Scalar::Number,
        "boolean" => Scalar::Boolean,
        "intOrString" => Scalar::IntOrString,
        "quantity" => Scalar::Quantity,
        "time" => Scalar::Time,
        "microTime" => Scalar::MicroTime,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::TypeRef;

    fn of(group: &str, version: &str, kind: &str) -> TypeRef {
        let id = builtin().find_kind(&GroupVersionKind::new(group, version, kind));
        assert!(id.is_some(), "{group}/{version} {kind} has a type");
        TypeRef::builtin(id)
    }

    #[test]
    fn every_line_of_the_schema_table_parses() {
        let mut members = 0;
        for line in TABLE.lines().filter(|line| line.starts_with(' ')) {
            let ty = line.split('\t').nth(1).unwrap();
            let leaf = ty.rsplit(':').next().unwrap();
            let known = leaf == "any"
                || scalar(leaf).is_some()
                || leaf.starts_with('.')
                || builtin().find(leaf).is_some();
            assert!(known, "{line}");
            members += 1;
        }
        let types = TABLE.lines().filter(|line| line.starts_with("io.")).count();
        assert_eq!((types, members), (558, 2323));
    }

    #[test]
    fn every_type_and_member_of_the_table_is_in_the_schemas() {
        let mut owner = "";
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let name = line.trim_start().split('\t').next().unwrap();
            if line.starts_with(' ') {
                let owner = TypeRef::builtin(builtin().find(owner));
                let field = owner.field(name);
                assert!(field.is_some(), "{name} of {owner:?}");
                assert!(builtin().get(field.unwrap().ty).is_some());
            } else {
                owner = name;
                assert!(builtin().find(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn container_ports_merge_by_number_and_protocol() {
        let container =
            of("", "v1", "Pod").member("spec").unwrap().member("containers").unwrap().item().unwrap();
        assert_eq!(container.name(), Some("io.k8s.api.core.v1.Container"));
        let ports = container.field("ports").unwrap();
        assert_eq!(ports.patch.merge_key.as_deref(), Some("containerPort"));
        assert!(ports.patch.merges);
        let Shape::List { topology: Topology::Map { keys }, .. } = container.at(ports.ty).shape().clone()
        else {
            panic!("ports are a list with keys");
        };
        let keys: Vec<_> = keys.iter().map(|key| (&*key.name, key.default.clone())).collect();
        assert_eq!(keys, [("containerPort", Some(0.into())), ("protocol", Some("TCP".into()))]);
    }

    #[test]
    fn fields_inlined_in_json_have_their_protobuf_path() {
        let spec = of("", "v1", "Pod").member("spec").unwrap();
        let volume = spec.member("volumes").unwrap().item().unwrap();
        assert_eq!(*volume.field("configMap").unwrap().proto.as_ref().unwrap().path, [2, 19]);
        assert_eq!(*volume.field("name").unwrap().proto.as_ref().unwrap().path, [1]);
        assert!(spec.field("volumes").unwrap().patch.retains_keys);
    }

    #[test]
    fn a_reference_marked_granular_is_not_atomic() {
        let spec = of("", "v1", "PersistentVolume").member("spec").unwrap();
        let claim = spec.member("claimRef").unwrap();
        assert!(
            matches!(claim.shape(), Shape::Struct(members) if !members.is_atomic && members.fields.len() == 7)
        );
    }

    #[test]
    fn a_default_is_parsed_as_json() {
        let spec = of("", "v1", "ReplicationController").member("spec").unwrap();
        assert_eq!(spec.field("replicas").unwrap().default, Some(Value::from(1)));
    }
}
