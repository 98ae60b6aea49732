//! Test tables: a valid object, changes of it, and the causes of each change.

use serde_json::{Map, Value};

use crate::{
    field::FieldError,
    strategy::{Part, Strategy, for_builtin},
};

/// A change of an object, as pointer and value (null removes), and its expected causes: path and reason, in order.
pub(super) type Case = (&'static str, Value, &'static [&'static str]);

/// A kind under test.
pub(super) struct KindUnderTest {
    strategy: std::sync::Arc<dyn Strategy>,
    base: Value,
}

impl KindUnderTest {
    /// Creates a test of a kind with a valid object.
    pub(super) fn new(group: &str, version: &str, kind: &str, base: &Value) -> Self {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut object = serde_json::json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "x", "namespace": "n", "uid": "u"}});
        for (name, value) in base.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        Self { strategy: for_builtin(group, version, kind), base: object }
    }

    /// Returns the object after its creation.
    pub(super) fn created(&self, changes: &[(&str, Value)]) -> Value {
        let mut object = self.base.clone();
        for (pointer, value) in changes {
            set(&mut object, pointer, value.clone());
        }
        self.strategy.set_defaults(&mut object);
        self.strategy.prepare_for_create(&mut object);
        object
    }

    /// Returns the object after an update of `old`.
    pub(super) fn updated(&self, old: &Value, changes: &[(&str, Value)]) -> Value {
        let mut object = old.clone();
        for (pointer, value) in changes {
            set(&mut object, pointer, value.clone());
        }
        self.strategy.set_defaults(&mut object);
        self.strategy.prepare_for_update(Part::Main, &mut object, old);
        object
    }

    /// Checks that the object is accepted, and that each change has its causes.
    pub(super) fn check_create(&self, cases: &[Case]) {
        let causes = |object: &Value| found(self.strategy.validate_create(object));
        assert_eq!(causes(&self.created(&[])), [""; 0], "the object is right");
        for (pointer, value, required) in cases {
            let object = self.created(&[(pointer, value.clone())]);
            assert_eq!(causes(&object), *required, "{pointer} = {value}");
        }
    }

    /// Checks the causes of updates of the object.
    pub(super) fn check_update(&self, cases: &[Case]) {
        let old = self.created(&[]);
        for (pointer, value, required) in cases {
            let object = self.updated(&old, &[(pointer, value.clone())]);
            let errors = self.strategy.validate_update(Part::Main, &object, &old);
            assert_eq!(found(errors), *required, "{pointer} = {value}");
        }
    }

    /// Checks the causes of writes of the status, over a stored object with `status`.
    pub(super) fn check_status(&self, status: &Value, cases: &[Case]) {
        let mut old = self.created(&[]);
        for (name, value) in status.as_object().into_iter().flatten() {
            set(&mut old, &format!("/status/{name}"), value.clone());
        }
        for (pointer, value, required) in cases {
            let mut object = old.clone();
            set(&mut object, pointer, value.clone());
            self.strategy.set_defaults(&mut object);
            self.strategy.prepare_for_update(Part::Subresource("status"), &mut object, &old);
            let errors = self.strategy.validate_update(Part::Subresource("status"), &object, &old);
            assert_eq!(found(errors), *required, "{pointer} = {value}");
        }
    }
}

fn found(errors: Vec<FieldError>) -> Vec<String> {
    errors
        .into_iter()
        .map(|error| format!("{} {}", error.path, error.kind.reason().trim_start_matches("FieldValue")))
        .collect()
}

/// Sets the value at a pointer, creating objects on the way. Null removes the member.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut target = object;
    let mut steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/")).peekable();
    while let Some(step) = steps.next() {
        if let Value::Array(items) = target {
            let index: usize = step.parse().expect("an index");
            if index == items.len() {
                items.push(Value::Null);
            }
            target = &mut items[index];
        } else {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let members = target.as_object_mut().expect("an object");
            if steps.peek().is_none() && value.is_null() {
                members.remove(&step);
                return;
            }
            target = members.entry(step).or_insert(Value::Null);
        }
    }
    *target = value;
}
