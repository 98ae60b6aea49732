//! Paths of fields in a document, such as `spec.containers[].image`.

use std::fmt::Write as _;

/// A step from a value to a part of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The member of an object, or the entry of a map, by its name.
    Member(String),
    /// Every item of a list.
    Items,
}

/// Returns the steps of a path.
///
/// # Errors
/// Returns the problem and its byte offset, as a sentence for a compile error.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    let problem = |rest: &str, expected: &str| {
        format!("invalid path \"{text}\": expected {expected} at byte {}", text.len() - rest.len())
    };
    while !rest.is_empty() || steps.is_empty() {
        if let Some(after) = rest.strip_prefix("['").filter(|_| !steps.is_empty()) {
            let (key, after) = after
                .split_once("']")
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| problem(after, "a key and `']`"))?;
            steps.push(Step::Member(key.to_owned()));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[]").filter(|_| !steps.is_empty()) {
            steps.push(Step::Items);
            rest = after;
        } else {
            let start = match rest.strip_prefix('.') {
                Some(after) if !steps.is_empty() => after,
                _ if steps.is_empty() => rest,
                _ => return Err(problem(rest, "`.`, `[]` or `['key']`")),
            };
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
            let name_bytes = start.find(|c| !is_part(c)).unwrap_or(start.len());
            if name_bytes == 0 {
                return Err(problem(start, "the name of a field"));
            }
            let (name, after) = start.split_at(name_bytes);
            steps.push(Step::Member(name.to_owned()));
            rest = after;
        }
    }
    Ok(steps)
}

/// Returns the text of a path, in the form that [`parse`] reads.
pub(crate) fn text(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        // Writing to a string is infallible.
        let _ = match step {
            Step::Items => write!(text, "[]"),
            Step::Member(name) if name.contains(['.', '/']) => write!(text, "['{name}']"),
            Step::Member(name) if text.is_empty() => write!(text, "{name}"),
            Step::Member(name) => write!(text, ".{name}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Step {
        Step::Member(name.to_owned())
    }

    #[test]
    fn a_path_is_names_items_and_keys() {
        for (path, steps) in [
            ("spec", vec![member("spec")]),
            ("spec.nodeName", vec![member("spec"), member("nodeName")]),
            ("a[].b", vec![member("a"), Step::Items, member("b")]),
            ("a[][]", vec![member("a"), Step::Items, Step::Items]),
            ("a['b.c/d'].e", vec![member("a"), member("b.c/d"), member("e")]),
            ("a['b.c/d']['e.f'][]", vec![member("a"), member("b.c/d"), member("e.f"), Step::Items]),
            ("$ref.x-y_z", vec![member("$ref"), member("x-y_z")]),
        ] {
            assert_eq!(parse(path).as_ref(), Ok(&steps), "{path}");
            assert_eq!(text(&steps), path);
        }
        // A key that is a plain name is that name.
        assert_eq!(parse("a['b']"), parse("a.b"));
    }

    #[test]
    fn an_invalid_path_is_rejected_with_the_offset_of_the_problem() {
        for (path, problem) in [
            ("", "expected the name of a field at byte 0"),
            (".spec", "expected the name of a field at byte 0"),
            ("[]", "expected the name of a field at byte 0"),
            ("['a']", "expected the name of a field at byte 0"),
            ("spec.", "expected the name of a field at byte 5"),
            ("spec..a", "expected the name of a field at byte 5"),
            ("spec a", "expected `.`, `[]` or `['key']` at byte 4"),
            ("spec[0]", "expected `.`, `[]` or `['key']` at byte 4"),
            ("spec[]a", "expected `.`, `[]` or `['key']` at byte 6"),
            ("spec['a", "expected a key and `']` at byte 6"),
            ("spec['']", "expected a key and `']` at byte 6"),
            ("späc", "expected `.`, `[]` or `['key']` at byte 2"),
        ] {
            assert_eq!(parse(path), Err(format!("invalid path \"{path}\": {problem}")));
        }
    }
}
