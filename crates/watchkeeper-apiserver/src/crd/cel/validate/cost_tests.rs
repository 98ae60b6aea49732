//! Estimated and actual costs, as measured with Kubernetes 1.37.

use serde_json::{Value, json};

use super::{
    super::{super::structural::Structural, Compiled, Decl, RuleResultType},
    run,
};

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "e": {"type": "string", "enum": ["abc", "de"]}, "l": {"type": "array", "items": {"type": "integer"}}, "words": {"type": "array", "items": {"type": "string"}}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, "m": {"type": "object", "additionalProperties": {"type": "string"}}, "q": {"type": "string"}, "ios": {"x-kubernetes-int-or-string": true}, "objects": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}, "bl": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 20}}, "bm": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 7}}}, "deep": {"type": "array", "maxItems": 3, "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"c": {"type": "array", "maxItems": 7, "items": {"type": "string", "maxLength": 9}}, "d": {"type": "array", "maxItems": 11, "items": {"type": "string", "maxLength": 13}}, "e": {"type": "string", "maxLength": 30}}}}, "m": {"type": "object", "maxProperties": 6, "additionalProperties": {"type": "object", "properties": {"x": {"type": "string", "maxLength": 17}, "y": {"type": "array", "maxItems": 19, "items": {"type": "integer"}}}}}}}}}})
}

/// Rules with their estimated cost, and their actual cost for the object of the test.
const COSTS: [(&str, u64, u64); 84] = [
    ("self.bl.all(a, self.bl.all(b, a == b))", 1363, 23),
    ("self.bl.exists_one(x, x.startsWith('a'))", 44, 10),
    ("self.bl.map(x, x + x).all(y, y.size() > 1)", 374, 46),
    ("self.bl.filter(x, x != '').map(y, y.upperAscii()).join(',') != ''", 1_844_674_407_370_955_558, 61),
    ("self.bl.map(x, x.split('')).flatten().size() < 100", 326, 46),
    ("self.bl.map(x, x.replace('a', 'bbb')).all(y, y.matches('^b*$') || true)", 354, 42),
    ("self.bm.all(k, self.bm[k].all(v, v == k || true))", 143, 35),
    ("self.bm.map(k, self.bm[k].join('-')).exists(z, z.contains('y'))", 179, 48),
    ("self.bm.transformList(k, v, v.size()).sum() == 3", 89, 34),
    ("self.bm.transformMap(k, v, v.map(x, x + k)).size() == 2", 450, 60),
    ("self.bm.transformMapEntry(k, v, v.size() > 1, {k: v[0]}).size() == 1", 225, 46),
    ("self.bl.sort() == self.bl.reverse() || self.bl.distinct().size() == 2", 462, 60),
    ("self.bl.sortBy(x, x.size()).size() == 2", 378, 54),
    ("self.bl.slice(0, 1).size() == 1", 16, 16),
    ("sets.intersects(self.bl, ['aa'])", 23, 5),
    ("sets.equivalent(self.bl, self.bl)", 205, 13),
    ("self.bl[0] == 'aa' && self.bl[1].size() == 1", 9, 9),
    ("self.bl.indexOf('b') == 1 && self.bl.lastIndexOf('b') == 1", 186, 6),
    ("self.bl.max() == 'b' && self.bl.min() == 'aa' && !self.bl.isSorted() || true", 279, 9),
    ("self.l.sum() == 6 && self.l.max() == 3", 3_145_732, 12),
    ("self.e == 'de' && self.e in ['abc', 'de']", 17, 5),
    ("self.deep.all(x, x.a.all(y, y.c.all(z, z == 'p' || y.e == z)))", 36_111, 20),
    ("self.deep.all(x, x.a.all(y, y.c.all(z, y.d.exists(w, w == z))))", 22_881, 31),
    ("self.deep.all(x, x.a.exists(y, y.c.exists(z, y.d.map(w, w + z).size() > 0 && y.e == z)))", 556_326, 59),
    ("self.deep.all(x, x.m.all(k, x.m[k].y.all(i, i > 0) && x.m[k].x == '1'))", 2001, 32),
    ("self.deep.map(x, x.a.map(y, y.d)).flatten().flatten().all(z, z.size() > 0)", 345, 69),
    ("self.deep.all(x, has(x.m) ? x.m.size() > 0 : x.a.size() > 0)", 27, 11),
    ("self.deep.filter(x, x.a.size() > 0).map(x, x.a[0].e) == ['p']", 134, 38),
    ("self.deep[0].a[0].c[0] + self.deep[0].a[0].d[1] == 'pq'", 24, 16),
    ("(self.n > 1 ? self.bl : self.bl + self.bl).size() > 0", 10, 6),
    ("(self.n > 1 ? self.bl : ['a', 'b', 'ccc']).all(x, x.size() < 9)", 74, 17),
    ("{'a': self.bl, 'b': ['x']}.all(k, k != '')", 51, 41),
    ("[self.s, 'x', self.e].all(x, x.size() > 0)", 33, 33),
    ("[self.s, 'x', self.e].map(x, x + 'y').exists(z, z == 'xy')", 83, 73),
    ("self.?bl[0].orValue('z') == 'aa'", 5, 4),
    ("self.?bl.optMap(x, x.size()).orValue(0) == 2", 21, 10),
    ("self.?m['k-1'].hasValue()", 4, 4),
    ("optional.of(self.bl).value().size() == 2", 6, 6),
    ("[?self.?s, 'k'].size() == 2", 14, 14),
    ("{?'a': self.?s}.size() == 1", 34, 34),
    ("self.bl.first().value() == 'aa' && self.bl.last().hasValue()", 9, 9),
    ("dyn(self.bl).all(x, x == 'aa' || true)", 44, 14),
    ("type(self.ios) == string && self.ios.endsWith('%')", 7, 7),
    ("self.ios == '50%' ? self.ios.matches('[0-9]+%') : true", 629_151, 7),
    ("quantity(self.q).compareTo(quantity('1Gi')) == 0", 314_578, 6),
    ("quantity(self.q) == quantity('1Gi')", 314_577, 5),
    ("url('http://a.b/c') == url('http://a.b/c')", 6, 5),
    ("isURL(self.s) || url('http://x/y').getEscapedPath() == '/y'", 6, 6),
    ("ip('1.2.3.4') == ip('1.2.3.4') && cidr('1.2.3.0/24').containsIP(ip('1.2.3.4'))", 9, 6),
    ("cidr('1.2.3.0/24').containsCIDR('1.2.3.0/25') && cidr('1.2.3.0/24').ip() == ip('1.2.3.0')", 13, 9),
    ("cidr('1.2.3.0/24').masked().prefixLength() == 24", 4, 4),
    ("semver('1.0.0').major() == 1 && semver('v1.0', true) == semver('1.0.0')", 6, 6),
    ("format.dns1123Label().validate(self.s) == optional.none()", 1_844_674_407_381_021_604, 13),
    ("!format.dns1123Label().validate(self.s).hasValue()", 10_066_341, 13),
    ("format.named('dns1123Label').value() == format.dns1123Label()", 10, 4),
    ("self.set + ['z'] == ['x', 'y', 'z']", 24, 4),
    ("self.set + self.set == self.set", 104_865, 8),
    ("self.m == {'k-1': 'v'} && size(self.m) == 1", 37, 7),
    ("'%s-%s'.format([self.s, self.e]) == 'abc-de'", 16, 16),
    ("'%d'.format([self.n]) == '3'", 14, 14),
    ("strings.quote(self.s) == '\"abc\"'", 314_576, 4),
    ("self.s.find('b') == 'b' && self.s.findAll('[a-z]', 2).size() == 2", 943_726, 10),
    ("self.s.substring(1) == 'bc' && self.s.trim() == self.s", 943_726, 10),
    ("self.s.charAt(0) == 'a' && self.s.lastIndexOf('c') == 2", 314_580, 7),
    ("string(1000000.0) == '1e+06' && string(1.5) == '1.5' && string(true) == 'true'", 6, 3),
    ("self.words.all(w, w.size() > 0) && self.words.exists(w, w == 'b')", 12_582_906, 27),
    ("self.objects.map(o, o.x).join('') == '12'", 1_844_674_407_385_635_328, 33),
    ("self.objects.all(o, self.objects.exists_one(p, p.x == o.x))", 345_882_608_641_821_903, 41),
    ("self.s.size() < 5 && size(self.words) == 2", 8, 8),
    ("[1, 2, 3].map(x, x * 2).filter(y, y > 2).exists(z, z == 6)", 135, 89),
    ("[[1, 2], [3]].map(x, x.size()).sum() == 3", 72, 32),
    ("lists.range(5).map(i, i * i).sum() == 30", 108, 98),
    ("self.l.map(x, [x, x]).flatten().distinct().size() == 3", 4_947_835_355_150, 174),
    ("[1.5, 2.0].sum() == 3.5", 13, 3),
    ("['a', 'b'].join(self.s) != ''", 1_844_674_407_370_955_276, 3),
    ("self.deep == self.deep", 5, 5),
    ("[self.n, self.n].exists(x, x in self.l)", 3_145_755, 28),
    ("self.n < 2.5 || self.n > 1u", 6, 6),
    ("b'abc' + b'd' == b'abcd'", 2, 2),
    ("self.s < 'abd' && self.s >= 'abc'", 6, 6),
    ("!(self.s == 'q') && -self.n < 0", 8, 8),
    ("(self.n == 3 || self.s == 'x') && !(self.n != 3 && self.s != 'abc')", 11, 7),
    ("self.bl.all(i, x, i < 10 && x != '')", 63, 15),
    ("self.bm.exists(k, v, k in v || true)", 53, 13),
];

#[test]
fn estimated_costs_equal_those_of_kubernetes() {
    let object = json!({"n": 3, "s": "abc", "e": "de", "l": [1, 2, 3], "words": ["b", "a"], "set": ["x", "y"], "m": {"k-1": "v"}, "q": "1Gi", "ios": "50%", "objects": [{"x": "1"}, {"x": "2"}], "bl": ["aa", "b"], "bm": {"a": ["x"], "b": ["y", "z"]}, "deep": [{"a": [{"c": ["p"], "d": ["p", "q"], "e": "p"}], "m": {"k": {"x": "1", "y": [1, 2]}}}]});
    let decl = Decl::of(&schema(), false).unwrap();
    for (rule, estimated, spent) in COSTS {
        let compiled = Compiled::new(rule).unwrap();
        assert_eq!(compiled.check(&decl, false, RuleResultType::Bool), Ok(estimated), "{rule}");
        let mut schema = schema();
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let schema = Structural::read(&schema);
        let run = run(&object, None, &schema);
        assert_eq!(run.spent(), spent, "{rule}");
    }
}
