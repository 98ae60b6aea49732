//! Plots of a report of the `cluster` suite, as SVG for documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::measure::Measurement;
use crate::runner::OURS;
use crate::stats::Spread;

const WIDTH: f64 = 760.0;
const LABELS_WIDTH: f64 = 190.0;
const BARS_WIDTH: f64 = 480.0;
const BAR_HEIGHT: f64 = 13.0;
const GROUP_GAP: f64 = 9.0;
const TITLE_HEIGHT: f64 = 58.0;

/// The runs that are plotted, with the labels of our side. Peers are labelled with their names.
const RUNS: [(&str, &str); 5] = [
    ("informer", "Watchkeeper, default"),
    ("informer-decoded", "Watchkeeper, decoded"),
    ("informer-packed", "Watchkeeper, packed"),
    ("narrow", "Watchkeeper, six fields"),
    ("metadata", "metadata only"),
];

/// A diagram: its title, its unit, and the figures that are bars of each group.
struct Panel {
    title: &'static str,
    unit: &'static str,
    bars: [(&'static str, &'static str); 2],
}

const PANELS: [Panel; 2] = [
    Panel {
        title: "Memory",
        unit: "MiB, resident",
        bars: [("settled", "steady_mib"), ("peak of the sync", "sync_peak_mib")],
    },
    Panel {
        title: "CPU",
        unit: "µs",
        bars: [("sync, per pod", "sync_cpu_us"), ("update, handler reads the key", "event_cpu_us")],
    },
];

/// The parts of a report that are plotted.
#[derive(Debug, Deserialize)]
struct Report {
    suite: String,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Run {
    #[serde(rename = "run")]
    name: String,
    side: String,
    measured: Measurement,
}

/// A client with the medians of its figures.
#[derive(Debug)]
struct Group {
    label: String,
    medians: BTreeMap<String, f64>,
}

/// Returns the plots of a report, which is the text of a file that `--json` has written.
pub(crate) fn plot(report: &str) -> Result<String, String> {
    let reports: Vec<Report> = serde_json::from_str(report).map_err(|error| error.to_string())?;
    let report = reports.into_iter().find(|report| report.suite == "cluster");
    let report = report.ok_or("the report has no suite `cluster`")?;
    let groups = groups(&report.runs);
    let pods = report.runs.iter().find(|run| run.name == "informer").map(|run| run.measured.operations);
    match pods {
        Some(pods) if !groups.is_empty() => Ok(svg(&groups, pods)),
        _ => Err("the report has no run `informer`; run the row `steady`".to_owned()),
    }
}

fn groups(runs: &[Run]) -> Vec<Group> {
    let mut groups = Vec::new();
    for (name, label) in RUNS {
        let mut sides: Vec<&str> = Vec::new();
        for run in runs.iter().filter(|run| run.name == name) {
            if !sides.contains(&run.side.as_str()) {
                sides.push(&run.side);
            }
        }
        sides.sort_by_key(|side| (*side != OURS, *side));
        for side in sides {
            let of_side: Vec<&Run> = runs.iter().filter(|run| run.name == name && run.side == side).collect();
            let names = of_side.iter().flat_map(|run| run.measured.figures.keys());
            let medians = names.filter_map(|figure| {
                let values = of_side.iter().map(|run| run.measured.figures.get(figure).copied());
                Some((figure.clone(), Spread::of_all(values)?.median))
            });
            let label = match (side, name) {
                (OURS, "metadata") => format!("Watchkeeper, {label}"),
                (OURS, _) => label.to_owned(),
                (peer, "informer") => peer.to_owned(),
                (peer, other) => format!("{peer}, {}", if other == "metadata" { label } else { other }),
            };
            groups.push(Group { label, medians: medians.collect() });
        }
    }
    groups
}

/// Appends formatted text. Writing to a string is infallible.
macro_rules! push {
    ($out:expr, $($text:tt)*) => { let _ = writeln!($out, $($text)*); };
}

fn svg(groups: &[Group], pods: u64) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    for panel in &PANELS {
        top = push_panel(&mut body, panel, groups, pods, top);
    }
    let mut out = String::new();
    push!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" role="img">"#
    );
    push!(out, "<title>Memory and CPU of caches of {pods} pods, by client</title>");
    // Colours that are readable on white, and others on a dark page.
    out.push_str(
        "<style>text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}.value{fill:#57606a}\
         .first{fill:#0969da}.second{fill:#bf8700}.axis{stroke:#8c959f}\
         @media(prefers-color-scheme:dark){text{fill:#e6edf3}.value{fill:#9198a1}.first{fill:#4493f8}\
         .second{fill:#d29922}.axis{stroke:#656c76}}</style>\n",
    );
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

/// Appends a panel below `top`, and returns where it ends.
fn push_panel(out: &mut String, panel: &Panel, groups: &[Group], pods: u64, top: f64) -> f64 {
    let shown: Vec<&Group> = groups
        .iter()
        .filter(|group| panel.bars.iter().any(|(_, name)| group.medians.contains_key(*name)))
        .collect();
    let values =
        shown.iter().flat_map(|group| panel.bars.iter().filter_map(|(_, name)| group.medians.get(*name)));
    let largest = values.copied().fold(f64::MIN_POSITIVE, f64::max);
    push!(
        out,
        r#"<text class="title" x="8" y="{:.0}">{} ({}), {pods} pods; less is better</text>"#,
        top + 22.0,
        panel.title,
        panel.unit
    );
    for ((class, (label, _)), x) in
        ["first", "second"].iter().zip(panel.bars).zip([LABELS_WIDTH, LABELS_WIDTH + 200.0])
    {
        push!(out, r#"<rect class="{class}" x="{x}" y="{:.0}" width="11" height="11"/>"#, top + 33.0);
        push!(out, r#"<text x="{}" y="{:.0}">{label}</text>"#, x + 16.0, top + 43.0);
    }
    let mut y = top + TITLE_HEIGHT;
    for group in shown {
        push!(
            out,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            LABELS_WIDTH - 8.0,
            y + BAR_HEIGHT + 4.0,
            group.label
        );
        for (class, (_, name)) in ["first", "second"].iter().zip(panel.bars) {
            if let Some(value) = group.medians.get(name) {
                let width = (value / largest * BARS_WIDTH).max(1.0);
                push!(
                    out,
                    r#"<rect class="{class}" x="{LABELS_WIDTH}" y="{y:.1}" width="{width:.1}" height="{:.1}"/>"#,
                    BAR_HEIGHT - 1.0
                );
                let places = usize::from(*value < 100.0);
                push!(
                    out,
                    r#"<text class="value" x="{:.1}" y="{:.1}">{value:.places$}</text>"#,
                    LABELS_WIDTH + width + 5.0,
                    y + BAR_HEIGHT - 2.5
                );
            }
            y += BAR_HEIGHT;
        }
        y += GROUP_GAP;
    }
    push!(
        out,
        r#"<line class="axis" x1="{LABELS_WIDTH}" x2="{LABELS_WIDTH}" y1="{:.1}" y2="{y:.1}"/>"#,
        top + TITLE_HEIGHT - 4.0
    );
    y + 14.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(run: &str, side: &str, steady_mib: f64) -> String {
        format!(
            r#"{{"run":"{run}","side":"{side}","measured":{{"operations":50000,"wall_ns":1,"cpu_ns":1,
            "peak_rss_bytes":null,"live_heap_bytes":null,"figures":{{"steady_mib":{steady_mib},"sync_cpu_us":42.5}}}}}}"#
        )
    }

    fn report(runs: &[String]) -> String {
        format!(r#"[{{"suite":"cluster","runs":[{}]}}]"#, runs.join(","))
    }

    #[test]
    fn each_client_has_bars_of_the_medians_of_its_runs() {
        let runs = [
            run("informer", "client-go", 900.0),
            run("informer", "ours", 300.0),
            run("informer", "ours", 100.0),
            run("informer", "ours", 200.0),
            run("narrow", "ours", 50.0),
            run("reads", "ours", 77.0),
        ];
        let svg = plot(&report(&runs)).unwrap();
        for part in [
            "50000 pods",
            "Memory (MiB, resident)",
            "client-go<",
            "Watchkeeper, default",
            ">900<",
            ">200<",
            ">50.0<",
            ">42.5<",
        ] {
            assert!(svg.contains(part), "{part:?} is missing from: {svg}");
        }
        assert!(!svg.contains(">77"), "reads are not plotted");
        assert!(svg.find("Watchkeeper, default") < svg.find("client-go<"), "ours is first");
        assert_eq!(svg.matches("<svg").count(), 1);
    }

    #[test]
    fn a_report_without_the_runs_is_an_error_that_names_the_row() {
        for text in ["", "[]", r#"[{"suite":"queue","runs":[]}]"#, &report(&[run("reads", "ours", 1.0)])] {
            assert!(plot(text).is_err(), "{text}");
        }
        assert!(plot(&report(&[])).unwrap_err().contains("`steady`"));
    }
}
