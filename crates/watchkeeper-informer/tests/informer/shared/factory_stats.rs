//! The figures of a factory and its informers.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use watchkeeper_client::dynamic::GroupVersionResource;
use watchkeeper_informer::{
    MemoryPolicy,
    factory::{FactoryBuilder, Scope},
};

use super::{factory::scripted, support::*};

#[tokio::test(start_paused = true)]
async fn a_factory_reports_each_informer_that_it_owns_with_its_counters() {
    let source = Source::new();
    source.on_list(List::at("10").item(map("a", 3)));
    let _server = source.open_watch(Watch::new());
    let factory = scripted(&source).build();
    factory.informer::<ConfigMap>();
    factory.start();
    within(factory.wait_for_sync()).await.unwrap();
    let config_maps = GroupVersionResource::new("", "v1", "configmaps");
    factory.metadata_of(&config_maps, Scope::all());
    factory.informer_in::<Pod>(Scope::namespace("shop"));
    let released = factory.informer::<Pod>();
    assert!(factory.release(&released));

    let informers = factory.stats().informers;
    let names: Vec<_> = informers.iter().map(|informer| informer.name.as_str()).collect();
    assert_eq!(names, ["v1/configmaps everywhere", "v1/configmaps everywhere", "v1/pods in namespace shop"]);
    let types: Vec<_> =
        informers.iter().filter_map(|informer| informer.object_type.rsplit("::").next()).collect();
    assert!(types.contains(&"ConfigMap") && types[2] == "Pod", "{types:?}");
    let synced = informers.iter().find(|informer| informer.object_type.ends_with("::ConfigMap")).unwrap();
    assert_eq!((&synced.resource, &synced.scope), (&config_maps, &Scope::all()));
    assert_eq!(synced.stats.objects, 1);
    assert_eq!(synced.stats.sources[&None].lists, 1);
    assert_eq!(informers[2].stats.objects, 0);
}

#[tokio::test]
async fn figures_and_weak_references_keep_neither_a_factory_nor_an_informer_alive() {
    let factory = scripted(&Source::new()).build();
    let informer = factory.informer::<ConfigMap>().downgrade();
    let weak = factory.downgrade();
    let stats = weak.upgrade().unwrap().stats();
    assert_eq!(stats.informers.len(), 1);
    assert!(informer.is_alive());
    drop(factory);
    assert!(!informer.is_alive() && weak.upgrade().is_none());
}

#[tokio::test]
async fn the_shared_memory_has_the_policy_of_the_factory_and_its_budget() {
    for (policy, budget_bytes) in [
        (MemoryPolicy::Auto, Some(MemoryPolicy::AUTO_BASE_BYTES)),
        (MemoryPolicy::Decoded, None),
        (MemoryPolicy::Packed, Some(0)),
        (MemoryPolicy::Budget(5), Some(5)),
    ] {
        let factory = FactoryBuilder::without_client().memory(policy).build();
        factory.informer::<Pod>();
        let stats = factory.stats();
        assert_eq!((stats.memory.policy, stats.memory.budget_bytes), (policy, budget_bytes));
        assert_eq!(stats.memory.decoded_bytes, 0);
        let has_memory = stats.informers[0].stats.memory.is_some();
        assert_eq!(has_memory, policy != MemoryPolicy::Decoded, "{policy}");
    }
}
