//! Rules applied to objects and definitions.

use serde_json::{Value, json};

use super::{
    super::{schema_check, structural::Structural},
    Compiled, Decl, RuleResultType, validate,
};
use crate::strategy::Cursor;

/// Returns the schema of a `spec` with one rule.
fn spec_schema(rule: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [rule],
        "properties": {
            "n": {"type": "integer"}, "f": {"type": "number"}, "s": {"type": "string"}, "a-b": {"type": "string"},
            "namespace": {"type": "string"}, "if": {"type": "string"}, "in": {"type": "string"},
            "d": {"type": "string", "format": "duration"}, "t": {"type": "string", "format": "date-time"},
            "b": {"type": "string", "format": "byte"}, "ok": {"type": "boolean"},
            "l": {"type": "array", "items": {"type": "integer"}},
            "words": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "objects": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "q": {"type": "string"}, "ios": {"x-kubernetes-int-or-string": true},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }}})
}

fn failures(rule: &Value, spec: &Value, old: Option<&Value>) -> Vec<(String, &'static str)> {
    let schema = Structural::read(&spec_schema(rule));
    let old = old.map(|old| json!({"spec": old}));
    let errors = validate(&json!({"spec": spec}), old.as_ref(), &schema);
    errors.into_iter().map(|error| (error.path, error.kind.reason())).collect()
}

/// Returns the detail of the single error that a rule reports.
fn detail(rule: &str, spec: &Value) -> String {
    let schema = Structural::read(&spec_schema(&json!({"rule": rule})));
    let mut errors = validate(&json!({"spec": spec}), None, &schema);
    assert!(errors.len() <= 1, "{errors:?}");
    errors.pop().map(|error| error.detail).unwrap_or_default()
}

/// Returns the errors of a schema, as reason, path and detail.
fn definition_errors(schema: &Value) -> Vec<(&'static str, String, String)> {
    let mut errors = Vec::new();
    schema_check::check(&Cursor::root(schema), false, &mut errors);
    errors.into_iter().map(|error| (error.kind.reason(), error.path, error.detail)).collect()
}

/// Returns the estimated cost of a rule beside a schema.
fn estimated(schema: &Value, rule: &str) -> Result<u64, String> {
    Compiled::new(rule)?.check(&Decl::of(schema, false).unwrap(), false, RuleResultType::Bool)
}

#[test]
fn rules_convert_values_by_their_schemas() {
    let good = json!({"n": 3, "f": 2, "s": "abc", "a-b": "x", "namespace": "ns", "d": "90m", "l": [1, 2, 3],
        "t": "2020-02-03T04:05:06Z", "b": "aGk=", "ok": true, "words": ["b", "a"], "set": ["x", "y"],
        "m": {"k-1": "v"}, "q": "1Gi", "ios": "50%", "objects": [{"x": "1"}, {"x": "2"}]});
    let rules = [
        "self.n == 3",
        "self.f == 2.0",
        "self.s.startsWith('ab') && self.s.size() == 3",
        "self.a__dash__b == 'x'",
        "self.__namespace__ == 'ns'",
        "self.d > duration('1h')",
        "self.d.getMinutes() == 90",
        "self.t.getFullYear() == 2020 && self.t < timestamp('2021-01-01T00:00:00Z')",
        "self.t + duration('1h') == timestamp('2020-02-03T05:05:06Z')",
        "self.b == b'hi' && string(self.b) == 'hi'",
        "self.l.all(i, i > 0) && self.l.exists(i, i == 2) && self.l.sum() == 6",
        "self.l.exists_one(i, i == 2) && self.l.map(i, i * 2) == [2, 4, 6] && self.l.filter(i, i > 1).size() == 2",
        "self.l.map(i, i > 1, i + 1) == [3, 4]",
        "self.m['k-1'] == 'v' && 'k-1' in self.m && self.m.all(k, k != '')",
        "quantity(self.q).isGreaterThan(quantity('500Mi'))",
        "quantity(self.q).add(1).compareTo(quantity('1Gi')) == 1",
        "type(self.ios) == int ? self.ios < 5 : self.ios == '50%'",
        "!has(self.any)",
        "self.s.matches('^a.c$')",
        "isURL('https://example.com') && url('https://example.com/x').getHost() == 'example.com'",
        "url('https://example.com/x?a=1').getQuery() == {'a': ['1']}",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('x')",
        "string(ip('10.0.0.1')) == '10.0.0.1' && ip.isCanonical('127.0.0.1')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0')",
        "!format.dns1123Label().validate('ok').hasValue() && format.named('uuid').hasValue()",
        "self.words.sort() == ['a', 'b'] && self.words.join(',') == 'b,a' && !self.words.isSorted()",
        "self.objects.sortBy(o, o.x)[0].x == '1' && self.objects.map(o, o.x).max() == '2'",
        "self.words.transformMap(i, w, w + string(i)) == {0: 'b0', 1: 'a1'}",
        "self.m.transformList(k, v, k + v) == ['k-1v'] && self.m.all(k, v, v == 'v')",
        "self.words.transformMapEntry(i, w, {w: i}) == {'a': 1, 'b': 0}",
        "self.?s.orValue('') == 'abc' && self.?any.hasValue() == false && self.m[?'no'].orValue('d') == 'd'",
        "self.?s.optMap(x, x + 'd').value() == 'abcd' && [?self.?s, 'z'] == ['abc', 'z']",
        "self.set == ['x', 'y'] && sets.contains(self.set, ['y']) && sets.equivalent(['x', 'y'], self.set)",
        "'a-b-c'.split('-') == ['a', 'b', 'c'] && 'abc'.split('') == ['a', 'b', 'c'] && 'a-b'.split('-', 1) == ['a-b']",
        "'héllo'.charAt(1) == 'é' && 'héllo'.substring(1, 3) == 'él' && 'héllo'.indexOf('l') == 2",
        "'hello'.lastIndexOf('l') == 3 && 'hello'.indexOf('l', 3) == 3 && 'hello'.lastIndexOf('l', 2) == 2",
        "'aXa'.lowerAscii() == 'axa' && ' a '.trim() == 'a' && 'aaa'.replace('a', 'b', 2) == 'bba'",
        "'abc 123 456'.findAll('[0-9]+') == ['123', '456'] && 'abc 1'.find('[0-9]') == '1'",
        "'%s is %d (%.1f)'.format(['x', 3, 2.25]) == 'x is 3 (2.2)' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "int('5') == 5 && double('1.5') == 1.5 && string(5) == '5' && string(1.0) == '1' && uint(3) == 3u",
        "lists.range(3) == [0, 1, 2] && [[1], [2]].flatten() == [1, 2] && [1, 2, 1].distinct() == [1, 2]",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [3, 1].reverse() == [1, 3] && [1, 2].first().value() == 1",
        "1 < 2.5 && 2u > 1 && -1 < 0u && 7 % 4 == 3 && 7 / 2 == 3 && -self.n == -3",
        "(false && 1 / 0 == 1) == false && (1 / 0 == 1 || true)",
        "self.l.all(i, i > 0 || 1 / 0 == 1) && self.l.exists(i, 1 / (i - 1) > 0 || i == 2)",
        "self.words[0] == 'b' && self.l[2] == 3 && [1, 2][1] == 2 && {'a': 1}.a == 1 && {'a': 1}['a'] == 1",
        "self.n in [1, 2, 3] && !(self.s in ['x']) && 'b' in self.words && 'k-1' in self.m",
        "b'\\x41' == b'A' && '\\u00e9' == 'é' && r'\\d' == '\\\\d' && '''a'b''' == \"a'b\"",
        "timestamp('2020-01-01T00:00:00Z') - timestamp('2019-12-31T00:00:00Z') == duration('24h')",
    ];
    let mut failed = Vec::new();
    let schema = spec_schema(&json!({"rule": "true"}));
    for rule in rules {
        let found = detail(rule, &good);
        let checked = estimated(schema.pointer("/properties/spec").unwrap(), rule);
        if !found.is_empty() || checked.is_err() {
            failed.push((rule, found, checked));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_violated_rule_reports_its_declared_message_reason_and_path() {
    let rule = json!({"rule": "self.n < 3", "messageExpression": "'n is ' + string(self.n)", "reason": "FieldValueForbidden", "fieldPath": ".n"});
    assert_eq!(failures(&rule, &json!({"n": 4}), None), [("spec.n".to_owned(), "FieldValueForbidden")]);
    assert_eq!(
        failures(&json!({"rule": "self.n < 3"}), &json!({}), None),
        [("spec".to_owned(), "FieldValueInvalid")]
    );
    let keyed = json!({"rule": "false", "fieldPath": ".m['a b']"});
    assert_eq!(failures(&keyed, &json!({}), None), [("spec.m[a b]".to_owned(), "FieldValueInvalid")]);
}

#[test]
fn transition_rules_run_on_updates_only() {
    let rule = json!({"rule": "self.n >= oldSelf.n"});
    assert_eq!(failures(&rule, &json!({"n": 1}), None), []);
    assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 1}))), []);
    assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 2}))).len(), 1);
    let optional =
        json!({"rule": "!oldSelf.hasValue() || oldSelf.value().n <= self.n", "optionalOldSelf": true});
    assert_eq!(failures(&optional, &json!({"n": 1}), None), []);
    assert_eq!(failures(&optional, &json!({"n": 1}), Some(&json!({"n": 2}))).len(), 1);
}

#[test]
fn an_unchanged_value_is_not_rejected_by_a_newer_rule() {
    let rule = json!({"rule": "self.n > 5"});
    assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 1}))), []);
    assert_eq!(failures(&rule, &json!({"n": 1}), Some(&json!({"n": 2}))).len(), 1);
}

#[test]
fn an_unchanged_item_of_an_atomic_list_is_ratcheted_with_the_list() {
    let schema = Structural::read(&json!({"type": "object", "properties": {
        "n": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}},
    }}));
    let check = |new: Value, old: Value| validate(&new, Some(&old), &schema).len();
    assert_eq!(check(json!({"n": 1, "l": [1]}), json!({"n": 2, "l": [1]})), 0);
    assert_eq!(check(json!({"n": 1, "l": [1, 9]}), json!({"n": 1, "l": [1]})), 1);
}

#[test]
fn rules_in_all_of_apply_to_the_enclosing_value() {
    let schema = Structural::read(&json!({"type": "object",
        "properties": {"a": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "allOf": [{"properties": {"a": {"x-kubernetes-validations": [{"rule": "self.n > 5"}]}}}],
    }));
    assert_eq!(validate(&json!({"a": {"n": 1}}), None, &schema).len(), 1);
    assert_eq!(validate(&json!({"a": {"n": 6}}), None, &schema).len(), 0);
}

#[test]
fn properties_with_reserved_names_are_accessible_escaped_and_unescaped() {
    let spec = json!({"namespace": "a", "if": "b", "in": "c"});
    for rule in [
        "self.namespace == 'a' && self.__namespace__ == 'a' && has(self.namespace) && has(self.__namespace__)",
        "self.if == 'b' && self.__if__ == 'b'",
        "self.__in__ == 'c'",
    ] {
        assert_eq!(detail(rule, &spec), "", "{rule}");
        let schema = spec_schema(&json!({"rule": rule}));
        assert_eq!(definition_errors(&schema), [], "{rule}");
    }
    // These words are tokens of the language.
    for rule in ["self.in == 'c'", "self.true == 'c'", "namespace == 'a'", "self.`namespace` == `a`"] {
        assert!(Compiled::new(rule).is_err(), "{rule}");
    }
    assert!(Compiled::new("self.m.`a.b/c` == 'x'").is_ok());
}

#[test]
fn unknown_names_and_type_mismatches_are_rejected_when_a_definition_is_written() {
    let good = [
        "self.n > 1 && self.f > 1.0 && self.f > 1",
        "has(self.n) && self.objects.all(i, i.x == 'a')",
        "oldSelf.n == self.n",
        "self.m['k'] == 'z' && self.m.k == 'z'",
        "self.ios == 5 || self.ios == 'x' || self.ios in [dyn(1), dyn('a')]",
        "'%s %d'.format(['a', 1]) == ''",
        "self.objects.exists_one(i, has(i.x))",
        "[1, 2].exists(x, x == self.n)",
        "dyn(self.n) == 'a'",
        "self == oldSelf",
        "self.any == oldSelf.any",
        "self.d == null || true",
        "type(self.n) == int && type(self.d) == google.protobuf.Duration",
    ];
    for rule in good {
        assert_eq!(definition_errors(&spec_schema(&json!({"rule": rule}))), [], "{rule}");
    }
    let bad = [
        "self.nope > 1",
        "self.objects.all(i, i.nope == 'a')",
        "other == 1",
        "self.n",
        "self.n.x == 1",
        "'text'",
        "self.metadata.name == ''",
        "self.any.x == 1",
        "self.n == 'a'",
        "self.f == 1",
        "self.s > 1",
        "self.n && true",
        "[1, 'a'] == []",
        "[1, self.ios] == []",
        "self.n + 'a' == 'b'",
        "nope(self.n)",
        "self.s.nope()",
        "self.s.startsWith(1)",
        "math.greatest(1, 2) == 2",
        "base64.encode(b'a') == 'YQ=='",
        "cel.bind(x, 1, x == 1)",
        "self.n == null",
        "self.n.all(x, true)",
        "self.s.matches('(')",
        "duration('x') == self.d",
        "timestamp('x') == self.t",
        "oldSelf.hasValue()",
        "self.?n == 1",
        "'abc'.reverse() == 'cba'",
        "{'a': 1, 'b': 'c'}.size() == 2",
        "Foo{a: 1} == 1",
    ];
    for rule in bad {
        let found = definition_errors(&spec_schema(&json!({"rule": rule})));
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        let (reason, path, _) = found.first().unwrap();
        assert_eq!(*reason, "FieldValueInvalid", "{rule}");
        assert!(path.ends_with("x-kubernetes-validations[0].rule"), "{rule}: {path}");
    }
}

#[test]
fn the_other_fields_of_a_rule_are_validated() {
    let found = |rule: Value| {
        let mut found = definition_errors(&spec_schema(&rule));
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        let (reason, path, _) = found.remove(0);
        (reason, path.rsplit('.').next().unwrap_or_default().to_owned())
    };
    let invalid = "FieldValueInvalid";
    assert_eq!(
        found(json!({"rule": "true", "messageExpression": "1"})),
        (invalid, "messageExpression".to_owned())
    );
    assert_eq!(
        found(json!({"rule": "true", "messageExpression": "self.x"})),
        (invalid, "messageExpression".to_owned())
    );
    assert_eq!(found(json!({"rule": "true", "fieldPath": ".x"})), (invalid, "fieldPath".to_owned()));
    assert_eq!(found(json!({"rule": "true", "fieldPath": "n"})), (invalid, "fieldPath".to_owned()));
    assert_eq!(found(json!({"rule": "true", "fieldPath": ".l[0]"})), (invalid, "fieldPath".to_owned()));
    assert_eq!(
        found(json!({"rule": "true", "optionalOldSelf": true})),
        (invalid, "optionalOldSelf".to_owned())
    );
    assert_eq!(
        found(json!({"rule": "true", "reason": "Nope"})),
        ("FieldValueNotSupported", "reason".to_owned())
    );
    assert_eq!(
        definition_errors(&spec_schema(&json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true}))),
        []
    );
    // Items of a list without keys have no old value; members of an atomic map do.
    let list = |extra: Value| {
        let mut schema = json!({"type": "array", "maxItems": 3, "items": {"type": "object", "required": ["x"],
            "properties": {"x": {"type": "string"}}, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        definition_errors(&json!({"type": "object", "properties": {"l": schema}})).len()
    };
    assert_eq!(list(json!({})), 1);
    assert_eq!(list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["x"]})), 0);
    let atomic = json!({"type": "object", "properties": {"m": {"type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {"x": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}}});
    assert_eq!(definition_errors(&atomic), []);
}

#[test]
fn errors_in_nested_rules_do_not_hide_errors_in_outer_rules() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.nope"}], "properties": {
        "a": {"type": "string", "x-kubernetes-validations": [{"rule": "nope"}]}}});
    assert_eq!(definition_errors(&schema).len(), 2);
}

#[test]
fn a_comprehension_within_a_comprehension_over_a_bounded_list_is_affordable() {
    let schema = |bound: Value| {
        json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": bound,
            "x-kubernetes-validations": [{"rule": "self.all(e, self.filter(f, f.n == e.n).size() == 1)"}],
            "items": {"type": "object", "properties": {"n": {"type": "string", "maxLength": 253},
                "values": {"type": "array", "items": {"type": "string"}}}}}}})
    };
    assert_eq!(definition_errors(&schema(json!(8))), []);
    let found = definition_errors(&schema(Value::Null));
    let (reason, path, detail) = found.first().unwrap();
    assert_eq!(*reason, "FieldValueForbidden");
    assert!(path.ends_with("x-kubernetes-validations[0].rule"), "{path}");
    assert!(detail.starts_with("estimated rule cost exceeds budget by factor of more than 100x"), "{detail}");
}

#[test]
fn an_unbounded_list_of_unbounded_strings_is_too_expensive_to_compare() {
    let schema = |list: Value, item: Value| {
        let mut items = json!({"type": "string"});
        items.as_object_mut().unwrap().extend(item.as_object().unwrap().clone());
        let mut schema = json!({"type": "array", "items": items, "x-kubernetes-validations": [
            {"rule": format!("self.all(s, s == '{}')", "x".repeat(60))}]});
        schema.as_object_mut().unwrap().extend(list.as_object().unwrap().clone());
        definition_errors(&json!({"type": "object", "properties": {"l": schema}})).len()
    };
    assert_eq!(schema(json!({}), json!({})), 1);
    assert_eq!(schema(json!({"maxItems": 100}), json!({})), 0);
}

#[test]
fn the_cost_of_a_rule_is_multiplied_by_the_lists_and_maps_around_it() {
    let schema = |outer: Value| {
        let mut list = json!({"type": "array", "items": {"type": "object", "properties": {
            "s": {"type": "string", "maxLength": 1000, "x-kubernetes-validations": [{"rule": "self.matches('[a-z]+[0-9]+x')"}]}}}});
        list.as_object_mut().unwrap().extend(outer.as_object().unwrap().clone());
        definition_errors(&json!({"type": "object", "properties": {"l": list}}))
    };
    assert_eq!(schema(json!({"maxItems": 1000})), []);
    assert_eq!(schema(json!({"maxItems": 100_000})).len(), 3, "the rule, its share, and the whole schema");
    let unbounded = schema(json!({}));
    assert!(!unbounded.is_empty());
    assert!(unbounded.iter().all(|(reason, _, _)| *reason == "FieldValueForbidden"), "{unbounded:?}");
}

#[test]
fn all_rules_of_a_schema_share_a_cost_limit() {
    let rule = json!({"rule": "self.all(a, self.all(b, a == b))"});
    let list = json!({"type": "array", "maxItems": 1200, "items": {"type": "integer"},
        "x-kubernetes-validations": [rule]});
    let names: Vec<String> = (0..20).map(|n| format!("l{n}")).collect();
    let properties: serde_json::Map<String, Value> =
        names.into_iter().map(|name| (name, list.clone())).collect();
    let found = definition_errors(&json!({"type": "object", "properties": properties}));
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found.iter().all(|(reason, _, _)| *reason == "FieldValueForbidden"));
    let (_, _, detail) = found.last().unwrap();
    assert!(
        detail.starts_with("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"),
        "{detail}"
    );
}

#[test]
fn a_rule_over_its_cost_limit_stops_the_validation() {
    let many: Vec<usize> = (0..2000).collect();
    let rule = "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))";
    let found = detail(rule, &json!({"l": many}));
    assert!(
        found.starts_with(
            "'operation cancelled: actual cost limit exceeded': no further validation rules will be run"
        ),
        "{found}"
    );
    // Later rules do not run.
    let schema = Structural::read(&json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "false"}]},
            "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}, {"rule": "false"}]}}}));
    assert_eq!(validate(&json!({"l": many}), None, &schema).len(), 1);
}

#[test]
fn the_rules_of_an_object_share_a_cost_budget() {
    // Each evaluation costs about half of its limit; the limit of the object is reached after twenty.
    let rule = json!({"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"});
    let list: Vec<usize> = (0..37).collect();
    let schema =
        Structural::read(&json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [rule]}}));
    let found = validate(&json!(vec![&list; 40]), None, &schema);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found.first().unwrap().detail,
        "validation failed due to running out of cost budget, no further validation rules will be run"
    );
}

#[test]
fn evaluation_of_any_expression_is_bounded_in_memory_and_time() {
    let long = "x".repeat(300_000);
    let many: Vec<String> = (0..100_000).map(|n| format!("w{n}")).collect();
    let spec = json!({"n": 1_000_000_000, "s": long, "words": many, "l": (0..100_000).collect::<Vec<_>>()});
    let doubled = format!("[self.s]{}.size() == 1", ".map(v, v + v)".repeat(40));
    let lists = format!("[[1, 2]]{}.size() == 1", ".map(v, v + v)".repeat(40));
    let nested = format!("[1]{}.size() == 2", ".map(v, [v, v, v])".repeat(30));
    let maps = format!("[1]{}.size() == 2", ".map(v, {'a': v, 'b': v})".repeat(30));
    let replaced = format!("self.s{}.size() > 0", ".replace('', self.s)".repeat(5));
    let quoted = format!("'\"'{} != ''", "+ strings.quote(self.s + self.s)".repeat(50));
    let rules = [
        "lists.range(self.n).size() > 0",
        "lists.range(10000000).size() > 0",
        "lists.range(900000).map(x, lists.range(900000)).size() > 0",
        &doubled,
        &lists,
        &nested,
        &maps,
        &replaced,
        &quoted,
        "self.words.all(a, a in self.words)",
        "self.words.all(a, self.words == self.words)",
        "self.words.all(a, self.words + self.words == [])",
        "self.words.all(a, self.s.matches('(x|y)*z'))",
        "self.s.matches('(x?){500}' + '(x{1,100}){20}' + '(x+x+)+y')",
        "self.words.all(a, self.s.findAll('x').size() > 0)",
        "self.words.all(a, self.s.split('').size() > 0)",
        "self.words.all(a, self.words.join(self.s) != '')",
        "self.words.all(a, self.s + self.s != '')",
        "self.words.all(a, self.s.replace('x', 'yy') != '')",
        "self.words.all(a, '%s'.format([self.words]) != '')",
        "self.words.sort().size() > 0 && self.words.distinct().size() > 0",
        "self.words.all(a, self.s.size() > 0 && self.s.contains('y') && self.s.lowerAscii() != '')",
        "self.words.all(a, self.s.size() > 0)",
        "self.words.all(a, self.words.isSorted() && self.words.max() != '')",
        "sets.equivalent(self.words, self.words)",
        "self.words.all(a, self.s.upperAscii().trim().substring(1).charAt(5) != '')",
        "self.words.transformMap(i, w, self.words.transformMap(j, x, x)).size() > 0",
        "self.words.all(a, url(self.s).getHost() == '' || isQuantity(self.s) || isIP(self.s) || isSemver(self.s))",
        "self.words.all(a, bytes(self.s).size() > 0 && string(bytes(self.s)).size() > 0)",
        "self.words.sortBy(w, self.s).size() > 0",
        "self.words.all(a, self.l.indexOf(-1) == -1 && self.l.sum() > 0)",
    ];
    for rule in rules {
        let found = detail(rule, &spec);
        assert!(!found.is_empty(), "{}", rule.get(..60).unwrap_or(rule));
    }
}

#[test]
fn invalid_rules_are_rejected_in_linear_time() {
    let chain = |part: &str, count: usize| part.repeat(count);
    let bad = [
        "self.bogus(".to_owned(),
        String::new(),
        "1 +".to_owned(),
        "'".to_owned(),
        "self.é(".to_owned(),
        "self.a b".to_owned(),
        "@".to_owned(),
        "'\\q'".to_owned(),
        "99999999999999999999".to_owned(),
        "-9223372036854775809".to_owned(),
        "x".repeat(100_001),
        format!("{}{} == []", chain("[", 50_000), "]".repeat(50_000)),
        format!("{}{} == []", chain("[", 3_000), "]".repeat(3_000)),
        format!("{}1{}", chain("(", 3_000), ")".repeat(3_000)),
        format!("{}1", chain("1+", 4_000)),
        format!("{}1", chain("1<", 4_000)),
        format!("{}1", chain("true ? 1 : ", 4_000)),
        format!("self{}", chain(".a", 4_000)),
        format!("self{}", chain("[0]", 4_000)),
        format!("self{}", chain(".f(1)", 4_000)),
        format!("{}1{}", chain("{1:", 3_000), "}".repeat(3_000)),
        format!("{}1{}", chain("f(", 3_000), ")".repeat(3_000)),
        format!("x{}", chain(".optMap(y, y)", 30)),
        format!("{}true{}", chain("[1].all(x, ", 250), ")".repeat(250)),
    ];
    for source in &bad {
        assert!(Compiled::new(source).is_err(), "{}", source.get(..20).unwrap_or(source));
    }
    let good = [
        format!("{}true", chain("!", 5_000)),
        format!("{}1 == 1", chain("-", 5_000)),
        format!("{}true", chain("true && ", 10_000)),
        format!("{}true", chain("false || ", 10_000)),
        format!("'{}' == ''", chain("\\u00e9", 15_000)),
        format!("[{}1] == []", chain("1,", 20_000)),
        format!("{}1{} == 1", chain("(", 200), ")".repeat(200)),
        format!("{}1 == 1", chain("1+", 200)),
        "-9223372036854775808 < 0x7f // done".to_owned(),
    ];
    for source in &good {
        assert!(Compiled::new(source).is_ok(), "{}", source.get(..20).unwrap_or(source));
    }
}

#[test]
fn the_deepest_rules_that_are_accepted_are_checked_and_run() {
    let schema = spec_schema(&json!({"rule": "true"}));
    let schema = schema.pointer("/properties/spec").unwrap();
    let deep = [
        format!("{}1{} != []", "[".repeat(249), "]".repeat(249)),
        format!("{}1 > 0", "1+".repeat(249)),
        format!("{}true{}", "[1].all(x, ".repeat(249), ")".repeat(249)),
        format!("{}true", "true ? true : ".repeat(249)),
        format!("{}true{}", "(true ? (".repeat(80), ") : true)".repeat(80)),
    ];
    for rule in &deep {
        assert!(estimated(schema, rule).is_ok(), "{}", rule.get(..30).unwrap_or(rule));
        assert_eq!(detail(rule, &json!({})), "", "{}", rule.get(..30).unwrap_or(rule));
    }
}

#[test]
fn the_total_size_of_the_rules_of_a_schema_is_limited() {
    let rule = json!({"rule": format!("self.s != '{}'", "x".repeat(20_000))});
    let mut schema = spec_schema(&rule);
    assert_eq!(definition_errors(&schema), []);
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!(vec![rule; 20]);
    let found = definition_errors(&schema);
    assert_eq!(found.len(), 1);
    assert_eq!(found.first().unwrap().0, "FieldValueForbidden");
}

#[test]
fn rules_whose_types_grow_exponentially_are_rejected() {
    let schema = spec_schema(&json!({"rule": "true"}));
    let schema = schema.pointer("/properties/spec").unwrap();
    let rule = format!("[1]{}.size() == 1", ".map(v, {v: v})".repeat(40));
    assert!(estimated(schema, &rule).is_err());
}
