//! Conversion of events between the core group and `events.k8s.io`: the same object with other field names.

use serde_json::{Map, Value};

/// The renamed members: the name in the core group, then the name in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

pub(super) fn to_newer(event: &mut Value) {
    rename(event, NAMES);
}

pub(super) fn to_core(event: &mut Value) {
    rename(event, NAMES.map(|(core, newer)| (newer, core)));
}

fn rename(event: &mut Value, names: [(&str, &str); 7]) {
    let Some(members) = event.as_object_mut() else { return };
    let renamed = std::mem::take(members).into_iter().map(|(name, value)| {
        let other = names.iter().find(|(from, _)| *from == name).map(|(_, to)| (*to).to_owned());
        (other.unwrap_or(name), value)
    });
    *members = renamed.collect::<Map<_, _>>();
}
