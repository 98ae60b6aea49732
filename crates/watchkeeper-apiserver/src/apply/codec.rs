//! Encoding and decoding of field sets as `fieldsV1`.

use serde_json::{Map, Value};

use super::{
    path::{InvalidElement, PathElement},
    set::{FieldSet, SetNode},
};

/// The key with which `fieldsV1` marks a step itself as a member of the set.
const SELF: &str = ".";

/// Returns the `fieldsV1` of a set.
pub(crate) fn encode(set: &FieldSet) -> Value {
    Value::Object(set.nodes().map(|(element, node)| (element.encode(), encode_node(node))).collect())
}

fn encode_node(node: &SetNode) -> Value {
    let below = encode(&node.below);
    match below {
        // A step without children is a member without the explicit mark.
        Value::Object(mut below) if node.is_member && !below.is_empty() => {
            below.insert(SELF.to_owned(), Value::Object(Map::new()));
            Value::Object(below)
        }
        below => below,
    }
}

/// Returns whether a step of a `fieldsV1` that [`encode`] wrote is itself a member of the set.
pub(super) fn is_member(step: &Value) -> bool {
    step.as_object().is_some_and(|below| below.is_empty() || below.contains_key(SELF))
}

/// Parses a `fieldsV1`. Steps with an unknown prefix are ignored, as are values that are not objects.
///
/// # Errors
/// Returns an error if the key of a member is not a step of a path.
pub(crate) fn decode(fields: &Value) -> Result<FieldSet, InvalidElement> {
    let mut nodes = Vec::new();
    for (text, below) in fields.as_object().into_iter().flatten() {
        if text == SELF {
            continue;
        }
        let Some(element) = PathElement::parse(text)? else { continue };
        let is_marked = below.as_object().is_some_and(|below| below.contains_key(SELF));
        let below = decode(below)?;
        nodes.push((element, SetNode { is_member: is_marked || below.is_empty(), below }));
    }
    Ok(FieldSet::from_nodes(nodes))
}
