//! What the status of a namespace says about its end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What a pass over the content of a namespace left behind.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Remaining {
    /// Objects, by resource and group as `pods.` or `deployments.apps`.
    pub(super) objects: BTreeMap<String, usize>,
    /// Objects, by the finalizers that keep them.
    pub(super) finalizers: BTreeMap<Box<str>, usize>,
    /// Deletions that were refused, one sentence each.
    pub(super) refusals: Vec<String>,
}

impl Remaining {
    /// How many objects are left.
    pub(super) fn count(&self) -> usize {
        self.objects.values().sum()
    }
}

/// A type of condition, what it says when all is well, and what it says now if it is not.
struct Condition {
    kind: &'static str,
    well: (&'static str, &'static str),
    ill: Option<(&'static str, String)>,
}

/// Writes what remains into `conditions`, all five in a fixed order; true if that changed anything but a time.
///
/// The transition time of a condition moves when its status does, not when its words do.
pub(super) fn update(conditions: &mut Vec<Value>, remaining: &Remaining, now: &str) -> bool {
    let mut has_changed = false;
    for condition in judge(remaining) {
        let (status, (reason, message)) = match &condition.ill {
            Some((reason, message)) => ("True", (*reason, message.as_str())),
            None => ("False", condition.well),
        };
        let known =
            conditions.iter_mut().find(|known| known.get("type").is_some_and(|kind| kind == condition.kind));
        let Some(known) = known else {
            conditions.push(json!({
                "type": condition.kind,
                "status": status,
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }));
            has_changed = true;
            continue;
        };
        let says = |member: &str, text: &str| known.get(member).is_some_and(|value| value == text);
        let has_turned = !says("status", status);
        if has_turned || !says("reason", reason) || !says("message", message) {
            if has_turned {
                known["lastTransitionTime"] = now.into();
            }
            known["status"] = status.into();
            known["reason"] = reason.into();
            known["message"] = message.into();
            has_changed = true;
        }
    }
    has_changed
}

/// The conditions clients know, in the order they have in a cluster.
fn judge(remaining: &Remaining) -> [Condition; 5] {
    let listed = |entries: Vec<String>| entries.join(", ");
    let refusals = (!remaining.refusals.is_empty()).then(|| {
        let mut refusals = remaining.refusals.clone();
        refusals.sort();
        let count = refusals.len();
        format!("Failed to delete all resource types, {count} remaining: {}", listed(refusals))
    });
    let objects = (!remaining.objects.is_empty()).then(|| {
        let entries = remaining
            .objects
            .iter()
            .map(|(resource, count)| format!("{resource} has {count} resource instances"));
        format!("Some resources are remaining: {}", listed(entries.collect()))
    });
    let finalizers = (!remaining.finalizers.is_empty()).then(|| {
        let entries =
            remaining.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
        format!("Some content in the namespace has finalizers remaining: {}", listed(entries.collect()))
    });
    [
        Condition {
            kind: "NamespaceDeletionDiscoveryFailure",
            well: ("ResourcesDiscovered", "All resources successfully discovered"),
            ill: None,
        },
        Condition {
            kind: "NamespaceDeletionGroupVersionParsingFailure",
            well: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ill: None,
        },
        Condition {
            kind: "NamespaceDeletionContentFailure",
            well: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            ill: refusals.map(|message| ("ContentDeletionFailed", message)),
        },
        Condition {
            kind: "NamespaceContentRemaining",
            well: ("ContentRemoved", "All content successfully removed"),
            ill: objects.map(|message| ("SomeResourcesRemain", message)),
        },
        Condition {
            kind: "NamespaceFinalizersRemaining",
            well: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            ill: finalizers.map(|message| ("SomeFinalizersRemain", message)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_type<'a>(conditions: &'a [Value], kind: &str) -> &'a Value {
        conditions.iter().find(|condition| condition["type"] == kind).unwrap()
    }

    #[test]
    fn what_remains_is_said_in_words_and_its_time_moves_only_with_its_status() {
        let mut conditions = Vec::new();
        let mut remaining = Remaining::default();
        remaining.objects.insert("foos.example.com".to_owned(), 2);
        remaining.objects.insert("configmaps.".to_owned(), 1);
        remaining.finalizers.insert("example.com/a".into(), 3);
        assert!(update(&mut conditions, &remaining, "t1"));
        assert_eq!(conditions.len(), 5);
        let content = of_type(&conditions, "NamespaceContentRemaining");
        assert_eq!(content["status"], "True");
        assert_eq!(
            content["message"],
            "Some resources are remaining: configmaps. has 1 resource instances, foos.example.com has 2 resource instances"
        );
        let finalizers = of_type(&conditions, "NamespaceFinalizersRemaining");
        assert_eq!(
            finalizers["message"],
            "Some content in the namespace has finalizers remaining: example.com/a in 3 resource instances"
        );

        assert!(!update(&mut conditions, &remaining, "t2"), "nothing new is not written");
        remaining.objects.remove("configmaps.");
        assert!(update(&mut conditions, &remaining, "t3"));
        assert_eq!(of_type(&conditions, "NamespaceContentRemaining")["lastTransitionTime"], "t1");
        assert!(update(&mut conditions, &Remaining::default(), "t4"));
        let content = of_type(&conditions, "NamespaceContentRemaining");
        assert_eq!((&content["status"], &content["lastTransitionTime"]), (&json!("False"), &json!("t4")));
        assert_eq!(of_type(&conditions, "NamespaceDeletionContentFailure")["lastTransitionTime"], "t1");
    }
}
