//! Indexes for grouping rows.

use std::str::FromStr;

use watchkeeper::{kube_core::DynamicObject, prelude::*};

/// The criterion for grouping rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grouping {
    /// All rows in one group.
    None,
    /// Groups by namespace.
    Namespace,
    /// Groups by node: `spec.nodeName`.
    Node,
    /// Groups by owner.
    Owner,
    /// Groups by the value of a label.
    Label(String),
}

/// The group of objects without a value.
const NOTHING: &str = "<none>";

impl Grouping {
    /// Returns the groups of an object: usually one, and one per owner when grouped by owner.
    pub(super) fn values(&self, object: &DynamicObject) -> Vec<String> {
        let values: Vec<String> = match self {
            Self::None => vec![String::new()],
            Self::Namespace => object.namespace().into_iter().collect(),
            Self::Node => {
                let node = object.data.pointer("/spec/nodeName").and_then(|node| node.as_str());
                node.filter(|node| !node.is_empty()).map(str::to_owned).into_iter().collect()
            }
            Self::Owner => {
                let owners = object.owner_references().iter();
                owners.map(|owner| format!("{}/{}", owner.kind, owner.name)).collect()
            }
            Self::Label(key) => object.labels().get(key).cloned().into_iter().collect(),
        };
        if values.is_empty() { vec![NOTHING.to_owned()] } else { values }
    }

    /// Returns the header of the grouping column.
    pub(super) fn header(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Namespace => Some("IN".to_owned()),
            Self::Node => Some("NODE".to_owned()),
            Self::Owner => Some("OWNER".to_owned()),
            Self::Label(key) => Some(key.to_uppercase()),
        }
    }
}

impl FromStr for Grouping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once('=')) {
            ("namespace", _) => Ok(Self::Namespace),
            ("node", _) => Ok(Self::Node),
            ("owner", _) => Ok(Self::Owner),
            (_, Some(("label", key))) if !key.is_empty() => Ok(Self::Label(key.to_owned())),
            _ => Err("expected namespace, node, owner or label=KEY".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {
                "name": "web-0", "namespace": "shop", "labels": {"app": "web"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
                    {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2"},
                ],
            },
            "spec": {"nodeName": "node-1"},
        }))
        .unwrap()
    }

    #[test]
    fn an_object_is_in_the_groups_its_index_names() {
        let bare: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "x"}})).unwrap();
        for (text, of_object, of_bare) in [
            ("namespace", vec!["shop"], "<none>"),
            ("node", vec!["node-1"], "<none>"),
            ("owner", vec!["A/a", "B/b"], "<none>"),
            ("label=app", vec!["web"], "<none>"),
            ("label=tier", vec!["<none>"], "<none>"),
        ] {
            let grouping: Grouping = text.parse().unwrap();
            assert_eq!(grouping.values(&object()), of_object, "{text}");
            assert_eq!(grouping.values(&bare), [of_bare], "{text}");
        }
        assert_eq!(Grouping::None.values(&object()), [""]);
    }

    #[test]
    fn an_index_that_is_none_is_refused_with_those_there_are() {
        for text in ["", "nodes", "label", "label=", "labels=app"] {
            let error = text.parse::<Grouping>().unwrap_err();
            assert_eq!(error, "expected namespace, node, owner or label=KEY", "{text:?}");
        }
    }
}
