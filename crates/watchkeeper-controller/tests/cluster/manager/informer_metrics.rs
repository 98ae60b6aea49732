//! The metrics of the informers of a manager.

use watchkeeper_apiserver::faults::{Fault, Requests, Verb as RequestVerb};
use watchkeeper_informer::MemoryPolicy;

use super::{
    endpoints::{get, listening},
    *,
};

/// The names of the metrics of informers in the documentation.
fn documented_informer_metrics() -> Vec<&'static str> {
    let rows = include_str!("../../../src/metrics/mod.rs").lines();
    let names = rows.filter_map(|row| row.strip_prefix("//! | `")?.split('`').next());
    names.filter(|name| name.contains("informer_")).collect()
}

#[tokio::test]
async fn a_manager_exports_every_documented_metric_of_its_informers() {
    let server = ApiServer::in_process();
    let configs = Api::<ConfigMap>::default_namespaced(server.client());
    // So many that a dictionary is trained.
    for number in 0..300 {
        let config =
            json!({"metadata": {"name": format!("page-{number}")}, "data": {"text": "closed on Sundays"}});
        let config: ConfigMap = serde_json::from_value(config).unwrap();
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    let mut options = listening();
    options.memory = MemoryPolicy::Packed;
    let manager = Manager::builder(server.client()).options(options).build();
    let informer = manager.factory().informer::<ConfigMap>();
    let mut endpoints = manager.endpoints();
    let mut running = Running::start(manager);
    let address = endpoints.wait_for(|endpoints| endpoints.metrics.is_some()).await.unwrap().metrics.unwrap();
    // The informer is started by the manager, which may not have happened yet.
    while informer.wait_for_sync(None).await.is_err() {}
    assert!(informer.lister().namespace("default").get("page-7").is_ok());

    // The watch is resumed, and then the history that it would be resumed from is gone.
    let cut = server.faults().inject(Requests::of::<ConfigMap>(), Fault::cut_watches().times(1));
    cut.reached(1).await;
    let expired = server
        .faults()
        .inject(Requests::of::<ConfigMap>().verb(RequestVerb::Watch), Fault::expired().times(1));
    let _cut = server.faults().inject(Requests::of::<ConfigMap>(), Fault::cut_watches().times(1));
    expired.reached(1).await;
    let has_sample = |text: &str, name: &str| {
        text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
    };
    let names = documented_informer_metrics();
    assert_eq!(names.len(), 20, "{names:?}");
    let mut missing = names.clone();
    let mut text = String::new();
    let deadline = Instant::now() + 30 * SECOND;
    while !missing.is_empty() {
        assert!(Instant::now() < deadline, "{missing:?} are not in\n{text}");
        text = get(address, "/metrics").await.1;
        missing.retain(|name| !has_sample(&text, name));
    }
    let labels = "resource=\"configmaps.v1\",type=\"ConfigMap\"";
    for line in [
        format!("watchkeeper_informer_objects{{{labels}}} 300"),
        format!("watchkeeper_informer_decodes_total{{{labels}}} 1"),
        format!("watchkeeper_informer_decoded_objects{{{labels}}} 0"),
        format!("watchkeeper_informer_dictionaries_total{{{labels}}} 1"),
        "watchkeeper_informer_memory_budget_bytes 0".to_owned(),
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    // Each informer metric is documented.
    for kind in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = kind.split_once(' ').unwrap();
        let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
        assert!(!name.contains("informer_") || names.contains(&name.as_str()), "{name} is not documented");
    }
    drop(informer);
    running.end().await.unwrap();
}

#[test]
fn the_page_about_large_clusters_names_only_documented_metrics() {
    let page = include_str!("../../../../../docs/large-clusters.md");
    let words = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let used: Vec<&str> = words
        .filter(|word| word.starts_with("watchkeeper_informer_") || word.starts_with("informer_"))
        .collect();
    assert!(used.len() > 10, "{used:?}");
    let documented = documented_informer_metrics();
    for name in used {
        assert!(documented.contains(&name), "{name} is not documented");
    }
}
