//! Items of a list before and after a change.

use std::collections::HashMap;

use serde_json::Value;

use crate::crd::structural::ListType;

/// The items of a list before a change, by the values of their keys. Only lists of type map have any.
///
/// An item is not correlated if a key is absent or is not a scalar. Of several items with the same keys, the first counts.
pub(crate) struct OldItems<'a> {
    keys: &'a [String],
    items: HashMap<Vec<&'a Value>, &'a Value>,
}

impl<'a> OldItems<'a> {
    /// Reads the list `old`.
    pub(crate) fn new(old: Option<&'a Value>, list: &'a ListType) -> Self {
        let mut olds = Self { keys: &[], items: HashMap::new() };
        if let (ListType::Map(keys), Some(Value::Array(items))) = (list, old) {
            olds.keys = keys;
            for item in items {
                if let Some(identity) = identity(item, keys) {
                    olds.items.entry(identity).or_insert(item);
                }
            }
        }
        olds
    }

    /// Returns the item that `item` was before the change.
    pub(crate) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&identity(item, self.keys)?).copied()
    }
}

fn identity<'a>(item: &'a Value, keys: &[String]) -> Option<Vec<&'a Value>> {
    let is_scalar = |value: &&Value| value.is_boolean() || value.is_number() || value.is_string();
    keys.iter().map(|key| item.get(key).filter(is_scalar)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ListType, OldItems};

    #[test]
    fn items_correlate_by_scalar_keys_and_the_first_duplicate_is_used() {
        let list = ListType::Map(vec!["a".to_owned(), "b".to_owned()]);
        let old = json!([
            {"a": 1, "b": "x", "n": 1}, {"a": 1, "b": "x", "n": 2}, {"a": 2, "n": 3}, {"a": [], "b": "x", "n": 4},
            {"a": null, "b": "x", "n": 5}, 7
        ]);
        let olds = OldItems::new(Some(&old), &list);
        let table = [
            (json!({"a": 1, "b": "x"}), Some(1)),
            (json!({"a": 1, "b": "y"}), None),
            (json!({"a": 2}), None),
            (json!({"a": [], "b": "x"}), None),
            (json!({"a": null, "b": "x"}), None),
            (json!({"b": "x"}), None),
            (json!(7), None),
        ];
        for (item, expected) in table {
            let found = olds.get(&item).and_then(|old| old.get("n")).and_then(Value::as_i64);
            assert_eq!(found, expected, "{item}");
        }
        let item = json!({"a": 1, "b": "x"});
        assert!(OldItems::new(Some(&old), &ListType::Set).get(&item).is_none());
        assert!(OldItems::new(None, &list).get(&item).is_none());
    }
}
