//! In what order changes come out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::delta_fifo::Deltas;

use super::{
    describe, drain, fifo,
    fifo_fixture::{label, object},
    key, try_pop,
};

#[tokio::test]
async fn two_producers_each_keep_their_order() {
    let fifo = fifo();
    let produce = |prefix: &'static str| {
        let fifo = fifo.clone();
        move || {
            for version in 1..=100 {
                fifo.update(object(&format!("{prefix}{}", version % 7), version)).unwrap();
            }
        }
    };
    let threads = [std::thread::spawn(produce("a")), std::thread::spawn(produce("b"))];
    for thread in threads {
        thread.join().unwrap();
    }
    fifo.close();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(popped) = fifo.pop().await {
        for delta in popped.keys().iter().flat_map(Deltas::iter) {
            let version = delta.object.metadata().resource_version().unwrap().parse().unwrap();
            let before = last.insert(key(&delta.object), version);
            assert!(before < Some(version), "{} came after {before:?}", label(&delta.object));
        }
        popped.done();
    }
    assert_eq!(last.len(), 14);
}

#[test]
fn the_changes_of_a_key_are_popped_together_oldest_first() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    fifo.update(object("a", 2)).unwrap();
    fifo.delete(object("a", 3)).unwrap();
    assert_eq!((fifo.queued_keys(), fifo.queued_deltas()), (1, 3));
    assert_eq!(drain(&fifo), ["added a@1, updated a@2, deleted a@3"]);
}

/// client-go's `RealFIFO` returns every change separately, in the order of arrival. Here a key keeps its
/// position, which bounds the queue by the number of objects.
#[test]
fn a_queued_key_keeps_its_position_and_a_popped_one_goes_to_the_end() {
    let fifo = fifo();
    fifo.add(object("a", 1)).unwrap();
    fifo.add(object("b", 2)).unwrap();
    fifo.update(object("a", 3)).unwrap();
    let popped = try_pop(&fifo, 1).unwrap();
    assert_eq!(describe(&popped.keys()[0]), "added a@1, updated a@3");
    popped.done();
    fifo.update(object("a", 4)).unwrap();
    assert_eq!(drain(&fifo), ["added b@2", "updated a@4"]);
}

#[test]
fn several_updates_of_a_key_are_all_popped() {
    let fifo = fifo();
    (1..=5).for_each(|version| fifo.update(object("a", version)).unwrap());
    assert_eq!(drain(&fifo), ["updated a@1, updated a@2, updated a@3, updated a@4, updated a@5"]);
}

#[test]
fn objects_of_the_same_name_in_other_namespaces_are_other_keys() {
    let fifo = fifo();
    let mut elsewhere = ConfigMap::clone(&object("a", 2).get().unwrap());
    elsewhere.metadata.namespace = Some("other".to_owned());
    fifo.add(object("a", 1)).unwrap();
    fifo.add(elsewhere).unwrap();
    assert_eq!(fifo.queued_keys(), 2);
}
