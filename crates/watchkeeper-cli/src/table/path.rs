//! Paths of the columns of custom resource definitions.

use serde_json::Value;

/// A path into an object, in the subset of `JSONPath` that definitions use for columns.
///
/// `.spec.replicas`, `.status.conditions[0].reason`, `.status.conditions[?(@.type=="Ready")].status`,
/// `.metadata.labels['app']`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Position(usize),
    /// The elements of a list whose member equals this value.
    Where(String, String),
}

impl Path {
    /// Parses a path. Returns `None` for unsupported features of `JSONPath`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().trim_start_matches('{').trim_end_matches('}');
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (inside, after) = inside.split_once(']')?;
                steps.push(Step::bracketed(inside)?);
                rest = after;
            } else {
                let member = rest.strip_prefix('.')?;
                // An escaped dot belongs to the name.
                let mut name = String::new();
                let mut chars = member.char_indices();
                let mut end = member.len();
                while let Some((at, char)) = chars.next() {
                    match char {
                        '\\' => name.push(chars.next()?.1),
                        '.' | '[' => {
                            end = at;
                            break;
                        }
                        '*' => return None,
                        char => name.push(char),
                    }
                }
                steps.push(Step::Member(name).not_empty()?);
                rest = &member[end..];
            }
        }
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// Returns whether the path leads into the metadata.
    pub(super) fn is_of_metadata(&self) -> bool {
        self.0.first() == Some(&Step::Member("metadata".to_owned()))
    }

    /// Returns the values at the path; several if it selects from a list.
    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.take(value)).collect();
        }
        found
    }
}

impl Step {
    fn bracketed(inside: &str) -> Option<Self> {
        let unquoted = |text: &str| {
            let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            Some(text.strip_prefix(quote)?.strip_suffix(quote)?.to_owned())
        };
        if let Some(filter) = inside.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
            let (left, right) = filter.split_once("==")?;
            return Some(Self::Where(left.trim().strip_prefix("@.")?.to_owned(), unquoted(right.trim())?));
        }
        match inside.parse() {
            Ok(position) => Some(Self::Position(position)),
            Err(_) => Self::Member(unquoted(inside)?).not_empty(),
        }
    }

    fn not_empty(self) -> Option<Self> {
        match &self {
            Self::Member(name) if name.is_empty() => None,
            _ => Some(self),
        }
    }

    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Member(name) => value.get(name).into_iter().collect(),
            Self::Position(position) => value.get(position).into_iter().collect(),
            Self::Where(member, wanted) => {
                let items = value.as_array().into_iter().flatten();
                items.filter(|item| item.get(member).and_then(Value::as_str) == Some(wanted)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_columns_lead_to_their_values() {
        let object = json!({
            "metadata": {"labels": {"app": "web", "a.b/c": "dotted"}},
            "spec": {"replicas": 3},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Stale", "status": "False"}]},
        });
        for (path, values) in [
            (".spec.replicas", vec![json!(3)]),
            ("{.spec.replicas}", vec![json!(3)]),
            (".status.conditions[1].type", vec![json!("Stale")]),
            (".status.conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
            (".status.conditions[?(@.type=='Gone')].status", vec![]),
            (".metadata.labels['app']", vec![json!("web")]),
            (".metadata.labels.a\\.b/c", vec![json!("dotted")]),
            (".status.conditions[9].type", vec![]),
        ] {
            let found: Vec<Value> = Path::parse(path).unwrap().find(&object).into_iter().cloned().collect();
            assert_eq!(found, values, "{path}");
        }
    }

    #[test]
    fn unsupported_syntax_is_not_a_path() {
        for path in
            ["", "spec", ".spec..a", ".spec[*]", ".spec.*", ".spec[?(@.a>1)]", ".spec[a]", ".spec[0", ".a\\"]
        {
            assert_eq!(Path::parse(path), None, "{path:?}");
        }
    }
}
