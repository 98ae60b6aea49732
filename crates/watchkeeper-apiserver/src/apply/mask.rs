//! The fields that a write through a subresource cannot change.

use super::{
    path::PathElement,
    set::{FieldSet, SetNode},
};
use crate::{kinds::GroupVersionKind, strategy::Part};

/// The fields that a write can change, for the purpose of field management.
///
/// The server resets all other fields to their stored values, so a client that sends them does not become their manager.
/// A write of the object resets the status; a write of the status resets all other fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mask {
    /// A write can change every field.
    #[default]
    All,
    /// Every field except these and the fields below them.
    Except(FieldSet),
    /// Only these fields and the fields below them. A step of `None` matches any step.
    Only(Vec<Vec<Option<PathElement>>>),
}

/// The kinds for which a write of the status also resets the metadata.
const STATUS_KEEPS_METADATA: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("lifecycle.k8s.io", "Eviction"),
    ("lifecycle.k8s.io", "EvictionRequest"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourcePoolStatusRequest"),
    ("scheduling.k8s.io", "CompositePodGroup"),
    ("scheduling.k8s.io", "PodGroup"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

impl Mask {
    /// Returns the mask of a write through `part` of an object of this kind.
    pub(crate) fn of(gvk: &GroupVersionKind, is_custom: bool, has_status: bool, part: Part<'_>) -> Self {
        let except = |paths: &[&[&str]]| Self::Except(FieldSet::of_fields(paths));
        let kind = (gvk.group.as_str(), gvk.kind.as_str());
        match part {
            Part::Main if kind == ("certificates.k8s.io", "CertificateSigningRequest") => {
                except(&[&["spec"], &["status"]])
            }
            Part::Main if has_status => except(&[&["status"]]),
            Part::Subresource("status") if is_custom || STATUS_KEEPS_METADATA.contains(&kind) => {
                except(&[&["metadata"], &["spec"]])
            }
            Part::Subresource("status") => match kind {
                ("apps", "Deployment") => except(&[&["spec"], &["metadata", "labels"]]),
                ("", "Pod") => {
                    except(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
                }
                ("certificates.k8s.io", "CertificateSigningRequest") => {
                    except(&[&["spec"], &["status", "conditions"]])
                }
                _ => except(&[&["spec"]]),
            },
            Part::Subresource("approval") => except(&[&["spec"], &["status", "certificate"]]),
            Part::Subresource("finalize") => except(&[&["status"]]),
            Part::Subresource("ephemeralcontainers") => {
                Self::Only(vec![pattern(&["spec", "ephemeralContainers"])])
            }
            Part::Subresource("resize") => Self::Only(
                [["containers", "resources"], ["containers", "resizePolicy"]]
                    .into_iter()
                    .chain([["initContainers", "resources"], ["initContainers", "resizePolicy"]])
                    .map(|[list, member]| pattern(&["spec", list, "*", member]))
                    .collect(),
            ),
            Part::Main | Part::Subresource(_) => Self::All,
        }
    }

    /// Removes from `set` the fields that a write cannot change.
    pub(crate) fn apply(&self, set: &mut FieldSet) {
        match self {
            Self::All => {}
            Self::Except(fields) => set.subtract_below(fields),
            Self::Only(patterns) => {
                let patterns: Vec<_> = patterns.iter().map(Vec::as_slice).collect();
                *set = only(set, &patterns);
            }
        }
    }
}

fn pattern(steps: &[&str]) -> Vec<Option<PathElement>> {
    steps.iter().map(|step| (*step != "*").then(|| PathElement::field(step))).collect()
}

fn only(set: &FieldSet, patterns: &[&[Option<PathElement>]]) -> FieldSet {
    let mut kept = FieldSet::default();
    for (element, node) in set.nodes() {
        let matching: Vec<_> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter(|(step, _)| step.as_ref().is_none_or(|step| step == element))
            .map(|(_, rest)| rest)
            .collect();
        if matching.is_empty() {
            continue;
        }
        let is_whole = matching.iter().any(|rest| rest.is_empty());
        let below = if is_whole { node.below.clone() } else { only(&node.below, &matching) };
        kept.join_node(element.clone(), SetNode { is_member: node.is_member, below });
    }
    kept
}
