//! The metadata of a packed object, compared with that of the decoded object for any metadata.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube_core::{Expression, Selector, SelectorExt};
use proptest::prelude::*;
use watchkeeper_client::{decode::Json, list_watch::ReceivedItem};
use watchkeeper_informer::{Cached, LabelFilter, MetadataRef, internals::PackedTier};

/// Texts of few different values, empty ones, odd characters and long ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop_oneof![Just("a"), Just("b"), Just("app"), Just("web"), Just("example.com/f")].prop_map(str::to_owned),
        1 => Just(String::new()),
        2 => any::<String>(),
        1 => "[\\x00-\\x1f\"\\\\/\u{7f}é€😀\u{2028}]{1,8}",
        1 => (1..3_000_usize).prop_map(|length| "long ".repeat(length)),
    ]
}

fn texts() -> impl Strategy<Value = Option<BTreeMap<String, String>>> {
    prop::option::of(prop::collection::btree_map(text(), text(), 0..5))
}

fn owner() -> impl Strategy<Value = OwnerReference> {
    (text(), text(), text(), text(), any::<Option<bool>>(), any::<Option<bool>>()).prop_map(
        |(api_version, kind, name, uid, controller, block_owner_deletion)| OwnerReference {
            api_version,
            kind,
            name,
            uid,
            controller,
            block_owner_deletion,
        },
    )
}

/// A name or a namespace. Sources reject empty names, and caches those with slashes.
fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("n{}", text.replace('/', "-")))
}

fn metadata() -> impl Strategy<Value = ObjectMeta> {
    let identity = (
        name(),
        prop::option::of(prop_oneof![name(), Just(String::new())]),
        prop::option::of(text()),
        prop::option::of(text()),
    );
    let lists = (
        texts(),
        texts(),
        prop::option::of(prop::collection::vec(text(), 0..4)),
        prop::option::of(prop::collection::vec(owner(), 0..4)),
    );
    (identity, lists, any::<Option<i64>>(), any::<bool>()).prop_map(
        |(
            (name, namespace, uid, version),
            (labels, annotations, finalizers, owners),
            generation,
            is_deleted,
        )| {
            // The type of timestamps has no other simple constructor.
            let time = || serde_json::from_str("\"2026-01-01T00:00:00Z\"").expect("a time");
            ObjectMeta {
                name: Some(name),
                namespace,
                uid,
                resource_version: version,
                labels,
                annotations,
                finalizers,
                owner_references: owners,
                generation,
                deletion_timestamp: is_deleted.then(time),
                ..ObjectMeta::default()
            }
        },
    )
}

fn expression() -> impl Strategy<Value = Expression> {
    let values = || prop::collection::btree_set(text(), 0..4);
    prop_oneof![
        (text(), values()).prop_map(|(key, values)| Expression::In(key, values)),
        (text(), values()).prop_map(|(key, values)| Expression::NotIn(key, values)),
        (text(), text()).prop_map(|(key, value)| Expression::Equal(key, value)),
        (text(), text()).prop_map(|(key, value)| Expression::NotEqual(key, value)),
        text().prop_map(Expression::Exists),
        text().prop_map(Expression::DoesNotExist),
    ]
}

/// The object in both forms, after the same way over a connection.
struct Forms {
    packed: Cached<ConfigMap>,
    decoded: Cached<ConfigMap>,
}

impl Forms {
    /// With a budget the object is decoded on receipt, and without one its header is read from the bytes.
    fn of(metadata: &ObjectMeta, budget_bytes: u64) -> Self {
        let object = ConfigMap { metadata: metadata.clone(), ..ConfigMap::default() };
        let bytes = serde_json::to_vec(&object).expect("a config map is JSON");
        let item = ReceivedItem::new(bytes.into(), "", Arc::new(Json::new())).expect("it has a name");
        let packed = PackedTier::new(budget_bytes, 1).keep(item).expect("it is kept");
        Self { packed, decoded: Cached::from(object) }
    }
}

fn assert_same(one: MetadataRef<'_>, other: MetadataRef<'_>) -> Result<(), TestCaseError> {
    prop_assert_eq!(one.name(), other.name());
    prop_assert_eq!(one.namespace(), other.namespace());
    prop_assert_eq!(one.uid(), other.uid());
    prop_assert_eq!(one.resource_version(), other.resource_version());
    prop_assert_eq!(one.generation(), other.generation());
    prop_assert_eq!(one.is_being_deleted(), other.is_being_deleted());
    prop_assert_eq!(one.labels().collect::<Vec<_>>(), other.labels().collect::<Vec<_>>());
    for (key, value) in other.labels() {
        prop_assert_eq!(one.label(key), Some(value));
    }
    prop_assert_eq!(one.label("absent from all"), None);
    prop_assert_eq!(one.finalizers().collect::<Vec<_>>(), other.finalizers().collect::<Vec<_>>());
    prop_assert_eq!(one.owner_references().collect::<Vec<_>>(), other.owner_references().collect::<Vec<_>>());
    prop_assert!(one.has_same_annotations(other) && other.has_same_annotations(one));
    Ok(())
}

proptest! {
    #[test]
    fn the_metadata_of_a_packed_object_equals_that_of_the_decoded_one(metadata in metadata(), has_budget in any::<bool>()) {
        let forms = Forms::of(&metadata, if has_budget { u64::MAX } else { 0 });
        prop_assert_eq!(forms.packed.decoded().is_some(), has_budget);
        assert_same(forms.packed.metadata(), forms.decoded.metadata())?;
        prop_assert_eq!(forms.packed.key().ok(), forms.decoded.key().ok());
        prop_assert_eq!(forms.packed.resource_version(), forms.decoded.resource_version());
        prop_assert_eq!(&*forms.packed.get().expect("decodes"), &*forms.decoded.get().expect("decodes"));
    }

    #[test]
    fn annotations_compare_alike_in_every_combination_of_forms(
        one in metadata(),
        other in metadata(),
        is_same in any::<bool>(),
    ) {
        let mut other = other;
        if is_same {
            other.annotations = one.annotations.clone();
        }
        let expected = one.annotations.clone().unwrap_or_default() == other.annotations.clone().unwrap_or_default();
        let (one, other) = (Forms::of(&one, 0), Forms::of(&other, 0));
        for one in [&one.packed, &one.decoded] {
            for other in [&other.packed, &other.decoded] {
                prop_assert_eq!(one.metadata().has_same_annotations(other.metadata()), expected);
            }
        }
    }

    #[test]
    fn a_label_filter_equals_the_selector_on_both_forms(
        metadata in metadata(),
        expressions in prop::collection::vec(expression(), 0..4),
    ) {
        let forms = Forms::of(&metadata, 0);
        let selector: Selector = expressions.into_iter().collect();
        let filter = LabelFilter::from(selector.clone());
        let expected = selector.matches(&metadata.labels.unwrap_or_default());
        prop_assert_eq!(filter.matches(forms.packed.metadata()), expected);
        prop_assert_eq!(filter.matches(forms.decoded.metadata()), expected);
    }
}
