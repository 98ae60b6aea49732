//! Rules of kinds as tables: a valid object, changes of it, and the errors of each change.

mod admission;
mod certificate;
mod core;
mod device;
mod flow;
mod storage;

use serde_json::{Value, json};

use crate::{
    auth::user::User,
    field::FieldError,
    strategy::{Part, WriteContext, for_builtin},
};

/// A change of an object: a JSON pointer, the new value (null removes it), and the errors as `path Reason`.
type FieldChange<'a> = (&'a str, Value, &'a [&'a str]);

/// Returns an object of a kind, in a namespace, with these members.
fn object(group: &str, kind: &str, body: &Value) -> Value {
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1"},
    });
    for (name, value) in body.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

fn set(object: &mut Value, pointer: &str, value: &Value) {
    let mut target = object;
    let (parents, last) = pointer.rsplit_once('/').unwrap();
    for step in parents.split('/').skip(1) {
        target = match target {
            Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            other => &mut other[step],
        };
    }
    match target {
        Value::Array(items) if last == "-" => items.push(value.clone()),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value.clone(),
        Value::Object(members) if value.is_null() => _ = members.remove(&last.replace("~1", "/")),
        other => other[last.replace("~1", "/")] = value.clone(),
    }
}

fn texts(errors: Vec<FieldError>) -> Vec<String> {
    let mut texts: Vec<String> = errors
        .into_iter()
        .map(|error| format!("{} {}", error.path, error.kind.reason().trim_start_matches("FieldValue")))
        .collect();
    texts.sort_unstable();
    texts
}

fn sorted<'a>(texts: &[&'a str]) -> Vec<&'a str> {
    let mut texts = texts.to_vec();
    texts.sort_unstable();
    texts
}

fn user() -> User {
    User { name: "jane".into(), uid: "7".into(), groups: vec!["devs".into()], ..User::default() }
}

const NOW: &str = "2026-01-02T03:04:05Z";

/// Returns the object as stored by a create.
fn created(group: &str, kind: &str, body: &Value) -> Value {
    let strategy = for_builtin(group, "v1", kind);
    let mut object = object(group, kind, body);
    strategy.set_defaults(&mut object);
    strategy.set_timed_defaults(&mut object, &|| NOW.to_owned());
    strategy.prepare_for_create(&mut object);
    strategy.set_request_fields(Part::Main, &mut object, None, &WriteContext { now: NOW, user: &user() });
    object
}

/// Returns the object as stored by an update of `old` through `part`.
fn updated(group: &str, kind: &str, part: Part<'_>, old: &Value, new: &Value) -> Value {
    let strategy = for_builtin(group, "v1", kind);
    let mut object = new.clone();
    strategy.set_defaults(&mut object);
    strategy.set_timed_defaults(&mut object, &|| NOW.to_owned());
    strategy.prepare_for_update(part, &mut object, old);
    strategy.set_request_fields(part, &mut object, Some(old), &WriteContext { now: NOW, user: &user() });
    object
}

/// Checks the errors of creating `body`, before and after each change.
fn creates(group: &str, kind: &str, body: &Value, changes: &[FieldChange<'_>]) {
    let strategy = for_builtin(group, "v1", kind);
    let errors = |body: &Value| texts(strategy.validate_create(&created(group, kind, body)));
    assert_eq!(errors(body), Vec::<String>::new(), "{kind} {body}");
    for (pointer, value, expected) in changes {
        let mut changed = body.clone();
        set(&mut changed, pointer, value);
        assert_eq!(errors(&changed), sorted(expected), "{kind} {pointer} {value}");
    }
}

/// Checks the errors of changing `body` through `part`.
fn updates(group: &str, kind: &str, part: Part<'_>, body: &Value, changes: &[FieldChange<'_>]) {
    let strategy = for_builtin(group, "v1", kind);
    let mut old = created(group, kind, body);
    if let Some(status) = body.get("status") {
        old["status"] = status.clone();
    }
    let errors = |new: &Value| {
        let new = updated(group, kind, part, &old, new);
        texts(strategy.validate_update(part, &new, &old))
    };
    assert_eq!(errors(&old), Vec::<String>::new(), "{kind} {old}");
    for (pointer, value, expected) in changes {
        let mut changed = old.clone();
        set(&mut changed, pointer, value);
        assert_eq!(errors(&changed), sorted(expected), "{kind} {pointer} {value}");
    }
}
