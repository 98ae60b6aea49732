//! Events of the core group, and of the group of their own: the same thing under other names.

use serde_json::{Map, Value};

/// Members with another name: in the core group, in the newer one.
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
