//! The paths of custom columns, scales and selectable fields: `.spec.ports[0].name`, `.metadata.labels.a\.b`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// A path in an object, in the subset of `JSONPath` that custom resource definitions may use for columns, scales and selectable
/// fields.
///
/// ```
/// use serde_json::json;
/// use watchkeeper_apiserver::JsonPath;
///
/// let ready = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#).expect("a valid path");
/// let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// assert_eq!(ready.find(&object), [&json!("True")]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    /// A list item; negative indexes count from the end.
    Item(i64),
    /// All items of a list, or all members of an object.
    All,
    /// The items in a range of indexes.
    Slice(Option<i64>, Option<i64>),
    /// The items with a matching member.
    Filter {
        path: Vec<String>,
        is_equal: bool,
        value: String,
    },
}

impl JsonPath {
    /// Parses a path. Returns `None` if the path is outside the supported subset.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(rest);
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after)?;
                let (inner, after) = after.split_at_checked(end)?;
                steps.push(brackets(inner)?);
                rest = after.strip_prefix(']')?;
            } else {
                let after = rest.strip_prefix('.')?;
                // A dot before brackets, and a trailing dot, are ignored.
                if after.is_empty() || after.starts_with('[') {
                    rest = after;
                    continue;
                }
                let (name, after) = member(after);
                steps.push(if name == "*" { Step::All } else { Step::Member(name) });
                rest = after;
            }
        }
        Some(Self { steps })
    }

    /// Returns the member of the object in which the path begins, or `None` for the path of the object itself.
    pub fn first_member(&self) -> Option<&str> {
        match self.steps.first()? {
            Step::Member(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the values at the path, in order.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        self.steps
            .iter()
            .fold(vec![object], |found, step| found.into_iter().flat_map(|value| step.find(value)).collect())
    }
}

/// Returns the index of the closing bracket outside of quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices()
        .find(|(_, letter)| {
            match (quote, letter) {
                (None, '\'' | '"') => quote = Some(*letter),
                (Some(open), close) if open == *close => quote = None,
                _ => return quote.is_none() && *letter == ']',
            }
            false
        })
        .map(|(offset, _)| offset)
}

fn brackets(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(name) = unquote(inner) {
        return Some(Step::Member(name.to_owned()));
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (path, is_equal, value) = match condition.split_once("==") {
            Some((path, value)) => (path, true, value),
            None => condition.split_once("!=").map(|(path, value)| (path, false, value))?,
        };
        let mut path = path.trim().strip_prefix('@')?;
        let mut names = Vec::new();
        while let Some(after) = path.strip_prefix('.') {
            let (name, after) = member(after);
            names.push(name);
            path = after;
        }
        let value = value.trim();
        return path.is_empty().then(|| Step::Filter {
            path: names,
            is_equal,
            value: unquote(value).unwrap_or(value).to_owned(),
        });
    }
    if let Some((from, to)) = inner.split_once(':') {
        let bound = |text: &str| -> Option<Option<i64>> {
            if text.trim().is_empty() { Some(None) } else { text.trim().parse().ok().map(Some) }
        };
        return Some(Step::Slice(bound(from)?, bound(to)?));
    }
    inner.parse().ok().map(Step::Item)
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

/// Returns the member name at the front of a path and the remaining path. A backslash escapes the next character.
fn member(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((offset, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            '.' | '[' => return (name, text.get(offset..).unwrap_or_default()),
            _ => name.push(letter),
        }
    }
    (name, "")
}

impl Step {
    fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Item(position), Value::Array(items)) => {
                index(*position, items.len()).and_then(|found| items.get(found)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(members)) => members.values().collect(),
            (Self::Slice(from, to), Value::Array(items)) => {
                let bound = |position: Option<i64>, default| {
                    position.map_or(default, |position| clamp(position, items.len()))
                };
                let (from, to) = (bound(*from, 0), bound(*to, items.len()));
                items.get(from..to.max(from)).unwrap_or_default().iter().collect()
            }
            (Self::Filter { path, is_equal, value: expected }, Value::Array(items)) => items
                .iter()
                .filter(|item| {
                    let found = path.iter().try_fold(*item, |value, name| value.get(name));
                    found.is_some_and(|found| (text_of(found) == *expected) == *is_equal)
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn index(position: i64, length: usize) -> Option<usize> {
    let position = if position < 0 { position.checked_add(i64::try_from(length).ok()?)? } else { position };
    usize::try_from(position).ok()
}

fn clamp(position: i64, length: usize) -> usize {
    index(position, length).unwrap_or(0).min(length)
}

/// Formats a value as text.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(path: &str) -> Option<Vec<Value>> {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "dotted"}},
            "spec": {"items": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}, {"n": 3, "t": "x"}]}
        });
        JsonPath::parse(path).map(|path| path.find(&object).into_iter().cloned().collect())
    }

    #[test]
    fn json_paths_select_values() {
        let table = [
            (".spec.items[0].n", vec![json!(1)]),
            (".spec.items[-1].n", vec![json!(3)]),
            (".spec.items[*].n", vec![json!(1), json!(2), json!(3)]),
            (".spec.items[1:].n", vec![json!(2), json!(3)]),
            (".spec.items[:-1].n", vec![json!(1), json!(2)]),
            (".spec.items[?(@.t==\"x\")].n", vec![json!(1), json!(3)]),
            (".spec.items[?(@.t!='x')].n", vec![json!(2)]),
            (".spec.items[?(@.n==2)].t", vec![json!("y")]),
            (".metadata.labels.a\\.b/c", vec![json!("dotted")]),
            (".metadata.labels['a.b/c']", vec![json!("dotted")]),
            ("{.spec.items[2].t}", vec![json!("x")]),
            (".spec.nothing.at.all", vec![]),
            (".spec.items[9]", vec![]),
        ];
        for (path, expected) in table {
            assert_eq!(find(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn the_first_member_of_a_path_is_known_without_an_object() {
        let first = |path: &str| JsonPath::parse(path).unwrap().first_member().map(str::to_owned);
        assert_eq!(first(".metadata.labels.app").as_deref(), Some("metadata"));
        assert_eq!(first("['metadata'].name").as_deref(), Some("metadata"));
        assert_eq!(first(".").as_deref(), None);
    }

    #[test]
    fn invalid_json_paths_are_none() {
        for text in ["spec", ".a[", ".a[x]", ".a[?(x)]", ".a[?(@.b)]", ".a]"] {
            assert!(find(text).is_none_or(|found| found.is_empty()), "{text}");
        }
        assert_eq!(JsonPath::parse("spec"), None);
        assert_eq!(JsonPath::parse(".a["), None);
    }
}
