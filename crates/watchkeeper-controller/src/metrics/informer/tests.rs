use std::sync::Arc;

use watchkeeper_client::dynamic::GroupVersionResource;
use watchkeeper_informer::{MemoryPolicy, factory::FactoryBuilder};

use super::*;

fn scrape(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

fn scrape_of(factory: &SharedInformerFactory) -> String {
    let mut registry = Registry::default();
    register_informer_metrics(&mut registry, factory);
    scrape(&registry)
}

/// The labels of the series of a metric.
fn labels_of<'a>(text: &'a str, metric: &str) -> Vec<&'a str> {
    let series = text.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix('{'));
    series.filter_map(|line| line.rsplit_once('}')).map(|(labels, _)| labels).collect()
}

fn gadgets() -> GroupVersionResource {
    GroupVersionResource::new("example.com", "v1", "gadgets")
}

#[test]
fn labels_contain_resource_type_and_a_scope_that_is_not_everything() {
    let factory = FactoryBuilder::without_client().build();
    factory.informer::<k8s_openapi::api::core::v1::Pod>();
    factory.for_resource(&gadgets());
    factory.for_resource_in(&gadgets(), Scope::namespace("shop").labels("app=\"web\""));
    factory.metadata_of(&gadgets(), Scope::all());
    let text = scrape_of(&factory);
    assert_eq!(
        labels_of(&text, "watchkeeper_informer_objects"),
        [
            r#"resource="pods.v1",type="Pod""#,
            r#"resource="gadgets.v1.example.com",type="DynamicObject""#,
            r#"resource="gadgets.v1.example.com",type="ObjectMetadata""#,
            r#"resource="gadgets.v1.example.com",type="DynamicObject",scope="in namespace shop with labels app=\"web\"""#,
        ]
    );
    let client_go = r#"group="",name="v1/pods everywhere",resource="pods",version="v1",type="Pod""#;
    assert!(labels_of(&text, "informer_queued_items").contains(&client_go), "{text}");
}

#[test]
fn long_labels_are_shortened_and_their_series_remain_distinct() {
    let factory = FactoryBuilder::without_client().build();
    for end in ["a", "b", "c"] {
        let namespaces = (0..100).map(|number| format!("ä{number}")).chain([end.to_owned()]);
        // All differ after the hundredth name only.
        factory.for_resource_in(&gadgets(), Scope::namespaces(namespaces));
        factory.for_resource_in(&gadgets(), Scope::all().labels("ä".repeat(200) + end));
    }
    let text = scrape_of(&factory);
    for metric in ["watchkeeper_informer_objects", "informer_queued_items"] {
        let labels = labels_of(&text, metric);
        assert_eq!(labels.len(), 6, "{text}");
        assert_eq!(labels.iter().collect::<std::collections::BTreeSet<_>>().len(), 6, "{labels:?}");
        assert!(labels.iter().all(|labels| labels.chars().count() < 500), "{labels:?}");
    }
}

#[test]
fn a_label_keeps_all_characters_within_the_limit() {
    for (count, expected) in [(MAX_LABEL_CHARS - 1, 119), (MAX_LABEL_CHARS, 120), (MAX_LABEL_CHARS + 1, 120)]
    {
        let text = "ä".repeat(count);
        assert_eq!(shortened(&text).chars().count(), expected);
        assert_eq!(shortened(&text).ends_with('…'), count > MAX_LABEL_CHARS, "{count}");
    }
}

#[test]
fn informers_beyond_the_limit_share_one_series_with_their_sums() {
    let factory = FactoryBuilder::without_client().build();
    for number in 0..MAX_INFORMERS + 50 {
        factory.for_resource_in(&gadgets(), Scope::namespace(format!("{number:03}")));
    }
    let text = scrape_of(&factory);
    let labels = labels_of(&text, "watchkeeper_informer_objects");
    assert_eq!(labels.len(), MAX_INFORMERS + 1);
    assert_eq!(labels.last(), Some(&r#"resource="exceeded_cardinality_limit""#));

    let with = |objects, decode_time, age| {
        let mut stats = InformerStats::default();
        let mut memory = MemoryStats::default();
        (stats.objects, memory.decode_time, memory.dictionary_age) = (objects, decode_time, age);
        (memory.plain_bytes, memory.compressed_bytes) = (10 * objects as u64, objects as u64);
        let mut source = ReflectorStats::default();
        source.relists.insert("expired", 2);
        stats.sources.insert(Some(Arc::from("shop")), source);
        stats.memory = Some(memory);
        stats
    };
    let second = Duration::from_secs(1);
    let others = Series::others(vec![with(2, second, None), with(3, second / 2, Some(second))]);
    let value = |name: &str| {
        let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
        match (metric.read)(&others) {
            Some(Figure::Whole(value)) => value.to_string(),
            Some(Figure::Real(value)) => value.to_string(),
            None => "none".to_owned(),
        }
    };
    assert_eq!(value("objects"), "5");
    assert_eq!(value("decode_seconds"), "1.5");
    assert_eq!(value("dictionary_age_seconds"), "1");
    assert_eq!(value("compression_ratio"), "10");
    assert_eq!(value("last_event_age_seconds"), "none");
    assert_eq!(others.sum_labelled(|source| &source.relists)["expired"], 4);
}

#[test]
fn informers_that_keep_everything_decoded_have_no_series_of_encoded_objects_and_no_budget() {
    let factory = FactoryBuilder::without_client().memory(MemoryPolicy::Decoded).build();
    factory.for_resource(&gadgets());
    let text = scrape_of(&factory);
    assert_eq!(labels_of(&text, "watchkeeper_informer_objects").len(), 1);
    assert_eq!(labels_of(&text, "watchkeeper_informer_encoded_objects"), Vec::<&str>::new());
    assert!(!text.contains("watchkeeper_informer_memory_budget_bytes"), "{text}");
}

#[test]
fn a_registry_does_not_keep_a_factory_alive_and_its_series_end_with_it() {
    let factory = FactoryBuilder::without_client().build();
    let informer = factory.for_resource(&gadgets()).downgrade();
    let mut registry = Registry::default();
    register_informer_metrics(&mut registry, &factory);
    assert!(scrape(&registry).contains("gadgets"));
    drop(factory);
    assert!(informer.upgrade().is_none());
    assert_eq!(scrape(&registry), "# EOF\n");
}
