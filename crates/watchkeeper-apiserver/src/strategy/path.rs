//! Paths in the tables of rules, defaults and gated fields.
//!
//! `a.b` is a member of a member, `a[]` each item of the list `a`, `a{}` each value of the map `a`, `a|b` both members, and
//! the empty path the value itself. `a?` is the same as `a`; only [`gates`](super::gates) gives the mark a meaning.
//!
//! Every write walks hundreds of paths, so a path is read byte by byte: the string searches of the standard library
//! prepare for longer strings.

use serde_json::Value;

/// The part of a path up to the first dot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathStep<'a> {
    names: &'a str,
    /// The values that the step leads to.
    pub(crate) target: PathTarget,
}

/// The values that a step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// The member itself.
    Member,
    /// The items of the member, which is a list.
    Items,
    /// The values of the member, which is a map.
    Values,
}

impl<'a> PathStep<'a> {
    /// Splits a path into its first step and the rest. Returns none for the empty path.
    pub(crate) fn first(path: &'a str) -> Option<(Self, &'a str)> {
        if path.is_empty() {
            return None;
        }
        let (step, rest) = cut(path, b'.');
        let step = step.strip_suffix('?').unwrap_or(step);
        let (names, target) = if let Some(names) = step.strip_suffix("[]") {
            (names, PathTarget::Items)
        } else if let Some(names) = step.strip_suffix("{}") {
            (names, PathTarget::Values)
        } else {
            (step, PathTarget::Member)
        };
        Some((Self { names, target }, rest.unwrap_or_default()))
    }

    /// Returns the names of the members.
    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        let mut names = Some(self.names);
        std::iter::from_fn(move || {
            let (name, rest) = cut(names?, b'|');
            names = rest;
            Some(name)
        })
    }
}

/// Splits a text at the first `mark`.
fn cut(text: &str, mark: u8) -> (&str, Option<&str>) {
    match text.bytes().position(|byte| byte == mark) {
        Some(end) => (&text[..end], Some(&text[end + 1..])),
        None => (text, None),
    }
}

/// Returns whether `test` holds for any value that `path` leads to. Absent values are not tested.
pub(crate) fn any(value: &Value, path: &str, test: &dyn Fn(&Value) -> bool) -> bool {
    let Some((step, rest)) = PathStep::first(path) else { return test(value) };
    step.names().any(|name| match (value.get(name), step.target) {
        (Some(member), PathTarget::Member) => any(member, rest, test),
        (Some(Value::Array(items)), PathTarget::Items) => items.iter().any(|item| any(item, rest, test)),
        (Some(Value::Object(members)), PathTarget::Values) => {
            members.values().any(|member| any(member, rest, test))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{PathStep, PathTarget, any};

    #[test]
    fn a_path_is_split_into_steps() {
        let read = |path| {
            PathStep::first(path).map(|(step, rest)| (step.names().collect::<Vec<_>>(), step.target, rest))
        };
        assert_eq!(read(""), None);
        assert_eq!(read("a"), Some((vec!["a"], PathTarget::Member, "")));
        assert_eq!(read("a|bc[].d.e"), Some((vec!["a", "bc"], PathTarget::Items, "d.e")));
        assert_eq!(read("a{}.b"), Some((vec!["a"], PathTarget::Values, "b")));
        assert_eq!(read("life?.signal"), Some((vec!["life"], PathTarget::Member, "signal")));
    }

    #[test]
    fn a_path_through_lists_matches_any_of_its_values() {
        let object = json!({"l": [{"x": null}, {"x": 1}], "m": {"k": {"y": 2}}, "n": 3});
        let is_set = |path| any(&object, path, &|value: &Value| !value.is_null());
        for path in ["", "n", "l[].x", "m{}.y", "z|n", "z|l[].x"] {
            assert!(is_set(path), "{path}");
        }
        for path in ["z", "z.a.b", "l[].y", "l{}.x", "m[].y", "n.a", "m{}.x"] {
            assert!(!is_set(path), "{path}");
        }
    }
}
