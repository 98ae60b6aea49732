//! Compression with a dictionary that is trained while objects are received.

use watchkeeper_client::{decode::Json, list_watch::ReceivedItem};
use watchkeeper_informer::internals::PackedTier;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_change_to_compressed_bytes_changes_no_content() {
    for policy in tight_policies() {
        // The dictionary is trained in the list, in the watch, or never.
        for (samples, is_trained) in [(1, true), (10, true), (35, true), (1000, false)] {
            let mut objects = wide_objects(30);
            let site = Site::synced_with(&objects, |config| {
                config.memory(policy).measured_objects(0).dictionary_samples(samples)
            })
            .await;
            let first = site.informer.snapshot();
            for (at, version) in (0..10).zip(1001..) {
                let changed = wide(&nth_key(version - 1000), version);
                site.send(Watch::new().modified(changed.clone()), version).await;
                objects[at] = changed;
                site.assert_contents(&objects);
            }
            let stats = site.stats();
            assert_eq!(stats.dictionaries, u64::from(is_trained), "{policy:?}, {samples}: {stats:?}");
            assert_eq!(stats.dictionary_age.is_some(), is_trained);
            assert_eq!(stats.compression_ratio().is_some_and(|ratio| ratio > 1.0), is_trained, "{stats:?}");
            site.assert_contents(&objects);
            let before = wide_objects(30);
            assert!((1..).zip(&before).all(|(n, object)| **first.get(nth_key(n)).unwrap() == *object));
        }
    }
}

#[test]
fn a_renewed_dictionary_changes_no_content() {
    let tier = PackedTier::<ConfigMap>::new(0, 100);
    let decoder: Arc<dyn watchkeeper_client::decode::Decode<ConfigMap>> = Arc::new(Json::new());
    // First objects that resemble each other, then objects whose contents the dictionary does not have.
    let object = |n: u64| {
        let mut object = map(&format!("map-{n}"), n);
        let text = |seed: u64| format!("{:016x}", (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let data = match n {
            0..2_000 => (0..10).map(|key| (format!("key {key}"), "a text that all have".repeat(3))).collect(),
            _ => (0..4).map(|key| (text(n * 31 + key), text(n * 17 + key).repeat(2))).collect(),
        };
        object.data = Some(data);
        object
    };
    let kept: Vec<_> = (0..12_000)
        .map(|n| {
            let bytes = serde_json::to_vec(&object(n)).unwrap();
            let item = ReceivedItem::new(bytes.into(), "", Arc::clone(&decoder)).unwrap();
            (n, tier.keep(item).unwrap())
        })
        .filter(|(n, _)| n % 37 == 0 || n % 4_000 < 3)
        .collect();
    assert!(tier.stats().dictionaries >= 2, "{:?}", tier.stats());
    for (n, cached) in &kept {
        assert_eq!(*cached.get().unwrap(), object(*n));
    }
    assert_eq!(tier.stats().decodes, kept.len() as u64);
    drop(kept);
    assert_eq!((tier.stats().encoded_objects, tier.stats().encoded_bytes), (0, 0));
}
