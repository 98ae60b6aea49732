//! The deletion conditions in the status of a namespace.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The content that remains in a namespace after a pass.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Remaining {
    /// The number of remaining objects, by resource and group as `pods.` or `deployments.apps`.
    pub(super) objects: BTreeMap<String, usize>,
    /// The number of remaining objects, by finalizer.
    pub(super) finalizers: BTreeMap<Box<str>, usize>,
    /// The messages of rejected deletions.
    pub(super) refusals: Vec<String>,
}

impl Remaining {
    /// Returns the number of remaining objects.
    pub(super) fn count(&self) -> usize {
        self.objects.values().sum()
    }
}

/// A condition type with its message in the normal case and, if the condition is abnormal now, the current message.
struct DeletionCondition {
    kind: &'static str,
    normal: (&'static str, &'static str),
    abnormal: Option<(&'static str, String)>,
}

/// Writes the remaining content into `conditions`, always all five in a fixed order. Returns true if anything but a time
/// changed.
///
/// The transition time of a condition changes with its status, not with its message.
pub(super) fn update(conditions: &mut Vec<Value>, remaining: &Remaining, now: &str) -> bool {
    let mut has_changed = false;
    for condition in conditions_of(remaining) {
        let (status, (reason, message)) = match &condition.abnormal {
            Some((reason, message)) => ("True", (*reason, message.as_str())),
            None => ("False", condition.normal),
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
        let is_set = |member: &str, text: &str| known.get(member).is_some_and(|value| value == text);
        let has_turned = !is_set("status", status);
        if has_turned || !is_set("reason", reason) || !is_set("message", message) {
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

/// Returns the five deletion conditions in the order of kube-controller-manager.
fn conditions_of(remaining: &Remaining) -> [DeletionCondition; 5] {
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
        DeletionCondition {
            kind: "NamespaceDeletionDiscoveryFailure",
            normal: ("ResourcesDiscovered", "All resources successfully discovered"),
            abnormal: None,
        },
        DeletionCondition {
            kind: "NamespaceDeletionGroupVersionParsingFailure",
            normal: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            abnormal: None,
        },
        DeletionCondition {
            kind: "NamespaceDeletionContentFailure",
            normal: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            abnormal: refusals.map(|message| ("ContentDeletionFailed", message)),
        },
        DeletionCondition {
            kind: "NamespaceContentRemaining",
            normal: ("ContentRemoved", "All content successfully removed"),
            abnormal: objects.map(|message| ("SomeResourcesRemain", message)),
        },
        DeletionCondition {
            kind: "NamespaceFinalizersRemaining",
            normal: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            abnormal: finalizers.map(|message| ("SomeFinalizersRemain", message)),
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
    fn conditions_describe_remaining_content_and_transition_times_change_with_status() {
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
