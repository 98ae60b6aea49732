//! Label selectors in objects.

use serde_json::Value;

use super::LabelSelector;

/// Parses a selector of an object: `matchLabels` and `matchExpressions`, or labels alone. Returns none for an absent or
/// malformed selector.
pub(crate) fn of_object(selector: Option<&Value>) -> Option<LabelSelector> {
    LabelSelector::parse(&selector_text(selector?)).ok()
}

/// Formats a selector of an object as in queries.
pub(crate) fn selector_text(selector: &Value) -> String {
    let is_structured = selector.get("matchLabels").is_some_and(Value::is_object)
        || selector.get("matchExpressions").is_some_and(Value::is_array);
    let labels = if is_structured { selector.get("matchLabels") } else { Some(selector) };
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    let expressions = selector.get("matchExpressions").filter(|_| is_structured).and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |member: &str| expression.get(member).and_then(Value::as_str).unwrap_or_default();
        let key = text("key");
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    // Labels come before expressions of the same key.
    parts.sort_by(|(left, _), (right, _)| left.cmp(right));
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}
