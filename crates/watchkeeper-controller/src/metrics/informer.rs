//! Metrics of the informers of a factory.

use std::{collections::BTreeMap, fmt, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use watchkeeper_informer::{
    InformerStats, MemoryStats, SharedInformerFactory,
    factory::{FactoryInformerStats, FactoryStats, Scope, WeakInformerFactory},
    status::ReflectorStats,
};

/// Registers the metrics of the informers of a factory, as listed in the [module documentation](super). Call this once per
/// registry.
///
/// Values are read at each scrape. The registry does not keep the factory or its informers alive, and their series are
/// removed with them. A manager registers the metrics of its factory by default.
///
/// ```
/// use prometheus_client::registry::Registry;
/// use watchkeeper_controller::metrics::register_informer_metrics;
/// use watchkeeper_informer::SharedInformerFactory;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::fmt::Result {
/// # let client = watchkeeper_client::Client::from(watchkeeper_apiserver::ApiServer::in_process().client());
/// let factory = SharedInformerFactory::new(client);
/// factory.informer::<k8s_openapi::api::core::v1::Pod>();
/// let mut registry = Registry::default();
/// register_informer_metrics(&mut registry, &factory);
///
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry)?;
/// assert!(text.contains("watchkeeper_informer_objects{resource=\"pods.v1\",type=\"Pod\"} 0"));
/// # Ok(())
/// # }
/// ```
pub fn register_informer_metrics(registry: &mut Registry, factory: &SharedInformerFactory) {
    registry.register_collector(Box::new(InformerCollector { factory: factory.downgrade() }));
}

/// The largest number of informers that have series of their own. The others share one.
const MAX_INFORMERS: usize = 100;

/// The largest number of characters of a label.
const MAX_LABEL_CHARS: usize = 120;

/// The resource of the series of all informers beyond [`MAX_INFORMERS`].
const OTHER_INFORMERS: &str = "exceeded_cardinality_limit";

#[derive(Debug)]
struct InformerCollector {
    factory: WeakInformerFactory,
}

type Labels = Vec<(&'static str, String)>;

/// The series of one informer, or of several that share series.
struct Series {
    labels: Labels,
    /// The labels of the series that client-go has too.
    client_go_labels: Labels,
    informers: Vec<InformerStats>,
}

/// A value of a metric.
enum Figure {
    Whole(u64),
    Real(f64),
}

/// A metric of informers with one value for each series.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    /// Returns the value, or `None` if the informers have none.
    read: fn(&Series) -> Option<Figure>,
}

const METRICS: &[Metric] = &[
    gauge("objects", "Objects in the cache", |it| it.sum(|stats| stats.objects as u64)),
    gauge(
        "encoded_objects",
        "Objects whose encoded bytes are kept, including earlier versions in use",
        |it| it.sum_memory(|memory| memory.encoded_objects),
    ),
    gauge("decoded_objects", "Objects that are kept both encoded and decoded", |it| {
        it.sum_memory(|memory| memory.decoded_objects)
    }),
    gauge("encoded_bytes", "Encoded bytes that are kept, compressed or not", |it| {
        it.sum_memory(|memory| memory.encoded_bytes)
    }),
    gauge("decoded_bytes", "Estimated memory of the decoded objects beside their encoded bytes", |it| {
        it.sum_memory(|memory| memory.decoded_bytes)
    }),
    counter("decodes", "Reads that decoded an object", |it| it.sum_memory(|memory| memory.decodes)),
    counter("decode_seconds", "Time that these reads took", |it| {
        let times: Vec<Duration> = it.memory().map(|memory| memory.decode_time).collect();
        (!times.is_empty()).then(|| Figure::Real(times.iter().sum::<Duration>().as_secs_f64()))
    }),
    counter("hits", "Reads of encoded objects that were also kept decoded", |it| {
        it.sum_memory(|memory| memory.hits)
    }),
    counter("evictions", "Decoded objects that were dropped to keep within the budget", |it| {
        it.sum_memory(|memory| memory.evictions)
    }),
    gauge("compression_ratio", "Plain bytes per compressed byte with the current dictionary", |it| {
        it.compression_ratio().map(Figure::Real)
    }),
    counter("dictionaries", "Dictionaries that were trained", |it| {
        it.sum_memory(|memory| memory.dictionaries)
    }),
    gauge("dictionary_age_seconds", "Time since the current dictionary was trained", |it| {
        longest(it.memory().map(|memory| memory.dictionary_age))
    }),
    gauge("quarantined_objects", "Objects that could not be decoded or transformed", |it| {
        it.sum(|stats| stats.quarantined)
    }),
    counter("lists", "Lists that were started, including relists", |it| {
        it.sum_sources(|source| source.lists)
    }),
    counter("failures", "Lists and watches that failed", |it| it.sum_sources(|source| source.failures)),
    gauge("last_event_age_seconds", "Time since something was received from the server", |it| {
        longest(it.sources().map(|source| source.last_event_age))
    }),
];

const fn counter(name: &'static str, help: &'static str, read: fn(&Series) -> Option<Figure>) -> Metric {
    Metric { name, help, kind: MetricType::Counter, read }
}

const fn gauge(name: &'static str, help: &'static str, read: fn(&Series) -> Option<Figure>) -> Metric {
    Metric { name, help, kind: MetricType::Gauge, read }
}

/// Returns the longest time that is known.
fn longest(times: impl Iterator<Item = Option<Duration>>) -> Option<Figure> {
    times.flatten().max().map(|time| Figure::Real(time.as_secs_f64()))
}

impl Series {
    fn of(informer: FactoryInformerStats) -> Self {
        let FactoryInformerStats { name, resource, scope, object_type, stats, .. } = informer;
        // Without the path, and without the path of a generic type's parameter.
        let path = object_type.split_once('<').map_or(object_type, |(path, _)| path);
        let object_type = path.rsplit("::").next().unwrap_or(path);
        // As in the arguments of kubectl.
        let mut full_resource = format!("{}.{}", resource.resource, resource.version);
        if !resource.group.is_empty() {
            full_resource = format!("{full_resource}.{}", resource.group);
        }
        let mut labels = vec![("resource", shortened(&full_resource)), ("type", shortened(object_type))];
        if scope != Scope::all() {
            labels.push(("scope", shortened(&scope.to_string())));
        }
        let client_go_labels = vec![
            ("group", shortened(&resource.group)),
            ("name", shortened(&name)),
            ("resource", shortened(&resource.resource)),
            ("version", shortened(&resource.version)),
            ("type", shortened(object_type)),
        ];
        Self { labels, client_go_labels, informers: vec![stats] }
    }

    fn others(informers: Vec<InformerStats>) -> Self {
        let labels = vec![("resource", OTHER_INFORMERS.to_owned())];
        Self { client_go_labels: labels.clone(), labels, informers }
    }

    fn memory(&self) -> impl Iterator<Item = &MemoryStats> {
        self.informers.iter().filter_map(|stats| stats.memory.as_ref())
    }

    fn sources(&self) -> impl Iterator<Item = &ReflectorStats> {
        self.informers.iter().flat_map(|stats| stats.sources.values())
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type of all readers")]
    fn sum(&self, read: fn(&InformerStats) -> u64) -> Option<Figure> {
        Some(Figure::Whole(self.informers.iter().map(read).sum()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type of all readers")]
    fn sum_sources(&self, read: fn(&ReflectorStats) -> u64) -> Option<Figure> {
        Some(Figure::Whole(self.sources().map(read).sum()))
    }

    /// Returns a sum over the informers that keep objects encoded. `None` if there are none.
    fn sum_memory(&self, read: fn(&MemoryStats) -> u64) -> Option<Figure> {
        let figures: Vec<u64> = self.memory().map(read).collect();
        (!figures.is_empty()).then(|| Figure::Whole(figures.iter().sum()))
    }

    fn compression_ratio(&self) -> Option<f64> {
        let mut all = MemoryStats::default();
        for memory in self.memory() {
            all.plain_bytes += memory.plain_bytes;
            all.compressed_bytes += memory.compressed_bytes;
        }
        all.compression_ratio()
    }

    /// Returns the sums of counters by label.
    fn sum_labelled(&self, read: CountersByLabel) -> BTreeMap<&'static str, u64> {
        let mut sums = BTreeMap::new();
        for (label, count) in self.sources().flat_map(read) {
            *sums.entry(*label).or_default() += count;
        }
        sums
    }
}

type CountersByLabel = fn(&ReflectorStats) -> &BTreeMap<&'static str, u64>;

impl Figure {
    fn encode(&self, kind: MetricType, encoder: MetricEncoder<'_>) -> fmt::Result {
        match (self, kind) {
            (Self::Whole(value), MetricType::Counter) => ConstCounter::new(*value).encode(encoder),
            (Self::Real(value), MetricType::Counter) => ConstCounter::new(*value).encode(encoder),
            (Self::Whole(value), _) => ConstGauge::new(*value).encode(encoder),
            (Self::Real(value), _) => ConstGauge::new(*value).encode(encoder),
        }
    }
}

/// Returns the series of all informers: one for each, and one for all that are too many.
fn series(informers: Vec<FactoryInformerStats>) -> Vec<Series> {
    let mut seen: BTreeMap<Labels, u32> = BTreeMap::new();
    let mut all = Vec::new();
    let mut others = Vec::new();
    for informer in informers {
        if all.len() == MAX_INFORMERS {
            others.push(informer.stats);
            continue;
        }
        let mut series = Series::of(informer);
        // Shortened labels may be equal, but series must differ.
        let number = seen.entry(series.labels.clone()).and_modify(|number| *number += 1).or_insert(1);
        if *number > 1 {
            series.labels.push(("number", number.to_string()));
            series.client_go_labels.push(("number", number.to_string()));
        }
        all.push(series);
    }
    if !others.is_empty() {
        all.push(Series::others(others));
    }
    all
}

/// Returns a text of at most [`MAX_LABEL_CHARS`] characters.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LABEL_CHARS - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

impl Collector for InformerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        // The factory is not kept while the figures are written.
        let stats = self.factory.upgrade().map(|factory| factory.stats());
        let Some(FactoryStats { informers, memory, .. }) = stats else { return Ok(()) };
        let all = series(informers);
        for metric in METRICS {
            let name = format!("watchkeeper_informer_{}", metric.name);
            let mut family = encoder.encode_descriptor(&name, metric.help, None, metric.kind)?;
            for series in &all {
                if let Some(figure) = (metric.read)(series) {
                    figure.encode(metric.kind, family.encode_family(&series.labels)?)?;
                }
            }
        }
        let help = "Lists after the first one, by cause";
        encode_labelled(&mut encoder, &all, ("relists", help), "cause", |source| &source.relists)?;
        let help = "Watches that were resumed, by the reason why the previous one ended";
        encode_labelled(&mut encoder, &all, ("watch_restarts", help), "reason", |source| {
            &source.watch_restarts
        })?;
        let help = "Keys with changes that are not in the cache yet";
        let mut family = encoder.encode_descriptor("informer_queued_items", help, None, MetricType::Gauge)?;
        for series in &all {
            if let Some(figure) = series.sum(|stats| stats.queued_keys as u64) {
                figure.encode(MetricType::Gauge, family.encode_family(&series.client_go_labels)?)?;
            }
        }
        let Some(budget) = memory.budget_bytes else { return Ok(()) };
        let (name, help) =
            ("watchkeeper_informer_memory_budget_bytes", "Memory that decoded objects may take");
        let kind = MetricType::Gauge;
        Figure::Whole(budget).encode(kind, encoder.encode_descriptor(name, help, None, kind)?)
    }
}

/// Writes counters that have a label besides those of their informer.
fn encode_labelled(
    encoder: &mut DescriptorEncoder<'_>,
    all: &[Series],
    (name, help): (&str, &str),
    label: &'static str,
    read: CountersByLabel,
) -> fmt::Result {
    let name = format!("watchkeeper_informer_{name}");
    let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
    for series in all {
        for (value, count) in series.sum_labelled(read) {
            let mut labels = series.labels.clone();
            labels.push((label, value.to_owned()));
            Figure::Whole(count).encode(MetricType::Counter, family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
