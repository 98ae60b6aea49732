//! Flow control: flow schemas and priority levels.

use serde_json::{Value, json};

use super::row::{CLUSTER, StatusMetadata, StrategyRow};
use crate::strategy::{
    cursor::{Cursor, Errors},
    edit::{
        self,
        DefaultValue::{EmptyObject, Int, IntPtr},
        Fill,
    },
    names,
    table::{self, FieldCondition, Rule, RuleTable, has_wildcard, only_wildcard},
};

const FLOW_CONTROL: StrategyRow = StrategyRow {
    status: Some(|| None),
    status_meta: StatusMetadata::Immutable,
    generation: &["spec"],
    zeros: &[("", "status", EmptyObject)],
    status_table: CONDITIONS,
    ..CLUSTER
};

pub(super) const FLOW_SCHEMA: StrategyRow = StrategyRow {
    defaults: |object| edit::fill_all(object, &[("spec", "matchingPrecedence", Int(1000))]),
    table: &[("spec", &[Rule::Struct(SCHEMA)])],
    validate: |object, errors| {
        let metadata = object.at("metadata");
        let (name, spec) = (metadata.at("name").text(), object.at("spec"));
        if spec.at("matchingPrecedence").int() == Some(1) && name != "exempt" {
            errors.push(
                spec.at("matchingPrecedence")
                    .invalid("only the schema named 'exempt' may have matchingPrecedence 1"),
            );
        }
        let fixed = match name {
            "exempt" => schema("exempt", 1, None, &["system:masters"]),
            "catch-all" => schema(
                "catch-all",
                10_000,
                Some("ByUser"),
                &["system:unauthenticated", "system:authenticated"],
            ),
            _ => return,
        };
        fixed_value(&spec, name, &fixed, errors);
    },
    ..FLOW_CONTROL
};

pub(super) const PRIORITY_LEVEL: StrategyRow = StrategyRow {
    defaults: |object| edit::fill_all(object, LEVEL_DEFAULTS),
    table: &[("spec", &[Rule::Check(level)])],
    validate: |object, errors| {
        const PRESERVED: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
        let (metadata, spec) = (object.at("metadata"), object.at("spec"));
        if metadata.at("annotations").key(PRESERVED).is_set() {
            errors
                .push(metadata.at("annotations").forbidden(format!("annotation '{PRESERVED}' is forbidden")));
        }
        let name = metadata.at("name").text();
        let kind = spec.at("type");
        if (name == "exempt") != (kind.text() == "Exempt") {
            errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
        }
        match name {
            "exempt" if !spec.at("limited").is_empty() || kind.text() != "Exempt" => errors.push(
                spec.invalid("spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"),
            ),
            "catch-all" => {
                let limited = json!({
                    "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
                });
                fixed_value(&spec, name, &json!({"type": "Limited", "limited": limited}), errors);
            }
            _ => {}
        }
    },
    ..FLOW_CONTROL
};

const LEVEL_DEFAULTS: &[Fill] = &[
    ("spec.limited", "nominalConcurrencyShares", IntPtr(30)),
    ("spec.limited", "lendablePercent", IntPtr(0)),
    ("spec.exempt", "nominalConcurrencyShares", IntPtr(0)),
    ("spec.exempt", "lendablePercent", IntPtr(0)),
    ("spec.limited.limitResponse.queuing", "handSize", Int(8)),
    ("spec.limited.limitResponse.queuing", "queues", Int(64)),
    ("spec.limited.limitResponse.queuing", "queueLengthLimit", Int(50)),
];

const CONDITIONS: RuleTable =
    &[("status.conditions", &[Rule::UniqueBy("type")]), ("status.conditions[].type", &[Rule::Required])];

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

const SCHEMA: RuleTable = &[
    (
        "matchingPrecedence",
        &[
            Rule::Positive("must be a positive value"),
            Rule::Check(|precedence, errors| {
                if precedence.int().is_some_and(|given| given > 10_000) {
                    errors.push(precedence.invalid("must not be greater than 10000"));
                }
            }),
        ],
    ),
    ("distinguisherMethod", &[Rule::Pointer(&[("type", &[Rule::Enum(&["ByNamespace", "ByUser"])])])]),
    (
        "priorityLevelConfiguration.name",
        &[Rule::RequiredAs("must reference a priority level"), Rule::Format(names::dns_subdomain)],
    ),
    ("rules[]", &[Rule::Struct(RULE)]),
];

const RULE: RuleTable = &[
    ("subjects", &[Rule::RequiredAs("subjects must contain at least one value")]),
    ("subjects[]", &[Rule::Check(subject)]),
    (
        "",
        &[Rule::Check(|rule, errors| {
            if rule.at("resourceRules").is_empty() && rule.at("nonResourceRules").is_empty() {
                errors.push(
                    rule.missing("at least one of resourceRules and nonResourceRules has to be non-empty"),
                );
            }
        })],
    ),
    ("resourceRules[]", &[Rule::Struct(RESOURCE_RULE)]),
    ("nonResourceRules[]", &[Rule::Struct(NON_RESOURCE_RULE)]),
];

const RESOURCE_RULE: RuleTable = &[
    ("verbs", &[Rule::RequiredAs("verbs must contain at least one value"), Rule::Check(verbs)]),
    (
        "apiGroups",
        &[
            Rule::RequiredAs("resource rules must supply at least one api group"),
            Rule::Check(|groups, errors| only_wildcard(groups, "api groups", errors)),
        ],
    ),
    (
        "resources",
        &[
            Rule::RequiredAs("resource rules must supply at least one resource"),
            Rule::Check(|resources, errors| only_wildcard(resources, "resources", errors)),
        ],
    ),
    ("", &[Rule::Check(namespaces)]),
];

const NON_RESOURCE_RULE: RuleTable = &[
    ("verbs", &[Rule::RequiredAs("verbs must contain at least one value"), Rule::Check(verbs)]),
    (
        "nonResourceURLs",
        &[Rule::RequiredAs("nonResourceURLs must contain at least one value"), Rule::Check(urls)],
    ),
];

fn verbs(verbs: &Cursor<'_>, errors: &mut Errors) {
    if has_wildcard(verbs) {
        only_wildcard(verbs, "verbs", errors);
    } else if !verbs.items().all(|verb| VERBS.contains(&verb.text())) {
        errors.push(verbs.unsupported(&VERBS));
    }
}

fn namespaces(rule: &Cursor<'_>, errors: &mut Errors) {
    let namespaces = rule.at("namespaces");
    if namespaces.is_empty() {
        if !rule.at("clusterScope").is_true() {
            errors
                .push(namespaces.missing(
                    "resource rules that are not cluster scoped must supply at least one namespace",
                ));
        }
    } else if has_wildcard(&namespaces) {
        only_wildcard(&namespaces, "namespaces", errors);
    } else {
        for namespace in namespaces.items() {
            errors.extend(names::dns_label(namespace.text()).into_iter().map(|detail| {
                namespace
                    .invalid(format!("each member of this list must be '*' or a DNS-1123 label; {detail}"))
            }));
        }
    }
}

fn urls(urls: &Cursor<'_>, errors: &mut Errors) {
    if has_wildcard(urls) {
        only_wildcard(urls, "non-resource URLs", errors);
        return;
    }
    for url in urls.items() {
        let path = url.text();
        let stars = path.matches('*').count();
        let detail = match path {
            "" => "must not be empty",
            "/" => continue,
            _ if !path.starts_with('/') => "must start with slash",
            _ if path.contains(' ') => "must not contain white-space",
            _ if path.contains("//") => "must not contain double slash",
            _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => "wildcard can only do suffix matching",
            _ => continue,
        };
        errors.push(url.invalid(detail));
    }
}

/// The subject kinds: the kind, its member, and the rules of the member.
const SUBJECTS: [(&str, &str, RuleTable); 3] = [
    (
        "ServiceAccount",
        "serviceAccount",
        &[
            (
                "name",
                &[
                    Rule::Required,
                    Rule::Check(|name, errors| {
                        if name.text() != "*" {
                            name.format(names::dns_subdomain, errors);
                        }
                    }),
                ],
            ),
            (
                "namespace",
                &[
                    Rule::RequiredAs("must specify namespace for service account"),
                    Rule::Format(names::dns_label),
                ],
            ),
        ],
    ),
    ("User", "user", &[("name", &[Rule::Required])]),
    ("Group", "group", &[("name", &[Rule::Required])]),
];

fn subject(subject: &Cursor<'_>, errors: &mut Errors) {
    let kind = subject.at("kind");
    let Some((_, member, rules)) = SUBJECTS.iter().find(|(name, ..)| *name == kind.text()) else {
        let mut error = kind.unsupported(&["Group", "ServiceAccount", "User"]);
        error.bad_value = Some(kind.text().into());
        errors.push(error);
        return;
    };
    let described = subject.at(member);
    if described.is_set() {
        table::check(rules, &described, errors);
    } else {
        errors
            .push(described.missing(format!("{member} is required when subject kind is '{}'", kind.text())));
    }
    for (other, member, _) in SUBJECTS.iter().filter(|(other, ..)| *other != kind.text()) {
        if subject.at(member).is_set() {
            errors.push(
                subject
                    .at(member)
                    .forbidden(format!("{member} is forbidden when subject kind is not '{other}'")),
            );
        }
    }
}

const LEVEL: RuleTable = &[
    ("type", &[Rule::Required, Rule::OneOf(&["Exempt", "Limited"])]),
    (
        "",
        &[
            Rule::When(
                FieldCondition::IsNot("type", "Limited"),
                &[("limited", &[Rule::Absent("must be nil if the type is not Limited")])],
            ),
            Rule::When(
                FieldCondition::IsNot("type", "Exempt"),
                &[("exempt", &[Rule::Absent("must be nil if the type is not Exempt")])],
            ),
            Rule::When(
                FieldCondition::Is("type", "Exempt"),
                &[
                    ("exempt.nominalConcurrencyShares", &[Rule::Check(not_negative)]),
                    ("exempt.lendablePercent", &[Rule::Between(0, 100)]),
                ],
            ),
            Rule::When(
                FieldCondition::Is("type", "Limited"),
                &[(
                    "limited",
                    &[
                        Rule::Present("must not be empty when type is Limited"),
                        Rule::Struct(&[
                            ("nominalConcurrencyShares", &[Rule::Check(not_negative)]),
                            ("limitResponse", &[Rule::Struct(RESPONSE)]),
                            ("lendablePercent", &[Rule::Between(0, 100)]),
                            ("borrowingLimitPercent", &[Rule::Check(not_negative)]),
                        ]),
                    ],
                )],
            ),
        ],
    ),
];

const RESPONSE: RuleTable = &[
    ("type", &[Rule::Required, Rule::OneOf(&["Queue", "Reject"])]),
    (
        "",
        &[
            Rule::When(
                FieldCondition::IsNot("type", "Queue"),
                &[("queuing", &[Rule::Absent("must be nil if limited.limitResponse.type is not Limited")])],
            ),
            Rule::When(
                FieldCondition::Is("type", "Queue"),
                &[(
                    "queuing",
                    &[
                        Rule::Present("must not be empty if limited.limitResponse.type is Limited"),
                        Rule::Check(queuing),
                    ],
                )],
            ),
        ],
    ),
];

fn level(spec: &Cursor<'_>, errors: &mut Errors) {
    table::check(LEVEL, spec, errors);
}

fn not_negative(number: &Cursor<'_>, errors: &mut Errors) {
    if number.int().is_some_and(|number| number < 0) {
        errors.push(number.invalid("must be a non-negative integer"));
    }
}

/// The bits of the hash that distributes flows over queues.
const HASH_BITS: f64 = 60.0;
const QUEUES_MAX: i64 = 10_000_000;

fn queuing(queuing: &Cursor<'_>, errors: &mut Errors) {
    let (length, queues, hand_size) =
        (queuing.at("queueLengthLimit"), queuing.at("queues"), queuing.at("handSize"));
    if length.int().unwrap_or(0) <= 0 {
        errors.push(length.invalid("must be positive"));
    }
    let (deck, size) = (queues.int().unwrap_or(0), hand_size.int().unwrap_or(0));
    if deck <= 0 {
        errors.push(queues.invalid("must be positive"));
    } else if deck > QUEUES_MAX {
        errors.push(queues.invalid(format!("must not be greater than {QUEUES_MAX}")));
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate of bits")]
    let bits = ((deck.max(1) as f64).log2() * size as f64).ceil();
    if size <= 0 {
        errors.push(hand_size.invalid("must be positive"));
    } else if size > deck {
        errors.push(hand_size.invalid(format!("should not be greater than queues ({deck})")));
    } else if bits > HASH_BITS {
        errors.push(hand_size.invalid(format!(
            "required entropy bits of deckSize {deck} and handSize {size} should not be greater than {HASH_BITS}"
        )));
    }
}

/// Returns the spec of a mandatory flow schema.
fn schema(level: &str, precedence: i64, distinguisher: Option<&str>, groups: &[&str]) -> Value {
    let subjects: Vec<Value> =
        groups.iter().map(|group| json!({"kind": "Group", "group": {"name": group}})).collect();
    let all = json!(["*"]);
    let mut spec = json!({
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "rules": [{
            "subjects": subjects,
            "resourceRules": [{
                "verbs": all, "apiGroups": all, "resources": all, "clusterScope": true, "namespaces": all,
            }],
            "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
        }],
    });
    if let Some(method) = distinguisher {
        spec["distinguisherMethod"] = json!({ "type": method });
    }
    spec
}

fn fixed_value(spec: &Cursor<'_>, name: &str, fixed: &Value, errors: &mut Errors) {
    let mut given = spec.value.clone();
    if let Some(members) = given.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    if given != *fixed {
        errors.push(spec.invalid(format!("spec of '{name}' must equal the fixed value")));
    }
}
