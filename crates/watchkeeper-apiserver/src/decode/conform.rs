//! The check of an object against its schema: unknown fields, values of the wrong type.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{
    limits::{MAX_PATHS, path_text},
    scalar,
};
use crate::schema::{Scalar, Shape, Struct, TypeRef};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a JSON schema; types that hold a schema or something else begin with this name.
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// How far an object is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConformMode {
    /// A built-in type: a value of the wrong type rejects the object.
    BuiltIn,
    /// A custom type: only unknown fields are collected. Validation reports all other errors.
    Custom,
}

/// The result of checking an object.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The paths of unknown fields, up to a limit. All unknown fields are removed from the object.
    pub(super) unknown: Vec<String>,
}

/// Checks `object` against `ty`, normalizes its values to the form that the server writes, and removes unknown fields.
pub(super) fn conform(object: &mut Value, ty: &TypeRef, mode: ConformMode) -> Result<Findings, String> {
    let mut walk = Walk { path: String::new(), findings: Findings::default() };
    match mode {
        ConformMode::BuiltIn => walk.value(object, ty, mode)?,
        ConformMode::Custom => walk.resource(object, ty)?,
    }
    Ok(walk.findings)
}

struct Walk {
    path: String,
    findings: Findings,
}

impl Walk {
    /// Checks a complete object of a custom type. The schema of its metadata is fixed.
    fn resource(&mut self, object: &mut Value, ty: &TypeRef) -> Result<(), String> {
        let Value::Object(members) = object else { return Ok(()) };
        for name in ["apiVersion", "kind"] {
            if let Some(value) = members.get_mut(name) {
                self.within(name, |walk| walk.value(value, &text(), ConformMode::BuiltIn))?;
            }
        }
        let mut metadata = members.remove("metadata");
        if let Some(metadata) = &mut metadata {
            self.within("metadata", |walk| {
                walk.value(metadata, &TypeRef::builtin_named(OBJECT_META), ConformMode::BuiltIn)
            })?;
        }
        if let Shape::Struct(of) = ty.shape() {
            self.members(members, of, ty, ConformMode::Custom, true)?;
        }
        members.extend(
            metadata.filter(|metadata| !metadata.is_null()).map(|metadata| ("metadata".to_owned(), metadata)),
        );
        Ok(())
    }

    fn value(&mut self, value: &mut Value, ty: &TypeRef, mode: ConformMode) -> Result<(), String> {
        match (value, ty.shape()) {
            (Value::Object(members), Shape::Struct(of)) => {
                self.members(members, of, ty, mode, of.is_embedded_resource)
            }
            (Value::Object(members), Shape::Map { value: of, .. }) => {
                let of = ty.at(*of);
                for (key, value) in members.iter_mut() {
                    self.within(key, |walk| walk.element(value, &of, mode))?;
                }
                Ok(())
            }
            (Value::Array(items), Shape::List { item, .. }) => {
                let item = ty.at(*item);
                for (index, value) in items.iter_mut().enumerate() {
                    let length = self.path.len();
                    _ = write!(self.path, "[{index}]");
                    self.element(value, &item, mode)?;
                    self.path.truncate(length);
                }
                Ok(())
            }
            (Value::Null, _) => Ok(()),
            (value, Shape::Any) if mode == ConformMode::BuiltIn => self.schema_or(value, ty),
            (_, Shape::Any) => Ok(()),
            // The schema declares no object here, so all members are unknown.
            (Value::Object(members), _) if mode == ConformMode::Custom => {
                self.drop_unknown(members, &members.keys().cloned().collect::<Vec<_>>());
                Ok(())
            }
            (value, Shape::Scalar(of)) if mode == ConformMode::BuiltIn => {
                scalar::conform(value, *of).map_err(|wrong| format!("json: {wrong} (at {})", self.path))
            }
            (value, _) if mode == ConformMode::BuiltIn => Err(format!(
                "json: cannot unmarshal {} into Go struct field {} of type {}",
                scalar::json_type(value),
                self.path,
                ty.name().and_then(|name| name.rsplit('.').next()).unwrap_or("list or map"),
            )),
            _ => Ok(()),
        }
    }

    /// Checks an element of a list or a map. Null is the zero value of its type there, as in Go.
    fn element(&mut self, value: &mut Value, ty: &TypeRef, mode: ConformMode) -> Result<(), String> {
        if value.is_null() && mode == ConformMode::BuiltIn {
            *value = match ty.shape() {
                Shape::Scalar(Scalar::String | Scalar::Bytes) => "".into(),
                Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Number | Scalar::IntOrString) => {
                    0.into()
                }
                Shape::Scalar(Scalar::Boolean) => false.into(),
                Shape::Scalar(Scalar::Quantity) => "0".into(),
                Shape::Struct(_) => Value::Object(Map::new()),
                _ => Value::Null,
            };
        }
        self.value(value, ty, mode)
    }

    fn members(
        &mut self,
        members: &mut Map<String, Value>,
        of: &Struct,
        ty: &TypeRef,
        mode: ConformMode,
        is_resource: bool,
    ) -> Result<(), String> {
        let (mut unknown, mut has_nulls) = (Vec::new(), false);
        for (name, value) in members.iter_mut() {
            let known = ty.field(name).map(|field| field.ty).or(of.others);
            if let Some(known) = known {
                self.within(name, |walk| walk.value(value, &ty.at(known), mode))?;
                has_nulls |= value.is_null();
            } else if !(is_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")) {
                unknown.push(name.clone());
            }
        }
        self.drop_unknown(members, &unknown);
        if mode == ConformMode::BuiltIn && has_nulls {
            members.retain(|_, value| !value.is_null());
        }
        Ok(())
    }

    fn drop_unknown(&mut self, members: &mut Map<String, Value>, unknown: &[String]) {
        for name in unknown {
            members.remove(name);
            if self.findings.unknown.len() < MAX_PATHS {
                self.findings.unknown.push(path_text(&self.path, name));
            }
        }
    }

    /// A JSON schema, or a value of one of its union types. Unknown members are dropped without a report, because upstream
    /// reads these values with a separate decoder.
    fn schema_or(&mut self, value: &mut Value, ty: &TypeRef) -> Result<(), String> {
        let Some(type_suffix) = ty.name().and_then(|name| name.strip_prefix(SCHEMA)) else { return Ok(()) };
        let is_valid = match type_suffix {
            "OrBool" if !value.is_boolean() && !value.is_object() => {
                return Err("boolean or JSON schema expected".to_owned());
            }
            "OrArray" => value.is_object() || value.is_array(),
            "OrStringArray" if value.is_array() => return Ok(()),
            "OrStringArray" => value.is_object(),
            _ => true,
        };
        if !is_valid {
            *value = Value::Null;
            return Ok(());
        }
        let schema = TypeRef::builtin_named(SCHEMA);
        let mut walk = Self { path: self.path.clone(), findings: Findings::default() };
        match value {
            Value::Array(items) => {
                items.iter_mut().try_for_each(|item| walk.element(item, &schema, ConformMode::BuiltIn))
            }
            Value::Object(_) => walk.value(value, &schema, ConformMode::BuiltIn),
            _ => Ok(()),
        }
    }

    fn within(
        &mut self,
        name: &str,
        walk: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        walk(self)?;
        self.path.truncate(length);
        Ok(())
    }
}

fn text() -> TypeRef {
    TypeRef::builtin_named(OBJECT_META).member("name").unwrap_or_else(TypeRef::any)
}
