//! Rules in CEL that use much memory or time.

use serde_json::{Value, json};

use super::{
    definition::{OBJECTS, definition, named_definition, thing},
    names,
};
use crate::{
    http::{Input, post},
    run::Class,
};

fn ruled(rule: &str) -> Value {
    json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "string"}}, "s": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": rule}]})
}

/// Rules whose values or loops grow, in definitions and on large objects.
pub(crate) fn expensive_rules() -> Class {
    let chained = format!(
        "{}.size() >= 0",
        (0..40).fold("['aaaaaaaaaa']".to_owned(), |rule, _| { format!("{rule}.map(v, v + v)") })
    );
    let rules = [
        "lists.range(1000000000).size() > 0",
        "lists.range(100000).map(a, lists.range(1000)).size() > 0",
        &chained,
        "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z != '')))",
        "self.l.exists(x, x in self.l && self.l.map(y, y + x) == self.l)",
        "self.s.split('').map(c, self.s).size() >= 0",
        "self.s.matches('(a*)*b')",
        "self.s.findAll('a*').size() >= 0",
        "self.s.replace('a', self.s).size() >= 0",
        "self.l.join(self.s).size() >= 0",
        "(self.l + self.l + self.l + self.l).map(x, x + self.s).size() >= 0",
        "self.l.map(x, self.l) == self.l.map(x, self.l)",
    ];
    let mut inputs: Vec<Input> = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        inputs.push(named_definition(&format!("rules{number}"), &ruled(rule)));
    }
    let mild = ruled("!has(self.l) || self.l.all(x, x != 'b') && (!has(self.s) || !self.s.contains('b'))");
    for count in [1_000, 10_000, 30_000] {
        inputs.push(post(OBJECTS, &thing(&json!({"l": names(count).collect::<Vec<_>>()}))));
        inputs.push(post(OBJECTS, &thing(&json!({"s": "a".repeat(count * 30)}))));
    }
    Class { setup: vec![definition(&mild)], inputs }
}

/// Rules that are deep or long.
pub(crate) fn large_rules() -> Class {
    let mut rules = Vec::new();
    for size in [50, 500, 2_000] {
        rules.push(format!("{}{} == []", "[".repeat(size), "]".repeat(size)));
        rules.push(format!("{}true{}", "(".repeat(size), ")".repeat(size)));
        rules.push(format!("{}true", "!".repeat(size)));
        rules.push(vec!["self.s == 'a'"; size].join(" || "));
        rules.push(format!("{}self.s", "true ? true : ".repeat(size)));
        rules.push(format!("'{}' == self.s", "\\u00e4".repeat(size)));
        rules.push(format!("self.l[0]{} == ''", "[0]".repeat(size)));
        rules.push(format!("{}{{}}{} == {{}}", "{'a': ".repeat(size), "}".repeat(size)));
    }
    let inputs = rules
        .iter()
        .enumerate()
        .map(|(number, rule)| named_definition(&format!("rules{number}"), &ruled(rule)))
        .collect();
    Class { inputs, ..Class::default() }
}
