//! Normalization of empty members, as in the JSON encoding of the server's Go structs.

use serde_json::{Map, Value};

use super::{EmptyEncoding, Field, Scalar, Shape, TypeRef};

/// Removes and adds empty members of `object` as a Go server does when it encodes an object of type `ty`: `args: []` is
/// removed, `status: {}` and the `resources: {}` of a container are added. Objects of custom types stay unchanged.
///
/// Must be called after every change and before storing, because field ownership is tracked in the encoded form.
pub(crate) fn write_empty(object: &mut Value, ty: &TypeRef) {
    match (object, ty.shape()) {
        (Value::Object(members), Shape::Struct(of)) => write_members(members, &of.fields, ty),
        (Value::Object(members), Shape::Map { value, .. }) => {
            let of = ty.at(*value);
            for value in members.values_mut() {
                write_empty(value, &of);
            }
        }
        (Value::Array(items), Shape::List { item, .. }) => {
            let of = ty.at(*item);
            for item in items {
                write_empty(item, &of);
            }
        }
        _ => {}
    }
}

/// Adds the `spec` that an object of type `ty` always has, so that defaults find their place in it.
pub(crate) fn write_spec(object: &mut Value, ty: &TypeRef) {
    const SPEC: &str = "spec";
    let has_spec = object.get(SPEC).is_some_and(|spec| !spec.is_null());
    if !has_spec
        && let Some(field) = ty.field(SPEC).filter(|field| field.empty == EmptyEncoding::Zero)
        && matches!(ty.at(field.ty).shape(), Shape::Struct(_))
        && let Some(members) = object.as_object_mut()
    {
        members.insert(SPEC.to_owned(), Value::Object(Map::new()));
    }
}

/// Both the members and the fields are sorted, so one merge pass finds present and absent fields.
fn write_members(members: &mut Map<String, Value>, fields: &[Field], ty: &TypeRef) {
    let (mut omitted, mut absent) = (Vec::new(), Vec::new());
    let mut present = members.iter_mut().peekable();
    for field in fields {
        while present.next_if(|(name, _)| name.as_str() < &*field.name).is_some() {}
        let Some((_, value)) = present.next_if(|(name, _)| name.as_str() == &*field.name) else {
            if matches!(field.empty, EmptyEncoding::Zero | EmptyEncoding::Null) {
                absent.push(field);
            }
            continue;
        };
        let of = ty.at(field.ty);
        write_empty(value, &of);
        let is_collection = matches!(of.shape(), Shape::List { .. } | Shape::Map { .. });
        match field.empty {
            EmptyEncoding::Omitted if is_zero(value, &of) => omitted.push(&field.name),
            EmptyEncoding::Unchanged if value.is_null() => omitted.push(&field.name),
            EmptyEncoding::Null if is_collection && is_zero(value, &of) => *value = Value::Null,
            EmptyEncoding::Zero if value.is_null() => *value = zero(&of),
            _ => {}
        }
    }
    for name in omitted {
        members.remove(&**name);
    }
    for field in absent {
        let value = if field.empty == EmptyEncoding::Zero { zero(&ty.at(field.ty)) } else { Value::Null };
        members.insert(field.name.as_ref().to_owned(), value);
    }
}

/// Returns the zero value of a type: the members that are always written.
pub(crate) fn zero(ty: &TypeRef) -> Value {
    match ty.shape() {
        Shape::Scalar(Scalar::String | Scalar::Bytes) => "".into(),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Number | Scalar::IntOrString) => 0.into(),
        Shape::Scalar(Scalar::Boolean) => false.into(),
        Shape::Scalar(Scalar::Quantity) => "0".into(),
        Shape::Scalar(Scalar::Time | Scalar::MicroTime)
        | Shape::Any
        | Shape::List { .. }
        | Shape::Map { .. } => Value::Null,
        Shape::Struct(_) => {
            let mut value = Value::Object(Map::new());
            write_empty(&mut value, ty);
            value
        }
    }
}

/// Returns whether `value` is the zero value in Go.
fn is_zero(value: &Value, ty: &TypeRef) -> bool {
    match (value, ty.shape()) {
        (Value::Null | Value::Bool(false), _) => true,
        (Value::String(text), _) => text.is_empty(),
        (Value::Number(number), _) => number.as_f64() == Some(0.0),
        (Value::Array(items), _) => items.is_empty(),
        // A pointer to an empty struct is not zero; an empty struct is.
        (Value::Object(members), Shape::Struct(_)) => members.iter().all(|(name, value)| {
            ty.field(name)
                .filter(|field| !matches!(field.empty, EmptyEncoding::Unchanged | EmptyEncoding::Kept))
                .is_some_and(|field| is_zero(value, &ty.at(field.ty)))
        }),
        (Value::Object(members), _) => members.is_empty(),
        (Value::Bool(true), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{kinds::GroupVersionKind, schema::builtin};

    fn written(group: &str, kind: &str, mut object: Value) -> Value {
        let gvk = GroupVersionKind::new(group, "v1", kind);
        write_empty(&mut object, &TypeRef::builtin(builtin().find_kind(&gvk)));
        object
    }

    #[test]
    fn empty_lists_and_strings_are_omitted_and_empty_structs_are_added() {
        let given = json!({"metadata": {"name": "p", "labels": {}}, "spec": {"containers": [{"name": "c", "args": [], "image": ""}]}});
        let pod = written("", "Pod", given);
        assert_eq!(
            pod,
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}})
        );
    }

    #[test]
    fn pointer_fields_keep_zero_values() {
        let given = json!({"metadata": {"name": "p"}, "spec": {"containers": null, "terminationGracePeriodSeconds": 0, "hostNetwork": false}});
        let pod = written("", "Pod", given);
        assert_eq!(pod["spec"], json!({"containers": null, "terminationGracePeriodSeconds": 0}));
    }

    #[test]
    fn unset_times_of_an_event_are_written_as_null() {
        let event = written("", "Event", json!({"metadata": {"name": "e"}, "involvedObject": {}}));
        assert_eq!(
            event,
            json!({
                "metadata": {"name": "e"}, "involvedObject": {}, "source": {}, "eventTime": null, "firstTimestamp": null,
                "lastTimestamp": null, "reportingComponent": "", "reportingInstance": ""
            })
        );
    }

    #[test]
    fn a_role_without_rules_has_null_rules() {
        let role =
            written("rbac.authorization.k8s.io", "Role", json!({"metadata": {"name": "r"}, "rules": []}));
        assert_eq!(role["rules"], Value::Null);
    }
}
