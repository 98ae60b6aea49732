//! Transforms of objects that are kept packed: every read returns the transformed object.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use watchkeeper_informer::{
    GetError, LabelFilter,
    reflector::{QuarantineCause, TransformError},
};

use super::*;

/// Removes a label and the owners, adds a finalizer and an annotation, and shortens the data.
fn narrowed(mut object: ConfigMap) -> ConfigMap {
    let metadata = &mut object.metadata;
    if let Some(labels) = &mut metadata.labels {
        labels.remove("parity");
        labels.insert("added".to_owned(), "yes".to_owned());
    }
    metadata.owner_references = None;
    metadata.finalizers = Some(vec!["example.com/kept".to_owned()]);
    metadata.annotations = Some([("seen".to_owned(), "once".to_owned())].into());
    metadata.generation = Some(7);
    object.data = object.data.map(|data| data.into_iter().take(3).collect());
    object
}

#[tokio::test(start_paused = true)]
async fn every_read_returns_the_transformed_object_and_its_metadata() {
    for policy in policies() {
        for samples in [10, 1000] {
            let objects = wide_objects(20);
            let mut site = Site::synced_with(&objects, |config| {
                let config = config.memory(policy).measured_objects(0).dictionary_samples(samples);
                config.transform(|object| Ok(narrowed(object)))
            })
            .await;
            let mut expected: Vec<ConfigMap> = objects.iter().cloned().map(narrowed).collect();
            site.assert_contents(&expected);
            site.send(Watch::new().modified(wide(&nth_key(3), 1001)), 1001).await;
            expected[2] = narrowed(wide(&nth_key(3), 1001));
            site.assert_contents(&expected);
            let mut now = objects;
            now[2] = wide(&nth_key(3), 1001);
            let received = site.decoder.decoded();
            site.relist(&now, 1010).await;
            assert_eq!(
                site.decoder.decoded(),
                received,
                "{policy:?}: a relist of known versions decodes nothing"
            );
            site.assert_contents(&expected);

            let snapshot = site.informer.snapshot();
            let decodes = site.decodes();
            for object in &expected {
                let key = watchkeeper_informer::ObjectKey::of(object).unwrap();
                let metadata = snapshot.metadata(&key).unwrap();
                let of_object = Cached::from(object.clone());
                let decoded = of_object.metadata();
                assert_eq!(metadata.label("parity"), None, "{policy:?}");
                assert!(metadata.labels().eq(decoded.labels()));
                assert!(metadata.owner_references().next().is_none());
                assert!(metadata.finalizers().eq(["example.com/kept"]));
                assert_eq!(metadata.generation(), Some(7));
                assert!(metadata.has_same_annotations(decoded));
                assert_eq!(
                    (metadata.uid(), metadata.resource_version()),
                    (decoded.uid(), decoded.resource_version())
                );
            }
            let has_parity =
                LabelFilter::from(kube_core::Selector::from(kube_core::Expression::Exists("parity".into())));
            assert!(snapshot.filter_cached(|object| has_parity.matches(object)).is_empty());
            assert_eq!(site.decodes(), decodes, "{policy:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_the_transform_rejects_on_receipt_is_quarantined_under_every_policy() {
    for policy in policies() {
        let objects = [wide("a", 1), wide("b", 2), wide("c", 3)];
        let site = Site::synced_with(&objects, |config| {
            config.memory(policy).measured_objects(0).transform(|object| {
                match object.metadata.name.as_deref() {
                    Some("a") => Err(TransformError::new("not this one")),
                    Some("b") => panic!("a bug"),
                    _ => Ok(object),
                }
            })
        })
        .await;
        assert_eq!(held(&site.informer), ["c@3"], "{policy:?}");
        let quarantined = site.informer.quarantined();
        let in_short: Vec<_> = quarantined.iter().map(|object| (&*object.key, object.cause)).collect();
        assert_eq!(in_short, ["a", "b"].map(|key| (key, QuarantineCause::Transform)), "{policy:?}");
        assert_eq!(*site.get("c"), wide("c", 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_fails_when_an_object_is_decoded_again_makes_the_read_fail() {
    for is_panic in [false, true] {
        let calls = AtomicU32::new(0);
        let site = Site::synced_with(&[wide("a", 1), wide("b", 2)], |config| {
            config.memory(MemoryPolicy::Packed).measured_objects(0).transform(move |object| {
                // Twice on receipt. Each later decode of "a" fails.
                let is_later = calls.fetch_add(1, Relaxed) >= 2;
                match object.metadata.name.as_deref() {
                    Some("a") if is_later && is_panic => panic!("a bug"),
                    Some("a") if is_later => Err(TransformError::new("not again")),
                    _ => Ok(object),
                }
            })
        })
        .await;
        assert_eq!((held(&site.informer).len(), site.informer.quarantined().len()), (2, 0));
        let error = site.cached("a").get().unwrap_err();
        assert_eq!((&*error.key, error.cause), ("a", QuarantineCause::Transform));
        assert!(
            matches!(site.informer.lister().get("a"), Err(GetError::Undecodable(other)) if other == error)
        );
        assert_eq!(site.informer.lister().list(&kube_core::Selector::default()).len(), 1);
        assert_eq!(site.informer.quarantined().len(), 1);
        assert_eq!(*site.get("b"), wide("b", 2));
    }
}
