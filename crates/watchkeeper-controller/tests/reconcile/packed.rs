//! Predicates on packed objects, which read metadata only.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{Expression, ObjectMeta, Selector};
use proptest::prelude::*;
use watchkeeper_client::{decode::Json, list_watch::ReceivedItem};
use watchkeeper_controller::{
    Change,
    predicate::{
        Predicate, annotations_changed, finalizers_changed, generation_changed, labels_changed, labels_match,
        resource_version_changed,
    },
};
use watchkeeper_informer::{Cached, event::Event, internals::PackedTier};

type Texts = Option<BTreeMap<String, String>>;

/// Metadata of few different values, so that two of them are often equal in a part.
fn metadata() -> impl Strategy<Value = ObjectMeta> {
    let text = || prop_oneof![Just(String::new()), Just("a".to_owned()), Just("\"é\\".to_owned())];
    let texts = move || prop::option::of(prop::collection::btree_map(text(), text(), 0..3));
    let finalizers = prop::option::of(prop::collection::vec(text(), 0..3));
    let generation = prop::option::of(0..2_i64);
    (texts(), texts(), finalizers, generation, 1..3_u8).prop_map(
        |(labels, annotations, finalizers, generation, version): (Texts, Texts, _, _, _)| ObjectMeta {
            name: Some("object".to_owned()),
            resource_version: Some(version.to_string()),
            labels,
            annotations,
            finalizers,
            generation,
            ..ObjectMeta::default()
        },
    )
}

fn both_forms(tier: &PackedTier<ConfigMap>, metadata: &ObjectMeta) -> [Cached<ConfigMap>; 2] {
    let object = ConfigMap { metadata: metadata.clone(), ..ConfigMap::default() };
    let bytes = serde_json::to_vec(&object).unwrap();
    let item = ReceivedItem::new(bytes.into(), "", Arc::new(Json::new())).unwrap();
    [tier.keep(item).unwrap(), Cached::from(object)]
}

/// Returns what each predicate admits.
fn admitted(event: &Event<ConfigMap>) -> [bool; 6] {
    let change = Change::of(event);
    let selector = Selector::from(Expression::Equal("a".to_owned(), "a".to_owned()));
    [
        generation_changed().admits(change),
        resource_version_changed().admits(change),
        labels_changed().admits(change),
        annotations_changed().admits(change),
        finalizers_changed().admits(change),
        labels_match(selector).admits(change),
    ]
}

proptest! {
    #[test]
    fn predicates_admit_the_same_changes_of_packed_and_decoded_objects(old in metadata(), new in metadata()) {
        let tier = PackedTier::new(0, 1);
        let (olds, news) = (both_forms(&tier, &old), both_forms(&tier, &new));
        let [_, decoded_old] = &olds;
        let [_, decoded_new] = &news;
        let update = |old: &Cached<ConfigMap>, new: &Cached<ConfigMap>| {
            admitted(&Event::Updated { old: old.clone(), new: new.clone() })
        };
        let expected = update(decoded_old, decoded_new);
        for old in &olds {
            for new in &news {
                prop_assert_eq!(update(old, new), expected);
            }
        }
        let add = |object: &Cached<ConfigMap>| admitted(&Event::Added { object: object.clone(), is_initial: false });
        let resync = |object: &Cached<ConfigMap>| admitted(&Event::Synced(object.clone()));
        let [packed, decoded] = &news;
        prop_assert_eq!(add(packed), add(decoded));
        prop_assert_eq!(resync(packed), resync(decoded));
        prop_assert_eq!(tier.stats().decodes, 0);
    }
}
